package gate

import (
	"context"
	"time"

	"reeve"
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

// checkNotStopped returns an error if the server is held or the kill switch is on for the caller or a principal.
func (c *caller) checkNotStopped() error {
	if err := c.view.checkNotStopped(); err != nil {
		return err
	}
	for _, p := range c.chain {
		if err := p.checkNotStopped(); err != nil {
			return err
		}
	}
	return nil
}

// checkNotStopped returns an error if the server is held or the kill switch is on for the workspace or the agent.
func (v *agentView) checkNotStopped() error {
	if v.ws.Hold != nil {
		return v.ws.Hold.Err()
	}
	if v.ws.StoppedAt != nil {
		what := "everything in this workspace is stopped"
		if v.ws.StopReason != "" {
			what += ": " + v.ws.StopReason
		}
		return reeve.Errorf(reeve.Stopped, "%s", what).Hintf("a member can resume it")
	}
	if v.agent.StoppedAt != nil {
		return reeve.Errorf(reeve.Stopped, "the agent %s is stopped", v.agent.Name).Hintf("a member can resume it")
	}
	return nil
}
