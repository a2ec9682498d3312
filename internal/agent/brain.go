package agent

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// Brain runs agents: those with a rehearsal in their config by that plan, all others by a model.
type Brain struct {
	DB        *store.DB
	Rehearsal *Rehearsal
	Thinker   *Thinker
}

// Run gives a run to the brain that its agent has.
func (b *Brain) Run(ctx context.Context, run reeve.Run) reeve.RunEnd {
	var a reeve.Agent
	err := b.DB.View(ctx, func(s *store.Snap) (err error) {
		a, err = s.GetAgent(ctx, run.WorkspaceID, run.AgentID)
		return err
	})
	if err != nil {
		return failed(err)
	}
	set, err := ReadSettings(a.Config)
	if err != nil {
		return failed(err)
	}
	if set.Rehearsal != nil {
		return b.Rehearsal.Run(ctx, run)
	}
	return b.Thinker.Run(ctx, run, a, set)
}
