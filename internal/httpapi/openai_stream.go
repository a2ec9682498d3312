package httpapi

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// formatRetryAfter is a time to wait as a header says it, in whole seconds, and never less than it is.
func formatRetryAfter(d time.Duration) string { return strconv.Itoa(max(1, int(math.Ceil(d.Seconds())))) }

// responseStream makes a response of what a turn says, and tells of it in the events of its API. Without events it only
// makes it.
type responseStream struct {
	*eventWriter
	body *v1ResponseBody
	nextSeq    int
	messageText string // what the message under way says so far
	inMessage bool   // whether a message is under way
}

// sendEvent sends one event, numbered.
func (e *responseStream) sendEvent(name string, fields map[string]any) error {
	if e.eventWriter == nil {
		return nil
	}
	fields["type"], fields["sequence_number"] = name, e.nextSeq
	e.nextSeq++
	return e.send(name, fields)
}

func (e *responseStream) sendState(name string) error {
	return e.sendEvent(name, map[string]any{"response": e.body})
}

// addEvent adds what a turn says next.
func (e *responseStream) addEvent(seen v1Event) error {
	if seen.text != "" {
		if err := e.addText(seen.text); err != nil {
			return err
		}
	}
	if seen.messageEnd {
		if err := e.closeMessage(); err != nil {
			return err
		}
	}
	if seen.call != nil {
		return e.addCall(seen.call.ToolCallID, seen.call.Tool, seen.call.Args)
	}
	return nil
}

// addText adds a piece of a message, which it begins if none is under way.
func (e *responseStream) addText(piece string) error {
	at, item := len(e.body.Output), e.body.newMessage("in_progress")
	if !e.inMessage {
		e.inMessage = true
		if err := e.sendEvent("response.output_item.added", map[string]any{"output_index": at, "item": item}); err != nil {
			return err
		}
		if err := e.sendEvent("response.content_part.added",
			map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0,
				"part": newV1TextPart("")}); err != nil {
			return err
		}
	}
	e.messageText += piece
	return e.sendEvent("response.output_text.delta",
		map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0, "delta": piece,
			"logprobs": []any{}})
}

// closeMessage ends the message under way, if one is.
func (e *responseStream) closeMessage() error {
	if !e.inMessage {
		return nil
	}
	at, part := len(e.body.Output), newV1TextPart(e.messageText)
	item := e.body.newMessage("completed", part)
	e.body.Output = append(e.body.Output, item)
	e.inMessage, e.messageText = false, ""
	if err := e.sendEvent("response.output_text.done",
		map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0, "text": part.Text,
			"logprobs": []any{}}); err != nil {
		return err
	}
	if err := e.sendEvent("response.content_part.done",
		map[string]any{"item_id": item.ID, "output_index": at, "content_index": 0,
			"part": part}); err != nil {
		return err
	}
	return e.sendEvent("response.output_item.done", map[string]any{"output_index": at, "item": item})
}

// addCall adds a call that the client is to make.
func (e *responseStream) addCall(id, tool string, args json.RawMessage) error {
	if err := e.closeMessage(); err != nil {
		return err
	}
	at, whole := len(e.body.Output), e.body.newCall(id, tool, args)
	e.body.Output = append(e.body.Output, whole)
	begun := whole
	begun.Status, begun.Arguments = "in_progress", ""
	if err := e.sendEvent("response.output_item.added", map[string]any{"output_index": at, "item": begun}); err != nil {
		return err
	}
	if err := e.sendEvent("response.function_call_arguments.delta", map[string]any{"item_id": whole.ID, "output_index": at,
		"delta": whole.Arguments}); err != nil {
		return err
	}
	if err := e.sendEvent("response.function_call_arguments.done", map[string]any{"item_id": whole.ID, "output_index": at,
		"arguments": whole.Arguments, "name": whole.Name}); err != nil {
		return err
	}
	return e.sendEvent("response.output_item.done", map[string]any{"output_index": at, "item": whole})
}

// finish ends the response's output. One without any has an empty message.
func (e *responseStream) finish() error {
	if !e.inMessage && len(e.body.Output) == 0 {
		if err := e.addText(""); err != nil {
			return err
		}
	}
	return e.closeMessage()
}

// writeResponse answers when all has been said.
func (h *openaiHandlers) writeResponse(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	e := &responseStream{body: b}
	var failure error
	usage, last, err := t.followToEnd(r.Context(), func(seen v1Event) error {
		failure = seen.failure
		return e.addEvent(seen)
	})
	if err := cmp.Or(failure, err); err != nil {
		return err
	}
	if err := e.finish(); err != nil {
		return err
	}
	b.setOutcome(usage, last.Stop, nil)
	writeV1JSON(w, http.StatusOK, b)
	return nil
}

// streamResponse answers piece by piece.
func (h *openaiHandlers) streamResponse(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	e := &responseStream{eventWriter: newEventWriter(w, http.StatusOK), body: b}
	for _, name := range []string{"response.created", "response.in_progress"} {
		if err := e.sendState(name); err != nil {
			_ = t.stopFollowing(r.Context(), err)
			t.reader.Close()
			return nil //nolint:nilerr // the client has gone
		}
	}
	var failure error
	usage, last, err := t.followToEnd(r.Context(), func(seen v1Event) error {
		failure = seen.failure
		return e.addEvent(seen)
	})
	failure = cmp.Or(failure, err)
	if failure == nil {
		_ = e.finish() // the client may have gone, here and below
	} else {
		_ = e.closeMessage()
	}
	logServerFailure(r.Context(), failure)
	b.setOutcome(usage, last.Stop, failure)
	_ = e.sendState("response." + b.Status)
	return nil
}
