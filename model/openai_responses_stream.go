package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

type responsesEvent struct {
	Type     string          `json:"type"`
	Output   int             `json:"output_index"`
	Summary  int             `json:"summary_index"`
	Delta    piece           `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	Error    json.RawMessage `json:"error"`
	Response struct {
		ID         string `json:"id"`
		Model      string `json:"model"`
		Status     string `json:"status"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Usage tally[struct {
			Input count `json:"input_tokens"`
			Read  struct {
				Cached  count `json:"cached_tokens"`
				Written count `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
			Output  count `json:"output_tokens"`
			Details struct {
				Reasoning count `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}] `json:"usage"`
	} `json:"response"`
}

type responsesItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments piece  `json:"arguments"`
	Phase     string `json:"phase"`
	Content   []struct {
		Text    piece `json:"text"`
		Refusal piece `json:"refusal"`
	} `json:"content"`
}

// listen turns the events of a stream into an answer.
func (m *responsesModel) listen(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if err := m.server.check(res, openaiError); err != nil {
		return Answer{}, err
	}
	refused := false
	for data, err := range d.events(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		if string(data) == "[DONE]" {
			break
		}
		var e responsesEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return Answer{}, m.server.nonsense("%v", err)
		}
		key := fmt.Sprint(e.Output)
		switch e.Type {
		case "response.created", "response.in_progress":
			d.answer.ID = e.Response.ID
			if e.Response.Model != "" {
				d.answer.Model = e.Response.Model
			}
		case "response.output_text.delta":
			d.say(key, e.Delta)
		case "response.refusal.delta":
			refused = true
			d.say(key, e.Delta)
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			d.think(key, e.Delta)
		case "response.reasoning_summary_part.added":
			if e.Summary > 0 {
				d.think(key, "\n\n")
			}
		case "response.output_item.added", "response.output_item.done":
			if err := m.item(d, key, e.Item, e.Type == "response.output_item.done"); err != nil {
				return Answer{}, err
			}
		case "response.function_call_arguments.delta":
			d.call(key, "", "", e.Delta)
		case "response.completed", "response.incomplete":
			return m.end(d, e, refused)
		case "response.failed":
			e.count(d)
			return d.cost(), openaiRefused(m.server, e.Response.Error.Code, e.Response.Error.Message)
		case "error":
			if len(e.Error) > 0 { // the form that it has at some servers
				e.Code, e.Message = openaiError(data)
			}
			return Answer{}, openaiRefused(m.server, e.Code, e.Message)
		}
	}
	return Answer{}, m.server.cut(ctx)
}

// item takes an item as it begins, and as it was in the end: servers that do not stream pieces of it give it then only.
func (m *responsesModel) item(d *draft, key string, raw json.RawMessage, done bool) error {
	var item responsesItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return m.server.nonsense("%v", err)
	}
	switch {
	case item.Type == "function_call":
		p := d.call(key, item.CallID, item.Name, "")
		if p.text.Len() == 0 {
			d.call(key, "", "", item.Arguments)
		}
	case !done:
	case item.Type == "reasoning":
		d.keep(d.think(key, ""), raw)
	case item.Type == "message":
		p := d.part(key, Text)
		if p.text.Len() == 0 {
			for _, c := range item.Content {
				d.say(key, c.Text+c.Refusal)
			}
		}
		if item.Phase != "" {
			d.keep(p, responsesKept{Phase: item.Phase})
		}
	}
	return nil
}

// count takes over what was counted.
func (e responsesEvent) count(d *draft) {
	u := e.Response.Usage.of
	d.answer.Usage = Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.Read.Cached),
		CacheWrite: int64(u.Read.Written), Reasoning: int64(u.Details.Reasoning)}
}

func (m *responsesModel) end(d *draft, e responsesEvent, refused bool) (Answer, error) {
	r := e.Response
	if r.ID != "" {
		d.answer.ID = r.ID
	}
	e.count(d)
	switch {
	case refused || r.Incomplete.Reason == "content_filter":
		return d.finish(StopRefused)
	case e.Type == "response.incomplete" || r.Status == "incomplete":
		return d.finish(StopLength)
	default:
		return d.finish(StopEnd)
	}
}
