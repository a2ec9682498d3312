package wake

import (
	"reeve"
	"reeve/internal/store"
)

// awake gives a wake's agent, and why it cannot run at all; empty means that it can.
func awake(known store.WakeContext, w reeve.Wake) (store.AgentStatus, string) {
	if known.Corrupt[w.WorkspaceID] || known.Corrupt[w.AgentID] {
		return store.AgentStatus{},
			"the row of its agent or workspace in the database cannot be read; reeve doctor says more"
	}
	ws, ok := known.Workspaces[w.WorkspaceID]
	if !ok {
		return store.AgentStatus{}, "the workspace is gone"
	}
	a, ok := known.Agents[w.AgentID]
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
