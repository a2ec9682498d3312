package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// errandHandlers serves the jobs of the planner and the maintainer of scripts.
type errandHandlers struct {
	db          *store.DB
	automations Automations
}

func (h *errandHandlers) plan(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.PlanRequest
}) (*body[reeve.Errand], error) {
	k, err := h.automations.Plan(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.Errand]{k}, err
}

// mostErrands is how many errands of one automation are shown.
const mostErrands = 200

func (h *errandHandlers) list(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.ErrandList], error) {
	out := &body[api.ErrandList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.Errands, err = snap.Automations().ListErrands(ctx, m.AgentID, eyes(who), mostErrands)
		return err
	})
}

// errandFor reads an errand that the caller may see.
func errandFor(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.Errand, error) {
	k, err := snap.Automations().GetErrand(ctx, who.Workspace, id)
	if err == nil && !sees(who, k.UserID) {
		err = absent("errand", id)
	}
	return k, err
}

func (h *errandHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Errand], error) {
	out := &body[reeve.Errand]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = errandFor(ctx, snap, who, in.ID)
		return err
	})
}

func (h *errandHandlers) answer(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.AnswerRequest
}) (*body[reeve.Errand], error) {
	if err := h.db.View(ctx, func(snap *store.Snap) error {
		_, err := errandFor(ctx, snap, who, in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	k, err := h.automations.Answer(ctx, who.Workspace, in.ID, in.Body.Answer)
	return &body[reeve.Errand]{k}, err
}
