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
	pollInterval  = 100 * time.Millisecond // between two reads of a run's progress
)

// RunPath is the input of routes with a run of an automation in the path.
type RunPath struct {
	IDPath
	Run string `path:"runId" maxLength:"128"`
}

// getRun returns a run of an automation. It fails with NOT_FOUND if the caller may not see it.
func (h *automationRunHandlers) getRun(ctx context.Context, who reeve.Principal,
	id, run string) (out reeve.AutomationRun, err error) {
	err = h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, id)
		if err != nil {
			return err
		}
		r, err := getVisibleRun(ctx, snap, who, run)
		if err == nil && r.AgentID != m.AgentID {
			err = newNotFound("run", run)
		}
		if err != nil {
			return err
		}
		out.Run = &r
		if r.WaitsForAgents, err = snap.Runs().ResumesWithoutPerson(ctx, r); err != nil {
			return err
		}
		out.Script, _, err = snap.Automations().FindScriptRunOf(ctx, who.Workspace, r.ID)
		return err
	})
	return out, err
}

func (h *automationRunHandlers) get(ctx context.Context, who reeve.Principal,
	in *RunPath) (*body[reeve.AutomationRun], error) {
	run, err := h.getRun(ctx, who, in.ID, in.Run)
	return &body[reeve.AutomationRun]{run}, err
}

// runWatcher is a client that follows a run.
type runWatcher struct {
	who       reeve.Principal
	id, run   string
	send      func(json.RawMessage, api.RunFrameType) error // sends a frame
	keepAlive func() error                                  // called after a heartbeat without a frame
}

// watch sends the run's progress whenever it changes. It returns nil when the run ends, and an error when the client
// disconnects or may no longer listen. It polls committed data, so the run may be on another server.
func (h *automationRunHandlers) watch(ctx context.Context, w runWatcher) error {
	var last json.RawMessage
	lastSent := reeve.Monotonic()
	permit, err := h.permits.issue(ctx, w.who, "")
	defer permit.close()
	if err != nil {
		return err
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-permit.checkDue.Done():
		case <-pause.C:
			pause.Reset(pollInterval)
		}
		if err := permit.check(ctx); err != nil {
			return err
		}
		r, err := h.getRun(ctx, w.who, w.id, w.run)
		if err != nil {
			return err
		}
		frame := api.RunFrame{Type: api.RunProgress, AutomationRun: r}
		switch {
		case r.Run.State.IsFinal():
			frame.Type = api.RunComplete
		case r.Run.State == reeve.RunRunning:
			frame.Script.Log = "" // may be long; the last frame has it
		}
		text, err := json.Marshal(frame)
		if err != nil {
			return err
		}
		switch {
		case !bytes.Equal(text, last):
			last, lastSent = text, reeve.Monotonic()
			if err := w.send(text, frame.Type); err != nil || frame.Type == api.RunComplete {
				return err
			}
		case reeve.Since(lastSent) > h.heartbeat:
			lastSent = reeve.Monotonic()
			if err := w.keepAlive(); err != nil {
				return err
			}
		}
	}
}

// stream follows a run as server-sent events.
func (h *automationRunHandlers) stream(ctx context.Context, who reeve.Principal,
	in *RunPath) (*huma.StreamResponse, error) {
	if _, err := h.getRun(ctx, who, in.ID, in.Run); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		h.streams.serveEvents(c, http.StatusOK, func(ctx context.Context, e *eventWriter) {
			_ = h.watch(ctx, runWatcher{who: who, id: in.ID, run: in.Run, // the client sees the end of the stream
				send:      func(text json.RawMessage, t api.RunFrameType) error { return e.send(string(t), text) },
				keepAlive: func() error { e.addKeepAlive(); return e.flush() }})
		})
	}}, nil
}

// socket follows a run over a WebSocket.
func (h *automationRunHandlers) socket(w http.ResponseWriter, r *http.Request) {
	id, run := r.PathValue("id"), r.PathValue("runId")
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.errors.write(w, r, reeve.Errorf(reeve.Validation, "this route needs a WebSocket").
			Hintf("connect with a WebSocket client, or read %s", strings.NewReplacer("{id}", id, "{runId}", run).
				Replace(runEventsPath)))
		return
	}
	who, err := h.auth.identifySocket(r, socketSecret(r))
	if err == nil {
		_, err = h.getRun(r.Context(), who, id, run)
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
	// originGuard has checked the origin
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol},
		InsecureSkipVerify: true})
	if err != nil {
		return // Accept has sent the error
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, done := h.streams.context(conn.CloseRead(context.WithoutCancel(r.Context())))
	defer done()
	l := socketConn{conn}
	err = h.watch(ctx, runWatcher{who: who, id: id, run: run,
		send:      func(text json.RawMessage, _ api.RunFrameType) error { return l.write(ctx, text) },
		keepAlive: func() error { return l.ping(ctx) }})
	switch code := reeve.CodeOf(err); {
	case err == nil:
		_ = conn.Close(websocket.StatusNormalClosure, "the run has ended")
	case h.streams.isStopping():
		_ = conn.Close(websocket.StatusGoingAway, "the server is stopping; reconnect")
	case code == reeve.Unauthenticated || code == reeve.NotFound:
		_ = conn.Close(websocket.StatusPolicyViolation, "no longer authorized")
	}
}
