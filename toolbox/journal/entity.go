package journal

import (
	"context"

	"reeve/internal/store"
)

// Entities reads what subscriptions' predicates look at. What is not of the journal, or gone, is left out.
func (p *Pack) Entities(ctx context.Context, s *store.Snap, workspace string, ids []string) ([]map[string]any, error) {
	out := []map[string]any{}
	r := s.Journal(store.Hand{Workspace: workspace, All: true})
	for _, id := range ids {
		m, ok, err := r.Entity(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}
