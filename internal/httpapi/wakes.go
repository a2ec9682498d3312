package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// wakeHandlers serves the wakes of agents and runs.
type wakeHandlers struct {
	db    *store.DB
	queue *wake.Queue
}

func (h *wakeHandlers) listForRun(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[api.WakeList], error) {
	return h.list(ctx, who, in.Page, func(snap *store.Snap) (store.WakeFilter, error) {
		r, err := getVisibleRun(ctx, snap, who, in.ID)
		return store.WakeFilter{Run: r.ID}, err
	})
}

// list returns a page of the wakes that the filter selects. The cursor is the run key of the last wake.
func (h *wakeHandlers) list(ctx context.Context, who reeve.Principal, p Page,
	filter func(*store.Snap) (store.WakeFilter,
		error)) (*body[api.WakeList], error) {
	out := &body[api.WakeList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		f, err := filter(snap)
		if err != nil {
			return err
		}
		f.VisibleTo, f.After, f.Limit = visibleUser(who), p.Cursor, p.Limit
		if out.Body.Wakes, err = snap.Queue().ListWakes(ctx, who.Workspace, f); reeve.CodeOf(err) == reeve.NotFound {
			err = newInvalidCursor()
		}
		return err
	})
	if n := len(out.Body.Wakes); n == p.Limit {
		out.Body.Next = out.Body.Wakes[n-1].RunKey
	}
	return out, err
}

func (h *wakeHandlers) get(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Key string `path:"runKey" maxLength:"256" doc:"Run key; write a slash as %2F"`
}) (*body[reeve.Wake], error) {
	out := &body[reeve.Wake]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = snap.Queue().GetWake(ctx, in.Key); err == nil && (out.Body.WorkspaceID != who.Workspace ||
			!canSee(who, out.Body.UserID)) {
			err = newNotFound("wake", in.Key)
		}
		return err
	})
}

func (h *wakeHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"Wakes the agent once"`
	Body api.WakeRequest
}) (*body[reeve.Wake], error) {
	w, err := h.queue.Wake(ctx, who.Workspace, in.Agent, who.User, in.Key, in.Body.Input)
	return &body[reeve.Wake]{w}, err
}

func (h *wakeHandlers) listForAgent(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Page
}) (*body[api.WakeList], error) {
	return h.list(ctx, who, in.Page, func(snap *store.Snap) (store.WakeFilter, error) {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		return store.WakeFilter{Agent: a.ID}, err
	})
}
