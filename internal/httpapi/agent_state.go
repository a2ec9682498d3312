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
		state, changed, err := tx.Agents().PutSlots(ctx, a, in.Body.Revision, in.Body.Slots)
		if out.Body = state; err != nil || !changed {
			return nil, err
		}
		return []reeve.Token{{Class: reeve.SemanticKey, Name: reeve.KeyAgentState},
			{Class: reeve.EntityID, Name: a.ID}}, nil
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
