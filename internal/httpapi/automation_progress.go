package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

const (
	runPath       = "/api/automations/{id}/runs/{runId}"
	runEventsPath = runPath + "/events"
	look          = 100 * time.Millisecond // between two looks at how far a run has come
)

// RunPath names a run of an automation.
type RunPath struct {
	IDPath
	Run string `path:"runId" maxLength:"128"`
}

// find reads a run of an automation that the caller may see.
func (h *automationRunHandlers) find(ctx context.Context, who reeve.Principal,
	id, run string) (out reeve.AutomationRun, err error) {
	err = h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, id)
		if err != nil {
			return err
		}
		r, err := runFor(ctx, snap, who, run)
		if err == nil && r.AgentID != m.AgentID {
			err = absent("run", run)
		}
		if err != nil {
			return err
		}
		out.Run = &r
		if r.WaitsForAgents, err = snap.Runs().ResumesUnaided(ctx, r); err != nil {
			return err
		}
		out.Script, _, err = snap.Automations().FindScriptRunOf(ctx, who.Workspace, r.ID)
		return err
	})
	return out, err
}

func (h *automationRunHandlers) get(ctx context.Context, who reeve.Principal,
	in *RunPath) (*body[reeve.AutomationRun], error) {
	run, err := h.find(ctx, who, in.ID, in.Run)
	return &body[reeve.AutomationRun]{run}, err
}

// watching is a client that follows a run.
type watching struct {
	who     reeve.Principal
	id, run string
	tell    func(json.RawMessage, api.RunFrameType) error // what is new
	alive   func() error                                  // nothing is, for some time
}

// watch tells a client how far a run has come, whenever that has changed, until the run, the client or its rights end.
// It looks at what is committed, on whichever server the run is.
func (h *automationRunHandlers) watch(ctx context.Context, w watching) error {
	var last json.RawMessage
	quiet := reeve.Monotonic()
	right, err := h.permits.issue(ctx, w.who, "")
	defer right.close()
	if err != nil {
		return err
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-right.due.Done():
		case <-pause.C:
			pause.Reset(look)
		}
		if err := right.check(ctx); err != nil {
			return err
		}
		r, err := h.find(ctx, w.who, w.id, w.run)
		if err != nil {
			return err
		}
		frame := api.RunFrame{Type: api.RunProgress, AutomationRun: r}
		switch {
		case r.Run.State.Final():
			frame.Type = api.RunComplete
		case r.Run.State == reeve.RunRunning:
			frame.Script.Log = "" // it may be long, and is told at the end
		}
		text, err := json.Marshal(frame)
		if err != nil {
			return err
		}
		switch {
		case !bytes.Equal(text, last):
			last, quiet = text, reeve.Monotonic()
			if err := w.tell(text, frame.Type); err != nil || frame.Type == api.RunComplete {
				return err
			}
		case reeve.Since(quiet) > h.heartbeat:
			quiet = reeve.Monotonic()
			if err := w.alive(); err != nil {
				return err
			}
		}
	}
}

// stream follows a run as server-sent events.
func (h *automationRunHandlers) stream(ctx context.Context, who reeve.Principal,
	in *RunPath) (*huma.StreamResponse, error) {
	if _, err := h.find(ctx, who, in.ID, in.Run); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		h.streams.serveEvents(c, http.StatusOK, func(ctx context.Context, e *events) {
			_ = h.watch(ctx, watching{who: who, id: in.ID, run: in.Run, // whatever ended it, the client sees the end
				tell:  func(text json.RawMessage, t api.RunFrameType) error { return e.send(string(t), text) },
				alive: func() error { e.alive(); return e.flush() }})
		})
	}}, nil
}

// socket follows a run over a WebSocket.
func (h *automationRunHandlers) socket(w http.ResponseWriter, r *http.Request) {
	id, run := r.PathValue("id"), r.PathValue("runId")
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.errors.write(w, r, reeve.Errorf(reeve.Validation, "this is a WebSocket").
			Hintf("connect with a WebSocket client, or read %s", strings.NewReplacer("{id}", id, "{runId}", run).
				Replace(runEventsPath)))
		return
	}
	who, err := h.auth.socketIdentity(r, socketToken(r))
	if err == nil {
		_, err = h.find(r.Context(), who, id, run)
	}
	if err != nil {
		h.errors.write(w, r, err)
		return
	}
	if !h.streams.enter() {
		h.errors.write(w, r, reeve.Errorf(reeve.Unavailable, "the server is stopping"))
		return
	}
	defer h.streams.leave()
	// the origin was checked
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol},
		InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, done := h.streams.context(conn.CloseRead(context.WithoutCancel(r.Context())))
	defer done()
	l := socketConn{conn}
	err = h.watch(ctx, watching{who: who, id: id, run: run,
		tell:  func(text json.RawMessage, _ api.RunFrameType) error { return l.write(ctx, text) },
		alive: func() error { return l.ping(ctx) }})
	switch code := reeve.CodeOf(err); {
	case err == nil:
		_ = conn.Close(websocket.StatusNormalClosure, "the run has ended")
	case h.streams.stopping():
		_ = conn.Close(websocket.StatusGoingAway, "the server is stopping; come back")
	case code == reeve.Unauthenticated || code == reeve.NotFound:
		_ = conn.Close(websocket.StatusPolicyViolation, "you may no longer listen")
	}
}
