package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"reeve"
)

const (
	eventType = "text/event-stream"
	// between signs of life; also how soon one who may no longer listen is cut off, unless a server is told otherwise
	defaultHeartbeat = 15 * time.Second
	eventWriteTimeout     = 30 * time.Second // a client that takes nothing for that long is gone
)

// eventWriter is an answer of server-sent events. What is added goes out with the next flush.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	out     bytes.Buffer
}

// newEventWriter begins one.
func newEventWriter(w http.ResponseWriter, status int) *eventWriter {
	h := w.Header()
	h.Set("Content-Type", eventType)
	h.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	w.WriteHeader(status)
	return &eventWriter{w: w, control: http.NewResponseController(w)}
}

// add adds one event. One without a number does not change where a client resumes; one without a name is a message.
func (e *eventWriter) add(id int64, name string, data any) {
	text, ok := data.(json.RawMessage)
	if !ok {
		b, err := json.Marshal(data)
		if err != nil { // it is one of our own types
			panic(err)
		}
		text = b
	}
	if id > 0 {
		fmt.Fprintf(&e.out, "id: %d\n", id)
	}
	if name != "" {
		fmt.Fprintf(&e.out, "event: %s\n", name)
	}
	fmt.Fprintf(&e.out, "data: %s\n\n", text)
}

// addKeepAlive adds a sign of life, which clients pass over.
func (e *eventWriter) addKeepAlive() { e.out.WriteString(": still here\n\n") }

// addDone adds what clients take for the end of all.
func (e *eventWriter) addDone() { e.add(0, "", json.RawMessage("[DONE]")) }

// flush sends what was added. It fails only when the client has gone.
func (e *eventWriter) flush() error {
	err := e.control.SetWriteDeadline(reeve.Now().Add(eventWriteTimeout))
	if err == nil {
		_, err = e.out.WriteTo(e.w)
	}
	if err == nil {
		err = e.control.Flush()
	}
	if err != nil {
		return &reeve.Error{Code: reeve.Canceled, Message: "the client went away", Err: err}
	}
	return nil
}

// send adds one event and flushes.
func (e *eventWriter) send(name string, data any) error {
	e.add(0, name, data)
	return e.flush()
}

// serveEvents lets f answer with events until f returns, or the client or the server goes.
func (s *Streams) serveEvents(c huma.Context, status int, f func(context.Context, *eventWriter)) {
	r, w := humago.Unwrap(c)
	if !s.enter() {
		newProblem(r.Context(), errStopping).write(w)
		return
	}
	defer s.leave()
	ctx, done := s.context(r.Context())
	defer done()
	f(ctx, newEventWriter(w, status))
}
