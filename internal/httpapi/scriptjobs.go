package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// scriptJobHandlers serves the script jobs of the planner and the maintainer.
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

// maxScriptJobs is the most script jobs that list returns.
const maxScriptJobs = 200

func (h *scriptJobHandlers) list(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[api.ScriptJobList], error) {
	out := &body[api.ScriptJobList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.ScriptJobs, err = snap.Automations().ListScriptJobs(ctx, m.AgentID, visibleUser(who), maxScriptJobs)
		return err
	})
}

// getVisibleScriptJob returns a script job. It fails with NOT_FOUND if the caller may not see it.
func getVisibleScriptJob(ctx context.Context, snap *store.Snap, who reeve.Principal,
	id string) (reeve.ScriptJob, error) {
	k, err := snap.Automations().GetScriptJob(ctx, who.Workspace, id)
	if err == nil && !canSee(who, k.UserID) {
		err = newNotFound("script job", id)
	}
	return k, err
}

func (h *scriptJobHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.ScriptJob], error) {
	out := &body[reeve.ScriptJob]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = getVisibleScriptJob(ctx, snap, who, in.ID)
		return err
	})
}

func (h *scriptJobHandlers) answer(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.AnswerRequest
}) (*body[reeve.ScriptJob], error) {
	if err := h.db.View(ctx, func(snap *store.Snap) error {
		_, err := getVisibleScriptJob(ctx, snap, who, in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	k, err := h.jobs.Answer(ctx, who.Workspace, in.ID, in.Body.Answer)
	return &body[reeve.ScriptJob]{k}, err
}
