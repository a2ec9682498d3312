package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"reeve"
)

func retrySeconds(d time.Duration) string { return strconv.Itoa(max(1, int(d.Seconds()))) }

// responseStream tells a response as it comes, in the events of its API.
type responseStream struct {
	*events
	body *v1ResponseBody
	n    int
	said string // what the message under way says so far
	open bool   // whether a message is under way
}

// event sends one event, numbered.
func (e *responseStream) event(name string, fields map[string]any) error {
	fields["type"], fields["sequence_number"] = name, e.n
	e.n++
	return e.send(name, fields)
}

func (e *responseStream) state(name string) error {
	return e.event(name, map[string]any{"response": e.body})
}

func (e *responseStream) item() v1Output {
	return v1Output{ID: "msg_" + e.body.ID, Type: "message", Status: "in_progress", Role: "assistant", Content: []v1TextPart{}}
}

// text tells a piece of the message.
func (e *responseStream) text(piece string) error {
	at := len(e.body.Output)
	if !e.open {
		e.open = true
		if err := e.event("response.output_item.added", map[string]any{"output_index": at, "item": e.item()}); err != nil {
			return err
		}
		if err := e.event("response.content_part.added", map[string]any{"item_id": e.item().ID, "output_index": at, "content_index": 0, "part": v1TextOf("")}); err != nil {
			return err
		}
	}
	e.said += piece
	return e.event("response.output_text.delta", map[string]any{"item_id": e.item().ID, "output_index": at, "content_index": 0, "delta": piece, "logprobs": []any{}})
}

// close ends the message under way.
func (e *responseStream) close() error {
	if !e.open {
		return nil
	}
	at, item := len(e.body.Output), e.item()
	item.Status, item.Content = "completed", []v1TextPart{v1TextOf(e.said)}
	if err := e.event("response.output_text.done", map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0, "text": e.said, "logprobs": []any{}}); err != nil {
		return err
	}
	if err := e.event("response.content_part.done", map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0, "part": item.Content[0]}); err != nil {
		return err
	}
	e.body.Output = append(e.body.Output, item)
	e.open, e.said = false, ""
	return e.event("response.output_item.done", map[string]any{"output_index": at, "item": item})
}

// call tells a call that the client is to make.
func (e *responseStream) call(f *reeve.Frame) error {
	if err := e.close(); err != nil {
		return err
	}
	at := len(e.body.Output)
	whole := e.body.call(f)
	begun, empty := whole, ""
	begun.Status, begun.Arguments = "in_progress", &empty
	if err := e.event("response.output_item.added", map[string]any{"output_index": at, "item": begun}); err != nil {
		return err
	}
	if err := e.event("response.function_call_arguments.delta", map[string]any{"item_id": whole.ID, "output_index": at, "delta": *whole.Arguments}); err != nil {
		return err
	}
	if err := e.event("response.function_call_arguments.done", map[string]any{"item_id": whole.ID, "output_index": at, "arguments": *whole.Arguments, "name": whole.Name}); err != nil {
		return err
	}
	return e.event("response.output_item.done", map[string]any{"output_index": at, "item": whole})
}

// v1RespondStream answers piece by piece.
func (s *server) v1RespondStream(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	e := &responseStream{events: newEvents(w, http.StatusOK), body: b}
	for _, name := range []string{"response.created", "response.in_progress"} {
		if err := e.state(name); err != nil {
			_ = t.left(r.Context(), err)
			t.reader.Close()
			return nil //nolint:nilerr // the client has gone
		}
	}
	var failure error
	usage, last, err := t.heard(r.Context(), func(seen v1Seen) error {
		failure = seen.fail
		if seen.text != "" {
			return e.text(seen.text)
		}
		if seen.call != nil {
			return e.call(seen.call)
		}
		return nil
	})
	failure = cmp.Or(failure, err)
	if failure == nil && !e.open && len(b.Output) == 0 {
		_ = e.text("") // a message, though an empty one
	}
	_ = e.close()
	noteFailure(r.Context(), failure)
	b.conclude(usage, last.Stop, failure)
	_ = e.state("response." + b.Status) // whoever does not listen any more has gone
	return nil
}
