package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

func (h *agentHandlers) getState(ctx context.Context, who reeve.Principal,
	in *AgentPath) (*body[reeve.AgentState], error) {
	out := &body[reeve.AgentState]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		out.Body, err = snap.Agents().AgentState(ctx, a.ID)
		return err
	})
}

func (h *agentHandlers) putState(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Body api.AgentStateRequest
}) (*body[reeve.AgentState], error) {
	if err := in.Body.Slots.Validate(); err != nil {
		return nil, err
	}
	out := &body[reeve.AgentState]{}
	return out, h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return nil, err
		}
		was, err := tx.Agents().AgentState(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		before := was.Slots.Paths()
		state, changed, err := tx.Agents().PutSlots(ctx, a, in.Body.Revision, in.Body.Slots)
		if out.Body = state; err != nil || !changed {
			return nil, err
		}
		change, err := store.DiffEntity("agent_state", a.ID, a.Name, before, state.Slots.Paths())
		if err != nil {
			return nil, err
		}
		change.Action = reeve.EntityChanged
		if err := tx.Queue().InsertPersonChanges(ctx, who.Workspace, who.User, change); err != nil {
			return nil, err
		}
		return stateTokens(a), nil
	})
}

// stateTokens returns the tokens that a change of an agent's state emits.
func stateTokens(a reeve.Agent) []reeve.Token {
	return []reeve.Token{{Class: reeve.SemanticKey, Name: reeve.KeyAgentState}, {Class: reeve.EntityID, Name: a.ID}}
}

func (h *agentHandlers) putWakePlan(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Body reeve.WakePlan
}) (*body[reeve.AgentState], error) {
	out := &body[reeve.AgentState]{}
	return out, h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err == nil && in.Body.NextWakeAt != nil {
			err = a.CheckWakes(reeve.ReasonTimer)
		}
		if err != nil {
			return nil, err
		}
		state, changed, err := tx.Agents().PutWakePlan(ctx, a, in.Body, reeve.Timer{UserID: who.User})
		if out.Body = state; err != nil || !changed {
			return nil, err
		}
		return stateTokens(a), nil
	})
}

func (h *agentHandlers) getRuntime(ctx context.Context, who reeve.Principal,
	in *AgentPath) (*body[reeve.AgentRuntime], error) {
	out := &body[reeve.AgentRuntime]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		out.Body, err = snap.Agents().Runtime(ctx, a.ID)
		return err
	})
}
