package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// runHandlers serves runs.
type runHandlers struct {
	db        *store.DB
	scheduler *wake.Scheduler
	requests  RequestReader
}

func (h *runHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent string         `query:"agent" maxLength:"128" doc:"Agent id or name"`
	State reeve.RunState `query:"state" enum:"running,parked,completed,failed,skipped,cancelled,paused"`
}) (*body[api.RunList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.RunList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		f := store.RunFilter{State: in.State, VisibleTo: visibleUser(who), Before: in.Cursor, Limit: in.Limit}
		var err error
		if f.Agent, err = resolveAgentFilter(ctx, snap, who.Workspace, in.Agent); err != nil {
			return err
		}
		out.Body.Runs, err = snap.Runs().ListRuns(ctx, who.Workspace, f)
		return err
	})
	if n := len(out.Body.Runs); n == in.Limit {
		out.Body.Next = out.Body.Runs[n-1].ID
	}
	return out, err
}

func (h *runHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Run], error) {
	out := &body[reeve.Run]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = getVisibleRun(ctx, snap, who, in.ID); err == nil {
			out.Body.WaitsForAgents, err = snap.Runs().ResumesWithoutPerson(ctx, out.Body)
		}
		return err
	})
}

// listRequests returns what the model was asked. A request may quote the notes of the run's user, so nobody else may
// read it.
func (h *runHandlers) listRequests(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.AskedRequestList],
	error) {
	var run reeve.Run
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		run, err = getVisibleRun(ctx, snap, who, in.ID)
		return err
	})
	if err == nil && run.UserID != "" && run.UserID != who.User {
		err = newNotFound("run", in.ID)
	}
	out := &body[api.AskedRequestList]{}
	if err == nil {
		out.Body.Requests, err = h.requests.AskedRequests(ctx, run)
	}
	return out, err
}

func (h *runHandlers) cancel(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Run], error) {
	out, err := h.get(ctx, who, in)
	if err == nil {
		out.Body, err = h.scheduler.Cancel(ctx, who.Workspace, in.ID)
	}
	return out, err
}
