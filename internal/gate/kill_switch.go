package gate

import (
	"context"
	"time"

	"reeve/internal/store"
)

// Stop turns the kill switch on for an agent or, if agent is empty, for the whole workspace. After Stop has returned,
// no call that changes something starts.
func (g *Gate) Stop(ctx context.Context, workspace, agent, reason string) error {
	return g.setStopped(ctx, workspace, agent, reason, true)
}

// Resume turns the kill switch off and wakes the worker.
func (g *Gate) Resume(ctx context.Context, workspace, agent string) error {
	err := g.setStopped(ctx, workspace, agent, "", false)
	g.Wakeup()
	return err
}

// AfterResume empties the view cache and wakes the worker, after a held server was resumed.
func (g *Gate) AfterResume() {
	g.viewCache.invalidateAll()
	g.Wakeup()
}

// setStopped turns the kill switch on or off.
func (g *Gate) setStopped(ctx context.Context, workspace, agent, reason string, on bool) error {
	defer g.viewCache.invalidate(workspace)
	return g.DB.Update(ctx, func(tx *store.Tx) error {
		if agent == "" {
			var at time.Time
			if on {
				at = tx.Now()
			}
			if err := tx.Agents().StopWorkspace(ctx, workspace, at, reason); err != nil {
				return err
			}
			return tx.Ledger().SaveResponse(ctx, nil)
		}
		if err := tx.IncrementRevision(ctx, workspace); err != nil { // before the agent is read
			return err
		}
		a, err := tx.Agents().GetAgent(ctx, workspace, agent)
		if err != nil {
			return err
		}
		a.StoppedAt = nil
		if on {
			now := tx.Now()
			a.StoppedAt = &now
		}
		if err := tx.Agents().UpdateAgent(ctx, a); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, nil)
	})
}
