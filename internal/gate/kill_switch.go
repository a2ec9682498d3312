package gate

import (
	"context"
	"time"

	"reeve/internal/store"
)

// Stop turns the kill switch on, for one agent or, with an empty agent, for everything in the workspace. When it
// returns, nothing that changes anything starts any more.
func (g *Gate) Stop(ctx context.Context, workspace, agent, reason string) error {
	return g.setStopped(ctx, workspace, agent, reason, true)
}

// Resume turns the kill switch off. What was due meanwhile is taken up.
func (g *Gate) Resume(ctx context.Context, workspace, agent string) error {
	err := g.setStopped(ctx, workspace, agent, "", false)
	g.Wakeup()
	return err
}

// AfterResume has the loop look at once, and every call judged anew, after a held server was resumed.
func (g *Gate) AfterResume() {
	g.viewCache.invalidateAll()
	g.Wakeup()
}

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
		if err := tx.Touch(ctx, workspace); err != nil { // before it is read: see Tx.Revise
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
