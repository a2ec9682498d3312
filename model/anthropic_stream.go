package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"reeve"
)

var anthropicStops = map[anthropic.StopReason]Stop{
	anthropic.StopReasonEndTurn: StopEnd, anthropic.StopReasonStopSequence: StopEnd, anthropic.StopReasonPauseTurn: StopEnd, anthropic.StopReasonToolUse: StopTools,
	anthropic.StopReasonMaxTokens: StopLength, anthropic.StopReasonModelContextWindowExceeded: StopLength, anthropic.StopReasonRefusal: StopRefused,
}

// anthropicThinking is a thinking block in the making, to be sent back as it was.
type anthropicThinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// listen turns the events of a stream into an answer.
func (m *anthropicModel) listen(ctx context.Context, st *ssestream.Stream[anthropic.MessageStreamEventUnion], d *draft) (Answer, error) {
	defer func() { _ = st.Close() }()
	var stop anthropic.StopReason
	thoughts := map[string]*anthropicThinking{}
	for st.Next() {
		e := st.Current()
		key := fmt.Sprint(e.Index)
		switch e.Type {
		case "message_start":
			d.answer.ID, d.answer.Model = e.Message.ID, e.Message.Model
			u := e.Message.Usage
			m.usage(d, u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
		case "content_block_start":
			b := e.ContentBlock
			switch b.Type {
			case "text":
				d.say(key, b.Text)
			case "thinking":
				thoughts[key] = &anthropicThinking{Type: "thinking", Thinking: b.Thinking, Signature: b.Signature}
				d.think(key, b.Thinking)
			case "redacted_thinking":
				d.think(key, "").Raw = seal(m.server.Name, json.RawMessage(b.RawJSON()))
			case "tool_use":
				d.call(key, b.ID, b.Name, startedInput(b.JSON.Input.Raw()))
			}
		case "content_block_delta":
			switch e.Delta.Type {
			case "text_delta":
				d.say(key, e.Delta.Text)
			case "input_json_delta":
				d.call(key, "", "", e.Delta.PartialJSON)
			case "thinking_delta", "signature_delta":
				t := thoughts[key]
				if t == nil {
					return Answer{}, m.server.nonsense("a thought that was not begun")
				}
				t.Thinking, t.Signature = t.Thinking+e.Delta.Thinking, t.Signature+e.Delta.Signature
				d.think(key, e.Delta.Thinking)
			}
		case "content_block_stop":
			if t := thoughts[key]; t != nil {
				d.think(key, "").Raw = seal(m.server.Name, t)
			}
		case "message_delta":
			stop = e.Delta.StopReason
			u := e.Usage
			m.usage(d, u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
		case "message_stop":
			return d.finish(known(anthropicStops, stop))
		}
	}
	if err := st.Err(); err != nil {
		return Answer{}, m.failed(ctx, err)
	}
	return Answer{}, m.server.cut(ctx)
}

// usage notes what was counted; later events repeat the counts or leave them out. Anthropic counts what is cached apart from the rest.
func (m *anthropicModel) usage(d *draft, input, read, write, output, reasoning int64) {
	u := &d.answer.Usage
	fresh := u.Input - u.CacheRead - u.CacheWrite
	u.CacheRead, u.CacheWrite = max(u.CacheRead, read), max(u.CacheWrite, write)
	u.Input = max(fresh, input) + u.CacheRead + u.CacheWrite
	u.Output, u.Reasoning = max(u.Output, output), max(u.Reasoning, reasoning)
}

// startedInput is what a call has of its arguments when it begins: usually an empty object, which the pieces then replace.
func startedInput(raw string) string {
	if strings.Join(strings.Fields(raw), "") == "{}" || raw == "null" {
		return ""
	}
	return raw
}

// anthropicKinds are the statuses of the types of error, which come without one in mid-stream.
var anthropicKinds = map[string]int{"rate_limit_error": 429, "overloaded_error": 529, "api_error": 500, "timeout_error": 504, "authentication_error": 401,
	"permission_error": 403, "not_found_error": 404, "billing_error": 402, "request_too_large": 413}

// anthropicError reads the body of an error.
func anthropicError(data []byte) (kind, message string) {
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal(data, &body) != nil || body.Error.Message == "" {
		return "", string(data)
	}
	return body.Error.Type, body.Error.Message
}

// failed types an error of a stream.
func (m *anthropicModel) failed(ctx context.Context, err error) error {
	var typed *reeve.Error
	var e *anthropic.Error
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.As(err, &e):
		kind, message := anthropicError([]byte(e.RawJSON()))
		status, ok := anthropicKinds[kind]
		if !ok {
			status = http.StatusBadRequest
		}
		return m.server.refused(status, nil, kind, message)
	case errors.As(err, &syntax):
		return m.server.nonsense("%v", err)
	default:
		return m.server.lost(ctx, err)
	}
}

// known looks a provider's reason to stop up. One that is new means that it stopped; what it said decides the rest.
func known[T ~string](stops map[T]Stop, reason T) Stop {
	if s, ok := stops[reason]; ok {
		return s
	}
	return StopEnd
}
