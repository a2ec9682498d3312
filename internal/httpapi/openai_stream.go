package httpapi

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// retrySeconds is a time to wait as a header says it, in whole seconds, and never less than it is.
func retrySeconds(d time.Duration) string { return strconv.Itoa(max(1, int(math.Ceil(d.Seconds())))) }

// responseStream makes a response of what a turn says, and tells of it in the events of its API. Without events it only
// makes it.
type responseStream struct {
	*events
	body *v1ResponseBody
	n    int
	said string // what the message under way says so far
	open bool   // whether a message is under way
}

// event sends one event, numbered.
func (e *responseStream) event(name string, fields map[string]any) error {
	if e.events == nil {
		return nil
	}
	fields["type"], fields["sequence_number"] = name, e.n
	e.n++
	return e.send(name, fields)
}

func (e *responseStream) state(name string) error {
	return e.event(name, map[string]any{"response": e.body})
}

// tell adds what a turn says next.
func (e *responseStream) tell(seen v1Seen) error {
	if seen.text != "" {
		if err := e.text(seen.text); err != nil {
			return err
		}
	}
	if seen.end {
		if err := e.close(); err != nil {
			return err
		}
	}
	if seen.call != nil {
		return e.call(seen.call.ToolCallID, seen.call.Tool, seen.call.Args)
	}
	return nil
}

// text adds a piece of a message, which it begins if none is under way.
func (e *responseStream) text(piece string) error {
	at, item := len(e.body.Output), e.body.message("in_progress")
	if !e.open {
		e.open = true
		if err := e.event("response.output_item.added", map[string]any{"output_index": at, "item": item}); err != nil {
			return err
		}
		if err := e.event("response.content_part.added",
			map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0,
				"part": v1TextOf("")}); err != nil {
			return err
		}
	}
	e.said += piece
	return e.event("response.output_text.delta",
		map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0, "delta": piece,
			"logprobs": []any{}})
}

// close ends the message under way, if one is.
func (e *responseStream) close() error {
	if !e.open {
		return nil
	}
	at, part := len(e.body.Output), v1TextOf(e.said)
	item := e.body.message("completed", part)
	e.body.Output = append(e.body.Output, item)
	e.open, e.said = false, ""
	if err := e.event("response.output_text.done",
		map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0, "text": part.Text,
			"logprobs": []any{}}); err != nil {
		return err
	}
	if err := e.event("response.content_part.done",
		map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0,
			"part": part}); err != nil {
		return err
	}
	return e.event("response.output_item.done", map[string]any{"output_index": at, "item": item})
}

// call adds a call that the client is to make.
func (e *responseStream) call(id, tool string, args json.RawMessage) error {
	if err := e.close(); err != nil {
		return err
	}
	at, whole := len(e.body.Output), e.body.call(id, tool, args)
	e.body.Output = append(e.body.Output, whole)
	begun := whole
	begun.Status, begun.Arguments = "in_progress", ""
	if err := e.event("response.output_item.added", map[string]any{"output_index": at, "item": begun}); err != nil {
		return err
	}
	if err := e.event("response.function_call_arguments.delta", map[string]any{"item_id": whole.ID, "output_index": at,
		"delta": whole.Arguments}); err != nil {
		return err
	}
	if err := e.event("response.function_call_arguments.done", map[string]any{"item_id": whole.ID, "output_index": at,
		"arguments": whole.Arguments, "name": whole.Name}); err != nil {
		return err
	}
	return e.event("response.output_item.done", map[string]any{"output_index": at, "item": whole})
}

// finish ends the response's output. One without any has an empty message.
func (e *responseStream) finish() error {
	if !e.open && len(e.body.Output) == 0 {
		if err := e.text(""); err != nil {
			return err
		}
	}
	return e.close()
}

// v1RespondWhole answers when all has been said.
func (h *openaiHandlers) v1RespondWhole(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	e := &responseStream{body: b}
	var failure error
	usage, last, err := t.heard(r.Context(), func(seen v1Seen) error {
		failure = seen.fail
		return e.tell(seen)
	})
	if err := cmp.Or(failure, err); err != nil {
		return err
	}
	if err := e.finish(); err != nil {
		return err
	}
	b.conclude(usage, last.Stop, nil)
	v1Write(w, http.StatusOK, b)
	return nil
}

// v1RespondStream answers piece by piece.
func (h *openaiHandlers) v1RespondStream(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
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
		return e.tell(seen)
	})
	failure = cmp.Or(failure, err)
	if failure == nil {
		_ = e.finish() // the client may have gone, here and below
	} else {
		_ = e.close()
	}
	noteFailure(r.Context(), failure)
	b.conclude(usage, last.Stop, failure)
	_ = e.state("response." + b.Status)
	return nil
}
