package httpapi

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// formatRetryAfter formats a duration for the Retry-After header, rounded up to whole seconds.
func formatRetryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// responseStream builds a response from the events of a turn, and sends the events of the Responses API. With a nil
// eventWriter it only builds the response.
type responseStream struct {
	*eventWriter
	body        *v1ResponseBody
	nextSeq     int
	messageText string // text of the current message
	inMessage   bool   // a message has begun
}

// sendEvent sends one event with the next sequence number.
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

// addEvent adds an event of the turn.
func (e *responseStream) addEvent(event v1Event) error {
	if event.text != "" {
		if err := e.addText(event.text); err != nil {
			return err
		}
	}
	if event.messageEnd {
		if err := e.closeMessage(); err != nil {
			return err
		}
	}
	if event.call != nil {
		return e.addCall(event.call.ToolCallID, event.call.Tool, event.call.Args)
	}
	return nil
}

// addText adds text to the current message, or begins a message.
func (e *responseStream) addText(piece string) error {
	at, item := len(e.body.Output), e.body.newMessage("in_progress")
	if !e.inMessage {
		e.inMessage = true
		if err := e.sendEvent("response.output_item.added",
			map[string]any{"output_index": at, "item": item}); err != nil {
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

// closeMessage ends the current message, if any.
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

// addCall adds a call that the client must make.
func (e *responseStream) addCall(id, tool string, args json.RawMessage) error {
	if err := e.closeMessage(); err != nil {
		return err
	}
	at, item := len(e.body.Output), e.body.newCall(id, tool, args)
	e.body.Output = append(e.body.Output, item)
	begun := item
	begun.Status, begun.Arguments = "in_progress", ""
	if err := e.sendEvent("response.output_item.added", map[string]any{"output_index": at, "item": begun}); err != nil {
		return err
	}
	if err := e.sendEvent("response.function_call_arguments.delta",
		map[string]any{"item_id": item.ID, "output_index": at,
			"delta": item.Arguments}); err != nil {
		return err
	}
	if err := e.sendEvent("response.function_call_arguments.done",
		map[string]any{"item_id": item.ID, "output_index": at,
			"arguments": item.Arguments, "name": item.Name}); err != nil {
		return err
	}
	return e.sendEvent("response.output_item.done", map[string]any{"output_index": at, "item": item})
}

// finish ends the output. An output without items gets an empty message.
func (e *responseStream) finish() error {
	if !e.inMessage && len(e.body.Output) == 0 {
		if err := e.addText(""); err != nil {
			return err
		}
	}
	return e.closeMessage()
}

// writeResponse waits for the end of the turn and sends one response.
func (h *openaiHandlers) writeResponse(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	e := &responseStream{body: b}
	var failure error
	usage, last, err := t.followToEnd(r.Context(), func(event v1Event) error {
		failure = event.failure
		return e.addEvent(event)
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

// streamResponse sends the turn as events.
func (h *openaiHandlers) streamResponse(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	e := &responseStream{eventWriter: newEventWriter(w, http.StatusOK), body: b}
	for _, name := range []string{"response.created", "response.in_progress"} {
		if err := e.sendState(name); err != nil {
			_ = t.stopFollowing(r.Context(), err)
			t.reader.Close()
			return nil //nolint:nilerr // the client has disconnected
		}
	}
	var failure error
	usage, last, err := t.followToEnd(r.Context(), func(event v1Event) error {
		failure = event.failure
		return e.addEvent(event)
	})
	failure = cmp.Or(failure, err)
	if failure == nil {
		_ = e.finish() // fails only if the client has disconnected, here and below
	} else {
		_ = e.closeMessage()
	}
	logServerFailure(r.Context(), failure)
	b.setOutcome(usage, last.Stop, failure)
	_ = e.sendState("response." + b.Status)
	return nil
}
