package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// scriptJobHandlers serves the jobs of the planner and the maintainer of scripts.
type scriptJobHandlers struct {
	db   *store.DB
	jobs ScriptJobs
}

func (h *scriptJobHandlers) plan(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.PlanRequest
}) (*body[reeve.ScriptJob], error) {
	k, err := h.jobs.Plan(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.ScriptJob]{k}, err
}

// mostScriptJobs is how many script jobs of one automation are shown.
const mostScriptJobs = 200

func (h *scriptJobHandlers) list(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[api.ScriptJobList], error) {
	out := &body[api.ScriptJobList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.ScriptJobs, err = snap.Automations().ListScriptJobs(ctx, m.AgentID, eyes(who), mostScriptJobs)
		return err
	})
}

// errandFor reads a script job that the caller may see.
func jobFor(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.ScriptJob, error) {
	k, err := snap.Automations().GetScriptJob(ctx, who.Workspace, id)
	if err == nil && !sees(who, k.UserID) {
		err = absent("script job", id)
	}
	return k, err
}

func (h *scriptJobHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.ScriptJob], error) {
	out := &body[reeve.ScriptJob]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = jobFor(ctx, snap, who, in.ID)
		return err
	})
}

func (h *scriptJobHandlers) answer(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.AnswerRequest
}) (*body[reeve.ScriptJob], error) {
	if err := h.db.View(ctx, func(snap *store.Snap) error {
		_, err := jobFor(ctx, snap, who, in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	k, err := h.jobs.Answer(ctx, who.Workspace, in.ID, in.Body.Answer)
	return &body[reeve.ScriptJob]{k}, err
}
