package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// v1RespondRequest is what POST /v1/responses understands.
type v1RespondRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Previous        string          `json:"previous_response_id"`
	Tools           []v1Tool        `json:"tools"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Stream          bool            `json:"stream"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	Text            struct {
		Format *v1Format `json:"format"`
	} `json:"text"`
}

// v1Item is an item of the input: a message, a call, or what a call came to.
type v1Item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// v1ResponseID is the name of a turn as a response.
const v1ResponseID = "resp_"

// talk reads the input.
func (q v1RespondRequest) talk() (*v1Talk, error) {
	t := &v1Talk{}
	if q.Instructions != "" {
		t.system = append(t.system, q.Instructions)
	}
	var text string
	var items []v1Item
	if json.Unmarshal(q.Input, &text) != nil && json.Unmarshal(q.Input, &items) != nil {
		return nil, wrongV1("input", "input is a text or a list of items")
	}
	if text != "" {
		t.add(model.User, model.Part{Type: model.Text, Text: text})
	}
	for i, m := range items {
		if err := t.item(m, fmt.Sprintf("input[%d]", i), q.Previous != ""); err != nil {
			return nil, err
		}
	}
	if len(t.list) == 0 {
		return nil, wrongV1("input", "there is nothing in the input")
	}
	return t, nil
}

func (t *v1Talk) item(m v1Item, path string, before bool) error {
	switch m.Type {
	case "", "message":
		parts, err := v1Content(m.Content, path+".content")
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
			return wrongV1(path+".role", "a role is system, developer, user or assistant, and not %q", m.Role)
		}
	case "function_call":
		t.call(m.CallID, m.Name, m.Arguments)
	case "function_call_output":
		var text string
		if json.Unmarshal(m.Output, &text) != nil {
			text = string(m.Output)
		}
		if _, known := t.callers[m.CallID]; !known && before { // the call is in the response that it goes on from
			t.add(model.User, model.Part{Type: model.Text, Text: "The result of call " + m.CallID + ": " + text})
			return nil
		}
		return t.result(m.CallID, text, path+".call_id")
	case "reasoning", "item_reference": // ours are in the store
	default:
		return wrongV1(path+".type", "items of type %q are not understood", m.Type)
	}
	return nil
}

func (s *server) v1Respond(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	var q v1RespondRequest
	if err := v1Read(r, &q); err != nil {
		return err
	}
	talk, err := q.talk()
	if err != nil {
		return err
	}
	asked := v1Asked{model: q.Model, talk: talk, tools: q.Tools, choice: q.ToolChoice, temperature: q.Temperature,
		limits: map[string]*int{"max_output_tokens": q.MaxOutputTokens}, previous: q.Previous}
	if f := q.Text.Format; f != nil {
		if asked.format, err = f.read("text.format", &f.v1Shape); err != nil {
			return err
		}
	}
	t, err := s.v1Ask(r, who, asked)
	if err != nil {
		return err
	}
	out := newResponse(t.turn, q)
	if !q.Stream {
		return s.v1RespondWhole(w, r, t, out)
	}
	return s.v1RespondStream(w, r, t, out)
}

// v1Find finds the turn that a response is.
func (s *server) v1Find(r *http.Request, who reeve.Principal, id string) (run reeve.Run, err error) {
	err = s.DB.View(r.Context(), func(snap *store.Snap) error {
		run, err = seeTurn(r.Context(), snap, who, strings.TrimPrefix(id, v1ResponseID))
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound { // the same answer for one that is another's and one that is not there
		err = reeve.Errorf(reeve.NotFound, "there is no response %q", id)
	}
	return run, err
}

// v1Output is an item of a response: a message, or a call that the client is to make.
type v1Output struct {
	ID        string       `json:"id"`
	Type      string       `json:"type"`
	Status    string       `json:"status"`
	Role      string       `json:"role,omitempty"`
	Content   []v1TextPart `json:"content,omitempty"`
	CallID    string       `json:"call_id,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments *string      `json:"arguments,omitempty"`
}

type v1TextPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

func v1TextOf(text string) v1TextPart {
	return v1TextPart{Type: "output_text", Text: text, Annotations: []any{}}
}

// v1ResponseBody is a response.
type v1ResponseBody struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	CreatedAt    int64           `json:"created_at"`
	Status       string          `json:"status"`
	Error        *v1Problem      `json:"error"`
	Incomplete   any             `json:"incomplete_details"`
	Instructions *string         `json:"instructions"`
	Model        string          `json:"model"`
	Output       []v1Output      `json:"output"`
	Previous     *string         `json:"previous_response_id"`
	Parallel     bool            `json:"parallel_tool_calls"`
	ToolChoice   string          `json:"tool_choice"`
	Tools        []v1Tool        `json:"tools"`
	Metadata     json.RawMessage `json:"metadata"`
	Usage        *v1ResponseCost `json:"usage"`
}

type v1ResponseCost struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

func newResponse(t reeve.Turn, q v1RespondRequest) *v1ResponseBody {
	b := &v1ResponseBody{ID: v1ResponseID + t.ID, Object: "response", CreatedAt: t.StartedAt.Unix(), Status: "in_progress", Model: q.Model, Output: []v1Output{},
		Parallel: true, ToolChoice: "auto", Tools: []v1Tool{}, Metadata: json.RawMessage("{}")}
	if q.Instructions != "" {
		b.Instructions = &q.Instructions
	}
	if q.Previous != "" {
		b.Previous = &q.Previous
	}
	return b
}

// conclude fills in how a response ended.
func (b *v1ResponseBody) conclude(u model.Usage, stop model.Stop, failure error) {
	b.Status = "completed"
	if why := map[model.Stop]string{model.StopLength: "max_output_tokens", model.StopRefused: "content_filter"}[stop]; why != "" {
		b.Status, b.Incomplete = "incomplete", map[string]string{"reason": why}
	}
	if failure != nil {
		p, _ := v1ProblemOf(failure)
		b.Status, b.Error = "failed", &p
	}
	b.Usage = &v1ResponseCost{Input: u.Input, Output: u.Output, Total: u.Input + u.Output}
	b.Usage.InputDetails.Cached, b.Usage.OutputDetails.Reasoning = u.CacheRead, u.Reasoning
}

func (b *v1ResponseBody) call(f *reeve.Frame) v1Output {
	args := string(f.Args)
	o := v1Output{ID: fmt.Sprint("fc_", len(b.Output), "_", f.TurnID), Type: "function_call", Status: "completed", CallID: f.ToolCallID, Name: f.Tool, Arguments: &args}
	b.Output = append(b.Output, o)
	return o
}

// v1RespondWhole answers when all has been said.
func (s *server) v1RespondWhole(w http.ResponseWriter, r *http.Request, t *v1Turn, b *v1ResponseBody) error {
	text := ""
	var failure error
	usage, last, err := t.heard(r.Context(), func(seen v1Seen) error {
		text += seen.text
		if seen.call != nil {
			b.call(seen.call)
		}
		failure = seen.fail
		return nil
	})
	if err := cmp.Or(failure, err); err != nil {
		return err
	}
	if text != "" || len(b.Output) == 0 {
		said := v1Output{ID: "msg_" + t.turn.ID, Type: "message", Status: "completed", Role: "assistant", Content: []v1TextPart{v1TextOf(text)}}
		b.Output = append([]v1Output{said}, b.Output...)
	}
	b.conclude(usage, last.Stop, nil)
	s.v1Write(w, http.StatusOK, b)
	return nil
}

// v1Response shows a response that was given before.
func (s *server) v1Response(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	run, err := s.v1Find(r, who, r.PathValue("id"))
	if err != nil {
		return err
	}
	t := &v1Turn{server: s, who: who, turn: run.Turn()}
	usage, last, err := t.sum(r.Context())
	if err != nil {
		return err
	}
	b := newResponse(run.Turn(), v1RespondRequest{})
	err = s.DB.View(r.Context(), func(snap *store.Snap) error {
		a, err := snap.GetAgent(r.Context(), who.Workspace, run.AgentID)
		if b.Model = a.Name; reeve.CodeOf(err) == reeve.NotFound {
			b.Model, err = run.AgentID, nil // it was removed since: what it said stays
		}
		return err
	})
	if err != nil {
		return err
	}
	b.Output = append(b.Output, v1Output{ID: "msg_" + run.ID, Type: "message", Status: "completed", Role: "assistant", Content: []v1TextPart{v1TextOf(last.Text())}})
	if run.State.Final() || last.Stop != "" && len(last.Calls()) == 0 { // it has said all, though its end may not be recorded yet
		var failure error
		if run.State.Final() && run.State != reeve.RunCompleted {
			failure = &reeve.Error{Code: run.Code, Message: run.Message}
		}
		b.conclude(usage, last.Stop, failure)
	}
	s.v1Write(w, http.StatusOK, b)
	return nil
}
