package wake

import (
	"context"
	"encoding/json"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// maxLaterChanges is the number of later changes of an entity that a trial can take back.
const maxLaterChanges = 200

// TryPredicate evaluates the predicate of a subscription, which need not exist yet, on the newest changes that the
// subscription covers. It evaluates each entity as the change left it. The result is newest first.
func (r *Scheduler) TryPredicate(ctx context.Context, snap *store.Snap, sub reeve.Subscription,
	limit int) ([]reeve.PredicateTrial, error) {
	if err := r.CheckPredicate(sub.Predicate); err != nil {
		return nil, err
	}
	agent, err := snap.Agents().GetAgent(ctx, sub.WorkspaceID, sub.AgentID)
	if err != nil {
		return nil, err
	}
	ids, err := snap.Queue().ListChangesOf(ctx, sub.WorkspaceID, sub.Token, limit)
	if err != nil {
		return nil, err
	}
	changes, err := snap.Queue().GetChanges(ctx, sub.WorkspaceID, ids)
	if err != nil {
		return nil, err
	}
	t := predicateTrial{r, snap, sub, agent.Categories, map[string][]reeve.ChangeRecord{}}
	out := make([]reeve.PredicateTrial, 0, len(changes))
	for _, c := range slices.Backward(changes) {
		trial := reeve.PredicateTrial{Change: c, Holds: true}
		if sub.Predicate != "" {
			entities, err := t.entitiesAfter(ctx, c)
			if err != nil {
				return nil, err
			}
			trial.Why = r.predicates.explainMismatch(sub.Predicate, entities)
			trial.Holds = trial.Why == ""
		}
		out = append(out, trial)
	}
	return out, nil
}

// predicateTrial reads entities as past changes left them.
type predicateTrial struct {
	scheduler  *Scheduler
	snap       *store.Snap
	sub        reeve.Subscription
	categories []string
	history    map[string][]reeve.ChangeRecord // newest first, by entity
}

// entitiesAfter returns the entities that the predicate examines for a change, as the change left them.
func (t predicateTrial) entitiesAfter(ctx context.Context, c reeve.ChangeRecord) ([]map[string]any, error) {
	if t.scheduler.Entities == nil {
		return nil, nil
	}
	ids, key := []string{t.sub.Token.Name}, ""
	if t.sub.Token.Class == reeve.SemanticKey {
		key = t.sub.Token.Name
	}
	if t.sub.Token.Class != reeve.EntityID {
		var err error
		if ids, err = t.snap.Queue().ChangedIDs(ctx, t.sub.WorkspaceID, c.ID); err != nil {
			return nil, err
		}
	}
	scope := store.JournalScope{Workspace: t.sub.WorkspaceID, User: t.sub.UserID, Agent: t.sub.AgentID,
		Categories: t.categories}
	entities, err := t.scheduler.Entities.Entities(ctx, t.snap, scope, key, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range entities {
		if err := t.takeBack(ctx, e, c); err != nil {
			return nil, err
		}
	}
	return entities, nil
}

// takeBack sets the fields of an entity to their values after a change, by taking back the later changes.
func (t predicateTrial) takeBack(ctx context.Context, entity map[string]any, c reeve.ChangeRecord) error {
	id, _ := entity["id"].(string)
	if _, ok := t.history[id]; !ok {
		list, err := t.snap.Queue().ListChanges(ctx, t.sub.WorkspaceID, store.ChangeFilter{Entity: id,
			Limit: maxLaterChanges})
		if err != nil {
			return err
		}
		t.history[id] = list
	}
	for _, later := range t.history[id] {
		if later.ID == c.ID || later.CreatedAt.Before(c.CreatedAt) {
			return nil
		}
		for _, e := range later.Entities {
			if e.ID == id {
				restoreFields(entity, e.Fields)
			}
		}
	}
	return nil
}

// restoreFields sets fields to their values before a change, in the type that the field has now.
func restoreFields(entity map[string]any, fields map[string][2]string) {
	for name, v := range fields {
		_, isText := entity[name].(string)
		var value any
		switch {
		case v[0] == "":
			delete(entity, name)
		case !isText && json.Unmarshal([]byte(v[0]), &value) == nil:
			entity[name] = value
		default:
			entity[name] = v[0]
		}
	}
}
