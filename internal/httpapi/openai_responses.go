package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// v1ResponseRequest holds the supported parameters of POST /v1/responses. v1ResponseParameters has the rules for all
// parameters.
type v1ResponseRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Previous        string          `json:"previous_response_id"`
	Tools           []v1Tool        `json:"tools"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Stream          bool            `json:"stream"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	TopP            *float64        `json:"top_p"`
	Parallel        *bool           `json:"parallel_tool_calls"`
	Metadata        json.RawMessage `json:"metadata"`
	Include         []string        `json:"include"`
	Reasoning       struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Format    *v1Format `json:"format"`
		Verbosity string    `json:"verbosity"`
	} `json:"text"`
}

// v1Item is an item of the input: a message, a call or the result of a call.
type v1Item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// v1ResponsePrefix and the id of a turn form the id of a response.
const v1ResponsePrefix = "resp_"

// transcript converts the instructions and the input of the request.
func (q v1ResponseRequest) transcript() (*v1Transcript, error) {
	t := &v1Transcript{}
	if q.Instructions != "" {
		t.system = append(t.system, q.Instructions)
	}
	var text string
	var items []v1Item
	if json.Unmarshal(q.Input, &text) != nil && json.Unmarshal(q.Input, &items) != nil {
		return nil, newV1Invalid("input", "input must be a text or a list of items")
	}
	if text != "" {
		t.add(model.User, model.Part{Type: model.Text, Text: text})
	}
	for i, m := range items {
		if err := t.addItem(m, fmt.Sprintf("input[%d]", i), q.Previous != ""); err != nil {
			return nil, err
		}
	}
	if len(t.messages) == 0 {
		return nil, newV1Invalid("input", "input is empty")
	}
	return t, nil
}

// addItem adds an input item. With hasPrevious, the call of a result may be in the previous response.
func (t *v1Transcript) addItem(m v1Item, path string, hasPrevious bool) error {
	switch m.Type {
	case "", "message":
		parts, err := parseV1Content(m.Content, path+".content")
		if err != nil {
			return err
		}
		switch m.Role {
		case "system", "developer":
			t.system = append(t.system, (model.Answer{Parts: parts}).Text())
		case "assistant":
			t.add(model.Assistant, parts...)
		case "user":
			t.add(model.User, parts...)
		default:
			return newV1Invalid(path+".role", "role must be system, developer, user or assistant, not %q", m.Role)
		}
	case "function_call":
		t.addCall(m.CallID, m.Name, m.Arguments)
	case "function_call_output":
		var text string
		if json.Unmarshal(m.Output, &text) != nil {
			text = string(m.Output)
		}
		if _, known := t.toolNames[m.CallID]; !known && hasPrevious {
			t.add(model.User, model.Part{Type: model.Text, Text: "The result of call " + m.CallID + ": " + text})
			return nil
		}
		return t.addResult(m.CallID, text, path+".call_id")
	case "reasoning", "item_reference": // stored with the conversation
	default:
		return newV1Invalid(path+".type", "items of type %q are not supported", m.Type)
	}
	return nil
}

func (h *openaiHandlers) createResponse(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	var q v1ResponseRequest
	if err := decodeV1Request(r, v1ResponseParameters, &q); err != nil {
		return err
	}
	talk, err := q.transcript()
	if err != nil {
		return err
	}
	request := v1Request{model: q.Model, transcript: talk, tools: q.Tools, choice: q.ToolChoice,
		temperature: q.Temperature,
		topP:        q.TopP,
		limits:      map[string]*int{"max_output_tokens": q.MaxOutputTokens}, previous: q.Previous}
	if request.history, err = q.clientHistory(); err != nil {
		return err
	}
	t, err := h.beginRequestedTurn(r, who, request)
	if err != nil {
		return err
	}
	out := newV1Response(t.turn, q.Model, t.history, q.Instructions)
	if !q.Stream {
		return h.writeResponse(w, r, t, out)
	}
	return h.streamResponse(w, r, t, out)
}

// clientHistory returns the settings of the request that are passed on to the turn.
func (q v1ResponseRequest) clientHistory() (g reeve.ClientHistory, err error) {
	g.OneCall = q.Parallel != nil && !*q.Parallel
	if slices.Contains(q.Include, "message.output_text.logprobs") {
		return g, newV1Unsupported("include", "log probabilities are not supported")
	}
	if v := q.Text.Verbosity; v != "" && v != "medium" {
		return g, newV1Unsupported("text.verbosity", "parameter text.verbosity is not supported")
	}
	if g.Effort, err = parseV1Effort(q.Reasoning.Effort, "reasoning.effort"); err != nil {
		return g, err
	}
	if g.Metadata, err = parseV1Metadata(q.Metadata); err != nil {
		return g, err
	}
	if f := q.Text.Format; f != nil {
		g.Format, err = f.parse("text.format", &f.v1Schema)
	}
	return g, err
}

// getResponseTurn returns the turn of a response.
func (h *openaiHandlers) getResponseTurn(r *http.Request, who reeve.Principal, id string) (run reeve.Run, err error) {
	err = h.db.View(r.Context(), func(snap *store.Snap) error {
		run, err = getVisibleTurn(r.Context(), snap, who, strings.TrimPrefix(id, v1ResponsePrefix))
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound { // the same error for a missing response and one of another user
		err = reeve.Errorf(reeve.NotFound, "response %q not found", id)
	}
	return run, err
}
