package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// v1OutputMessage is a message in the output of a response.
type v1OutputMessage struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []v1TextPart `json:"content"`
}

// v1OutputCall is a call in the output of a response, which the client must make.
type v1OutputCall struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type v1TextPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

func newV1TextPart(text string) v1TextPart {
	return v1TextPart{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// v1ResponseBody is a response of the Responses API.
type v1ResponseBody struct {
	ID              string            `json:"id"`
	Object          string            `json:"object"`
	CreatedAt       int64             `json:"created_at"`
	Status          string            `json:"status"`
	Background      bool              `json:"background"`
	Error           *v1ResponseError  `json:"error"`
	Incomplete      map[string]string `json:"incomplete_details"`
	Instructions    *string           `json:"instructions"`
	MaxOutputTokens *int              `json:"max_output_tokens"`
	Metadata        json.RawMessage   `json:"metadata"`
	Model           string            `json:"model"`
	Output          []any             `json:"output"` // of v1OutputMessage and v1OutputCall
	Parallel        bool              `json:"parallel_tool_calls"`
	Previous        *string           `json:"previous_response_id"`
	Reasoning       v1Reasoning       `json:"reasoning"`
	Temperature     *float64          `json:"temperature"`
	Text            v1TextConfig      `json:"text"`
	ToolChoice      any               `json:"tool_choice"` // a text, or the function that must be called
	Tools           []v1FunctionTool  `json:"tools"`
	TopP            *float64          `json:"top_p"`
	Truncation      string            `json:"truncation"`
	Usage           *v1ResponseUsage  `json:"usage,omitempty"`
}

type v1ResponseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type v1Reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type v1TextConfig struct {
	Format v1TextFormat `json:"format"`
}

type v1TextFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Strict *bool           `json:"strict,omitempty"`
}

type v1FunctionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

type v1ResponseUsage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

// newV1Response returns a response without output.
func newV1Response(t reeve.Turn, name string, g reeve.ClientHistory, instructions string) *v1ResponseBody {
	b := &v1ResponseBody{ID: v1ResponsePrefix + t.ID, Object: "response", CreatedAt: t.StartedAt.Unix(),
		Status: "in_progress", Model: name, Output: []any{}, Parallel: !g.OneCall, Temperature: g.Temperature,
		TopP:       g.TopP,
		Truncation: "disabled", Metadata: g.Metadata, Tools: []v1FunctionTool{}, ToolChoice: cmp.Or(g.Choice, "auto"),
		Text: v1TextConfig{v1TextFormat{Type: "text"}}}
	if b.Metadata == nil {
		b.Metadata = json.RawMessage("{}")
	}
	if g.ChoiceTool != "" {
		b.ToolChoice = map[string]string{"type": "function", "name": g.ChoiceTool}
	}
	if g.MaxTokens > 0 {
		b.MaxOutputTokens = &g.MaxTokens
	}
	if g.Effort != "" {
		b.Reasoning.Effort = &g.Effort
	}
	if instructions != "" {
		b.Instructions = &instructions
	}
	if g.Previous != "" {
		b.Previous = &g.Previous
	}
	var format model.Format
	if len(g.Format) > 0 && json.Unmarshal(g.Format, &format) == nil {
		b.Text.Format = v1TextFormat{Type: "json_object"}
		if len(format.Schema) > 0 {
			b.Text.Format = v1TextFormat{Type: "json_schema", Name: format.Name, Schema: format.Schema,
				Strict: &format.Strict}
		}
	}
	var offered []model.Tool
	_ = json.Unmarshal(g.Offered, &offered) // stored by beginTurn; may be empty
	for _, o := range offered {
		tool := v1FunctionTool{Type: "function", Name: o.Name, Parameters: o.Parameters}
		if o.Description != "" {
			tool.Description = &o.Description
		}
		b.Tools = append(b.Tools, tool)
	}
	return b
}

// nextItemID returns the id of the next output item.
func (b *v1ResponseBody) nextItemID(prefix string) string {
	return fmt.Sprint(prefix, "_", len(b.Output), "_", b.ID)
}

// newMessage returns the next output item as a message, without adding it.
func (b *v1ResponseBody) newMessage(status string, content ...v1TextPart) v1OutputMessage {
	return v1OutputMessage{ID: b.nextItemID("msg"), Type: "message", Status: status, Role: "assistant",
		Content: append([]v1TextPart{}, content...)}
}

// newCall returns the next output item as a call, without adding it.
func (b *v1ResponseBody) newCall(id, tool string, args json.RawMessage) v1OutputCall {
	return v1OutputCall{ID: b.nextItemID("fc"), Type: "function_call", Status: "completed", CallID: id, Name: tool,
		Arguments: string(args)}
}

// v1IncompleteReasons maps stop reasons to the reasons of an incomplete response.
var v1IncompleteReasons = map[model.Stop]string{model.StopLength: "max_output_tokens",
	model.StopRefused: "content_filter"}

// setOutcome sets the status, the error and the usage of an ended response.
func (b *v1ResponseBody) setOutcome(u model.Usage, stop model.Stop, failure error) {
	b.Status = "completed"
	if why := v1IncompleteReasons[stop]; why != "" {
		b.Status, b.Incomplete = "incomplete", map[string]string{"reason": why}
	}
	if failure != nil {
		p, status := newV1Problem(failure)
		b.Status, b.Error = "failed", &v1ResponseError{Code: "server_error", Message: p.Message}
		switch { // OpenAI defines only a few codes for responses
		case status == http.StatusTooManyRequests:
			b.Error.Code = "rate_limit_exceeded"
		case status < 500:
			b.Error.Code = "invalid_prompt"
		}
	}
	b.Usage = &v1ResponseUsage{Input: u.Input, Output: u.Output, Total: reeve.SaturatingAdd(u.Input, u.Output)}
	b.Usage.InputDetails.Cached, b.Usage.InputDetails.CacheWrite = u.CacheRead, u.CacheWrite
	b.Usage.OutputDetails.Reasoning = u.Reasoning
}

// getResponse returns a response by its id.
func (h *openaiHandlers) getResponse(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	run, err := h.getResponseTurn(r, who, r.PathValue("id"))
	if err != nil {
		return err
	}
	t := &v1Turn{h: h, who: who, turn: run.Turn()}
	result, err := t.readResult(r.Context())
	if err != nil {
		return err
	}
	name := run.AgentID // the agent may be deleted
	err = h.db.View(r.Context(), func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(r.Context(), who.Workspace, run.AgentID)
		if err == nil {
			name = a.Name
		}
		if reeve.CodeOf(err) == reeve.NotFound {
			err = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	b := newV1Response(run.Turn(), name, result.history, result.history.System)
	if err := result.replay(&responseStream{body: b}); err != nil {
		return err
	}
	last := result.last
	isAnswered := last.Stop != "" && len(last.Calls()) == 0 // the end of the run may not be recorded yet
	if run.State.IsFinal() || isAnswered {
		var failure error
		if run.State.IsFinal() && run.State != reeve.RunCompleted {
			failure = &reeve.Error{Code: run.Code, Message: run.Message}
		}
		b.setOutcome(result.usage, last.Stop, failure)
	}
	writeV1JSON(w, http.StatusOK, b)
	return nil
}
