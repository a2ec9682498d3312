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
	// default interval of keep-alive messages and of permit checks
	defaultHeartbeat  = 15 * time.Second
	eventWriteTimeout = 30 * time.Second // a client that accepts no data for this long counts as disconnected
)

// eventWriter writes a response of server-sent events. Added events are sent by the next flush.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	out     bytes.Buffer
}

// newEventWriter writes the headers of the response.
func newEventWriter(w http.ResponseWriter, status int) *eventWriter {
	h := w.Header()
	h.Set("Content-Type", eventType)
	h.Set("X-Accel-Buffering", "no") // proxies must not buffer events
	w.WriteHeader(status)
	return &eventWriter{w: w, control: http.NewResponseController(w)}
}

// add adds one event. An event with id 0 has no id, so it does not change where a client resumes. An event without a
// name has the default type, message.
func (e *eventWriter) add(id int64, name string, data any) {
	text, ok := data.(json.RawMessage)
	if !ok {
		b, err := json.Marshal(data)
		if err != nil { // our own types always marshal
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

// addKeepAlive adds a comment, which clients ignore.
func (e *eventWriter) addKeepAlive() { e.out.WriteString(": keep-alive\n\n") }

// addDone adds the event [DONE], which marks the end of the stream.
func (e *eventWriter) addDone() { e.add(0, "", json.RawMessage("[DONE]")) }

// flush sends the added events. It fails with CANCELED if the client has disconnected.
func (e *eventWriter) flush() error {
	err := e.control.SetWriteDeadline(reeve.Now().Add(eventWriteTimeout))
	if err == nil {
		_, err = e.out.WriteTo(e.w)
	}
	if err == nil {
		err = e.control.Flush()
	}
	if err != nil {
		return &reeve.Error{Code: reeve.Canceled, Message: "the client disconnected", Err: err}
	}
	return nil
}

// send adds one event and flushes.
func (e *eventWriter) send(name string, data any) error {
	e.add(0, name, data)
	return e.flush()
}

// serveEvents calls f to write events. The context of f ends when the client disconnects or the server stops.
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
