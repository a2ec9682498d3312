package gate

import (
	"context"
	"encoding/json"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Stop turns the kill switch on, for one agent or, with an empty agent, for everything in the workspace. When it returns,
// nothing that changes anything starts any more.
func (g *Gate) Stop(ctx context.Context, workspace, agent, reason string) error {
	return g.flip(ctx, workspace, agent, reason, true)
}

// Resume turns the kill switch off. What was due meanwhile is taken up.
func (g *Gate) Resume(ctx context.Context, workspace, agent string) error {
	err := g.flip(ctx, workspace, agent, "", false)
	g.nudge()
	return err
}

func (g *Gate) flip(ctx context.Context, workspace, agent, reason string, on bool) error {
	defer g.views.forget(workspace)
	return g.DB.Update(ctx, func(tx *store.Tx) error {
		if agent == "" {
			var at time.Time
			if on {
				at = tx.Now()
			}
			return tx.StopWorkspace(ctx, workspace, at, reason)
		}
		a, err := tx.GetAgent(ctx, workspace, agent)
		if err != nil {
			return err
		}
		a.StoppedAt = nil
		a.Mended("stopped_at")
		if on {
			now := tx.Now()
			a.StoppedAt = &now
		}
		return tx.UpdateAgent(ctx, a)
	})
}

// Undo makes the call that takes an operation back, through the gate like any other. Doing it twice does it once; one that was denied, or has failed, did nothing and can be made again.
func (g *Gate) Undo(ctx context.Context, workspace, id, user string, via reeve.Via) (reeve.Result, error) {
	var op reeve.Operation
	var info reeve.ActionInfo
	key := reeve.Key(reeve.PrefixOperation, "undo", id)
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if op, err = s.GetOperation(ctx, workspace, id); err != nil {
			return err
		}
		if key, err = unspent(ctx, s, workspace, key); err != nil {
			return err
		}
		m, err := s.GetMessage(ctx, workspace, op.CallID)
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Metadata, &info)
	})
	if err != nil {
		return reeve.Result{}, err
	}
	if op.State != reeve.Committed || op.Undo == nil {
		return reeve.Result{}, reeve.Errorf(reeve.Unsupported, "operation %s cannot be undone", id).Hintf("only committed operations whose tool says how can be")
	}
	return g.Call(ctx, reeve.Call{Workspace: workspace, Agent: op.AgentID, Tool: op.Undo.Tool, Args: op.Undo.Args, Tools: []string{op.Undo.Tool}, Session: info.Session, Run: op.RunID,
		Operation: key, User: user, Via: via, Reason: "undo of " + op.ID})
}

// unspent gives an operation's id, or the next of those under which it is made again: the first that was not used, or whose operation was not for nothing.
func unspent(ctx context.Context, s *store.Snap, workspace, first string) (string, error) {
	for again, key := 1, first; ; again++ {
		op, used, err := s.FindOperation(ctx, workspace, key)
		if err != nil || !used || op.State != reeve.DeniedOp && op.State != reeve.Failed {
			return key, err
		}
		key = reeve.AgainKey(first, again)
	}
}
