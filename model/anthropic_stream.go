package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string                  `json:"id"`
		Model string                  `json:"model"`
		Usage lenient[anthropicUsage] `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type      string   `json:"type"`
		Text      fragment `json:"text"`
		JSON      fragment `json:"partial_json"`
		Thinking  fragment `json:"thinking"`
		Signature string   `json:"signature"`
		Stop      string   `json:"stop_reason"`
	} `json:"delta"`
	Usage lenient[anthropicUsage] `json:"usage"`
}

type anthropicUsage struct {
	Input   tokenCount `json:"input_tokens"`
	Output  tokenCount `json:"output_tokens"`
	Read    tokenCount `json:"cache_read_input_tokens"`
	Written tokenCount `json:"cache_creation_input_tokens"`
	Details struct {
		Thinking tokenCount `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// anthropicBlockStart is the content of a content_block_start event.
type anthropicBlockStart struct {
	Type      string          `json:"type"`
	Text      fragment        `json:"text"`
	Thinking  fragment        `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

var anthropicStops = map[string]Stop{"end_turn": StopEnd, "stop_sequence": StopEnd, "pause_turn": StopEnd,
	"tool_use": StopTools, "max_tokens": StopLength,
	"model_context_window_exceeded": StopLength, "refusal": StopRefused}

// anthropicThinking is a thinking block, sent back unchanged.
type anthropicThinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// readStream builds the answer from the events of a stream.
func (m *anthropicModel) readStream(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if err := m.server.checkStream(res, parseAnthropicError); err != nil {
		return Answer{}, err
	}
	stop := ""
	signatures := map[string]*strings.Builder{} // signatures of the thinking blocks, by key
	for data, err := range d.events(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		var e anthropicEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return Answer{}, m.server.invalidAnswer("%v", err)
		}
		key := fmt.Sprint(e.Index)
		switch e.Type {
		case "message_start":
			d.answer.ID, d.answer.Model = e.Message.ID, e.Message.Model
			e.Message.Usage.value.mergeInto(&d.answer.Usage)
		case "content_block_start":
			if err := m.startBlock(d, key, e.Block, signatures); err != nil {
				return Answer{}, err
			}
		case "content_block_delta":
			switch e.Delta.Type {
			case "text_delta":
				d.addText(key, e.Delta.Text)
			case "input_json_delta":
				d.addCall(key, "", "", e.Delta.JSON)
			case "thinking_delta", "signature_delta":
				signature := signatures[key]
				if signature == nil {
					return Answer{}, m.server.invalidAnswer("thinking without the start of a block")
				}
				if d.reserve(len(e.Delta.Signature)) {
					signature.WriteString(e.Delta.Signature)
				}
				d.addReasoning(key, e.Delta.Thinking)
			}
		case "content_block_stop":
			if signature := signatures[key]; signature != nil {
				p := d.addReasoning(key, "")
				d.setRaw(p, anthropicThinking{Type: "thinking", Thinking: d.closePart(p),
					Signature: signature.String()})
			}
		case "message_delta":
			stop = e.Delta.Stop
			e.Usage.value.mergeInto(&d.answer.Usage)
		case "message_stop":
			return d.finish(parseStop(anthropicStops, stop))
		case "error":
			kind, message := parseAnthropicError(data)
			status, ok := anthropicStatuses[kind]
			if !ok {
				status = http.StatusBadRequest
			}
			return Answer{}, m.server.statusError(status, nil, kind, message)
		}
	}
	return Answer{}, m.server.truncatedError(ctx)
}

// startBlock adds the first fragment of a content block.
func (m *anthropicModel) startBlock(d *draft, key string, raw json.RawMessage,
	signatures map[string]*strings.Builder) error {
	var b anthropicBlockStart
	if err := json.Unmarshal(raw, &b); err != nil {
		return m.server.invalidAnswer("%v", err)
	}
	switch b.Type {
	case "text":
		d.addText(key, b.Text)
	case "thinking":
		signatures[key] = &strings.Builder{}
		signatures[key].WriteString(b.Signature)
		d.addReasoning(key, b.Thinking)
	case "redacted_thinking":
		d.setRaw(d.addReasoning(key, ""), raw)
	case "tool_use":
		d.addCall(key, b.ID, b.Name, fragment(initialInput(string(b.Input))))
	}
	return nil
}

// mergeInto updates u with the counts of an event. Later events repeat counts or omit them, so the larger count wins.
// Anthropic's input tokens exclude cached tokens, unlike Usage.Input.
func (c anthropicUsage) mergeInto(u *Usage) {
	larger := func(known int64, reported tokenCount) int64 {
		if reported < 0 {
			return -1 // keep the invalid count visible to CountUsage
		}
		return max(known, int64(reported))
	}
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	u.CacheRead, u.CacheWrite = larger(u.CacheRead, c.Read), larger(u.CacheWrite, c.Written)
	u.Input = sumCounts(larger(fresh, c.Input), u.CacheRead, u.CacheWrite)
	u.Output, u.Reasoning = larger(u.Output, c.Output), larger(u.Reasoning, c.Details.Thinking)
}

// initialInput returns the arguments in the start event of a call. An empty object is a placeholder for the fragments
// that follow, and counts as no arguments.
func initialInput(raw string) string {
	if strings.Join(strings.Fields(raw), "") == "{}" || raw == "null" {
		return ""
	}
	return raw
}

// anthropicStatuses maps error types to HTTP statuses. An error in the middle of a stream has no status.
var anthropicStatuses = map[string]int{"rate_limit_error": 429, "overloaded_error": 529, "api_error": 500,
	"timeout_error": 504, "authentication_error": 401,
	"permission_error": 403, "not_found_error": 404, "billing_error": 402, "request_too_large": 413}

// parseAnthropicError parses the body of an error.
func parseAnthropicError(data []byte) (kind, message string) {
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal(data, &body) != nil || body.Error.Message == "" {
		return "", string(data)
	}
	return body.Error.Type, body.Error.Message
}

// parseStop maps a provider's stop reason. An unknown reason means StopEnd.
func parseStop[T ~string](stops map[T]Stop, reason T) Stop {
	if s, ok := stops[reason]; ok {
		return s
	}
	return StopEnd
}
