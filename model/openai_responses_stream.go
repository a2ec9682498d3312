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
	Delta    fragment        `json:"delta"`
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
		Usage lenient[struct {
			Input tokenCount `json:"input_tokens"`
			Read  struct {
				Cached  tokenCount `json:"cached_tokens"`
				Written tokenCount `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
			Output  tokenCount `json:"output_tokens"`
			Details struct {
				Reasoning tokenCount `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}] `json:"usage"`
	} `json:"response"`
}

type responsesItem struct {
	Type      string   `json:"type"`
	CallID    string   `json:"call_id"`
	Name      string   `json:"name"`
	Arguments fragment `json:"arguments"`
	Phase     string   `json:"phase"`
	Content   []struct {
		Text    fragment `json:"text"`
		Refusal fragment `json:"refusal"`
	} `json:"content"`
}

// readStream builds the answer from the events of a stream.
func (m *responsesModel) readStream(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if err := m.server.checkStream(res, parseOpenAIError); err != nil {
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
			return Answer{}, m.server.invalidAnswer("%v", err)
		}
		key := fmt.Sprint(e.Output)
		switch e.Type {
		case "response.created", "response.in_progress":
			d.answer.ID = e.Response.ID
			if e.Response.Model != "" {
				d.answer.Model = e.Response.Model
			}
		case "response.output_text.delta":
			d.addText(key, e.Delta)
		case "response.refusal.delta":
			refused = true
			d.addText(key, e.Delta)
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			d.addReasoning(key, e.Delta)
		case "response.reasoning_summary_part.added":
			if e.Summary > 0 {
				d.addReasoning(key, "\n\n")
			}
		case "response.output_item.added", "response.output_item.done":
			if err := m.addItem(d, key, e.Item, e.Type == "response.output_item.done"); err != nil {
				return Answer{}, err
			}
		case "response.function_call_arguments.delta":
			d.addCall(key, "", "", e.Delta)
		case "response.completed", "response.incomplete":
			return m.finishAnswer(d, e, refused)
		case "response.failed":
			e.setUsage(d)
			return d.usageOnly(), openaiStreamError(m.server, e.Response.Error.Code, e.Response.Error.Message)
		case "error":
			if len(e.Error) > 0 { // some servers nest the error
				e.Code, e.Message = parseOpenAIError(data)
			}
			return Answer{}, openaiStreamError(m.server, e.Code, e.Message)
		}
	}
	return Answer{}, m.server.truncatedError(ctx)
}

// addItem adds an output item at its start or its end. Servers that do not stream fragments send the content only at
// the end.
func (m *responsesModel) addItem(d *draft, key string, raw json.RawMessage, done bool) error {
	var item responsesItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return m.server.invalidAnswer("%v", err)
	}
	switch {
	case item.Type == "function_call":
		p := d.addCall(key, item.CallID, item.Name, "")
		if p.text.Len() == 0 {
			d.addCall(key, "", "", item.Arguments)
		}
	case !done:
	case item.Type == "reasoning":
		d.setRaw(d.addReasoning(key, ""), raw)
	case item.Type == "message":
		p := d.getPart(key, Text)
		if p.text.Len() == 0 {
			for _, c := range item.Content {
				d.addText(key, c.Text+c.Refusal)
			}
		}
		if item.Phase != "" {
			d.setRaw(p, responsesRaw{Phase: item.Phase})
		}
	}
	return nil
}

// setUsage copies the token counts of the response to the answer.
func (e responsesEvent) setUsage(d *draft) {
	u := e.Response.Usage.value
	d.answer.Usage = Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.Read.Cached),
		CacheWrite: int64(u.Read.Written), Reasoning: int64(u.Details.Reasoning)}
}

func (m *responsesModel) finishAnswer(d *draft, e responsesEvent, refused bool) (Answer, error) {
	r := e.Response
	if r.ID != "" {
		d.answer.ID = r.ID
	}
	e.setUsage(d)
	switch {
	case refused || r.Incomplete.Reason == "content_filter":
		return d.finish(StopRefused)
	case e.Type == "response.incomplete" || r.Status == "incomplete":
		return d.finish(StopLength)
	default:
		return d.finish(StopEnd)
	}
}
