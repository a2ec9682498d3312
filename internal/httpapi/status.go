package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// statusHandlers serves the status of the server.
type statusHandlers struct {
	db        *store.DB
	gate      *gate.Gate
	startedAt time.Time
	version   string
}

func (h *statusHandlers) status(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.Status], error) {
	out := &body[api.Status]{Body: api.Status{Version: h.version, Engine: h.db.Engine(), Role: who.Role, User: who.User,
		StartedAt: h.startedAt}}
	tools, err := h.gate.Catalogue.Tools(ctx, who.Workspace, "")
	if err != nil {
		return nil, err
	}
	out.Body.Broken = describeBrokenTools(tools)
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body.Workspace, err = snap.Agents().GetWorkspace(ctx, who.Workspace); err != nil {
			return err
		}
		if out.Body.Hold, err = snap.System().Hold(ctx); err != nil {
			return err
		}
		if out.Body.Node, err = snap.System().Node(ctx); err != nil {
			return err
		}
		in, err := readInbox(ctx, snap, who)
		out.Body.Waiting, out.Body.More = in.Waiting(), in.More
		return err
	})
}
