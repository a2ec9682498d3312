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
		ID    string                `json:"id"`
		Model string                `json:"model"`
		Usage tally[anthropicUsage] `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type      string `json:"type"`
		Text      piece  `json:"text"`
		JSON      piece  `json:"partial_json"`
		Thinking  piece  `json:"thinking"`
		Signature string `json:"signature"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage tally[anthropicUsage] `json:"usage"`
}

type anthropicUsage struct {
	Input   count `json:"input_tokens"`
	Output  count `json:"output_tokens"`
	Read    count `json:"cache_read_input_tokens"`
	Written count `json:"cache_creation_input_tokens"`
	Details struct {
		Thinking count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// anthropicStart is a block as it begins.
type anthropicStart struct {
	Type      string          `json:"type"`
	Text      piece           `json:"text"`
	Thinking  piece           `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

var anthropicStops = map[string]Stop{"end_turn": StopEnd, "stop_sequence": StopEnd, "pause_turn": StopEnd,
	"tool_use": StopTools, "max_tokens": StopLength,
	"model_context_window_exceeded": StopLength, "refusal": StopRefused}

// anthropicThinking is a thinking block, to be sent back as it was.
type anthropicThinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// listen turns the events of a stream into an answer.
func (m *anthropicModel) listen(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if err := m.server.check(res, anthropicError); err != nil {
		return Answer{}, err
	}
	stop := ""
	thoughts := map[string]*strings.Builder{} // their signatures
	for data, err := range d.events(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		var e anthropicEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return Answer{}, m.server.nonsense("%v", err)
		}
		key := fmt.Sprint(e.Index)
		switch e.Type {
		case "message_start":
			d.answer.ID, d.answer.Model = e.Message.ID, e.Message.Model
			e.Message.Usage.of.note(&d.answer.Usage)
		case "content_block_start":
			if err := m.begin(d, key, e.Block, thoughts); err != nil {
				return Answer{}, err
			}
		case "content_block_delta":
			switch e.Delta.Type {
			case "text_delta":
				d.say(key, e.Delta.Text)
			case "input_json_delta":
				d.call(key, "", "", e.Delta.JSON)
			case "thinking_delta", "signature_delta":
				t := thoughts[key]
				if t == nil {
					return Answer{}, m.server.nonsense("a thought that was not begun")
				}
				if d.takes(len(e.Delta.Signature)) {
					t.WriteString(e.Delta.Signature)
				}
				d.think(key, e.Delta.Thinking)
			}
		case "content_block_stop":
			if t := thoughts[key]; t != nil {
				p := d.think(key, "")
				d.keep(p, anthropicThinking{Type: "thinking", Thinking: d.end(p), Signature: t.String()})
			}
		case "message_delta":
			stop = e.Delta.Stop
			e.Usage.of.note(&d.answer.Usage)
		case "message_stop":
			return d.finish(known(anthropicStops, stop))
		case "error":
			kind, message := anthropicError(data)
			status, ok := anthropicKinds[kind]
			if !ok {
				status = http.StatusBadRequest
			}
			return Answer{}, m.server.refused(status, nil, kind, message)
		}
	}
	return Answer{}, m.server.cut(ctx)
}

// begin takes the beginning of a block.
func (m *anthropicModel) begin(d *draft, key string, raw json.RawMessage, thoughts map[string]*strings.Builder) error {
	var b anthropicStart
	if err := json.Unmarshal(raw, &b); err != nil {
		return m.server.nonsense("%v", err)
	}
	switch b.Type {
	case "text":
		d.say(key, b.Text)
	case "thinking":
		thoughts[key] = &strings.Builder{}
		thoughts[key].WriteString(b.Signature)
		d.think(key, b.Thinking)
	case "redacted_thinking":
		d.keep(d.think(key, ""), raw)
	case "tool_use":
		d.call(key, b.ID, b.Name, piece(startedInput(string(b.Input))))
	}
	return nil
}

// note takes over what was counted; later events repeat the counts or leave them out. Anthropic counts what is cached
// apart from the rest.
func (c anthropicUsage) note(u *Usage) {
	more := func(was int64, is count) int64 {
		if is < 0 {
			return -1 // which cannot be true, and is not covered up
		}
		return max(was, int64(is))
	}
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	u.CacheRead, u.CacheWrite = more(u.CacheRead, c.Read), more(u.CacheWrite, c.Written)
	u.Input = total(more(fresh, c.Input), u.CacheRead, u.CacheWrite)
	u.Output, u.Reasoning = more(u.Output, c.Output), more(u.Reasoning, c.Details.Thinking)
}

// startedInput is what a call has of its arguments when it begins: usually an empty object, which the pieces then
// replace.
func startedInput(raw string) string {
	if strings.Join(strings.Fields(raw), "") == "{}" || raw == "null" {
		return ""
	}
	return raw
}

// anthropicKinds are the statuses of the types of error, which come without one in mid-stream.
var anthropicKinds = map[string]int{"rate_limit_error": 429, "overloaded_error": 529, "api_error": 500,
	"timeout_error": 504, "authentication_error": 401,
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

// known looks a provider's reason to stop up. One that is new means that it stopped; what it said decides the rest.
func known[T ~string](stops map[T]Stop, reason T) Stop {
	if s, ok := stops[reason]; ok {
		return s
	}
	return StopEnd
}
