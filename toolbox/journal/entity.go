package journal

import (
	"context"
	"maps"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// changeKeys maps the kind of an entity to the semantic key of its changes.
var changeKeys = map[any]string{"category": reeve.KeyCategory, "label": reeve.KeyLabel, "task": reeve.KeyTask,
	"checklist": reeve.KeyChecklist, "checklist_item": reeve.KeyChecklist,
	"time_entry": reeve.KeyTimeEntry, "day_plan": reeve.KeyDayPlan, "plan_block": reeve.KeyDayPlan,
	"rating": reeve.KeyRating}

// Entities returns the entities that the predicate of a subscription examines, as far as the scope may see them. It
// leaves out ids that are not in the journal, are deleted, or are out of scope. For a journal key it also leaves out
// entities of other kinds: a change to a task also names its category, which has not changed.
func (p *Pack) Entities(ctx context.Context, s *store.Snap, who store.JournalScope, key string,
	ids []string) ([]map[string]any, error) {
	isJournalKey := slices.Contains(slices.Collect(maps.Values(changeKeys)), key)
	out := []map[string]any{}
	r := s.Journal(who)
	for _, id := range ids {
		m, ok, err := r.Entity(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok && (!isJournalKey || changeKeys[m["kind"]] == key) {
			out = append(out, m)
		}
	}
	return out, nil
}
