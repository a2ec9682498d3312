package wake

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// roster is who is concerned by one step's wakes, as they are for its transaction. Each is read once.
type roster struct {
	tx         *store.Tx
	workspaces map[string]reeve.Workspace
	agents     map[string]store.Standing
}

// meet reads those that it does not know yet. A workspace stays as it is until the transaction ends.
func (k roster) meet(ctx context.Context, wakes []reeve.Wake) error {
	var ids []string
	asked := map[string]bool{}
	for _, w := range wakes {
		if _, ok := k.workspaces[w.WorkspaceID]; !ok && !asked[w.WorkspaceID] {
			asked[w.WorkspaceID] = true
			ws, err := k.tx.HoldWorkspace(ctx, w.WorkspaceID)
			if err != nil && reeve.CodeOf(err) != reeve.NotFound {
				return err
			}
			if err == nil {
				k.workspaces[w.WorkspaceID] = ws
			}
		}
		if _, ok := k.agents[w.AgentID]; !ok && !asked[w.AgentID] {
			asked[w.AgentID] = true
			ids = append(ids, w.AgentID)
		}
	}
	return k.tx.Standings(ctx, ids, k.agents)
}

// awake gives a wake's agent, and why it cannot run at all; empty means that it can.
func (k roster) awake(w reeve.Wake) (store.Standing, string) {
	ws, ok := k.workspaces[w.WorkspaceID]
	if !ok {
		return store.Standing{}, "the workspace is gone"
	}
	a, ok := k.agents[w.AgentID]
	switch {
	case !ok || a.WorkspaceID != w.WorkspaceID:
		return a, "the agent is gone"
	case ws.StoppedAt != nil:
		return a, "everything in the workspace is stopped"
	case a.Stopped:
		return a, "the agent is stopped"
	case a.Lifecycle != reeve.AgentActive:
		return a, "the agent is " + string(a.Lifecycle)
	}
	return a, ""
}
