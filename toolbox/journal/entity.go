package journal

import (
	"context"
	"maps"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// keys tells which key a change of each kind of thing is told under.
var keys = map[any]string{"category": reeve.KeyCategory, "label": reeve.KeyLabel, "task": reeve.KeyTask,
	"checklist": reeve.KeyChecklist, "checklist_item": reeve.KeyChecklist,
	"time_entry": reeve.KeyTimeEntry, "day_plan": reeve.KeyDayPlan, "plan_block": reeve.KeyDayPlan,
	"rating": reeve.KeyRating}

// Entities reads what subscriptions' predicates look at, as one hand sees it. What is not of the journal, or gone, or
// not theirs to see, is left out; and who watches a key of the journal is asked about what that key tells of: a task's
// category is told of with the task, and has not changed.
func (p *Pack) Entities(ctx context.Context, s *store.Snap, who store.JournalScope, key string,
	ids []string) ([]map[string]any, error) {
	ours := slices.Contains(slices.Collect(maps.Values(keys)), key)
	out := []map[string]any{}
	r := s.Journal(who)
	for _, id := range ids {
		m, ok, err := r.Entity(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok && (!ours || keys[m["kind"]] == key) {
			out = append(out, m)
		}
	}
	return out, nil
}
