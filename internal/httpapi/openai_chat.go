package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"reeve"
	"reeve/model"
)

// v1ChatRequest is what POST /v1/chat/completions understands.
type v1ChatRequest struct {
	Model               string          `json:"model"`
	Messages            []v1Message     `json:"messages"`
	Tools               []v1Tool        `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Stream              bool            `json:"stream"`
	N                   *int            `json:"n"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Temperature         *float64        `json:"temperature"`
	ResponseFormat      *v1Format       `json:"response_format"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// v1Chunk is a completion, or a piece of one.
type v1Chunk struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Model   string     `json:"model"`
	Choices []v1Choose `json:"choices"`
	Usage   *v1Usage   `json:"usage,omitempty"`
}

type v1Choose struct {
	Index   int     `json:"index"`
	Message *v1Said `json:"message,omitempty"`
	Delta   *v1Said `json:"delta,omitempty"`
	Finish  *string `json:"finish_reason"`
}

type v1Said struct {
	Role      string       `json:"role,omitempty"`
	Content   *string      `json:"content,omitempty"`
	ToolCalls []v1ToolCall `json:"tool_calls,omitempty"`
}

// v1Usage is what a completion cost.
type v1Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// talk reads the messages.
func (q v1ChatRequest) talk() (*v1Talk, error) {
	t := &v1Talk{}
	for i, m := range q.Messages {
		path := fmt.Sprintf("messages[%d]", i)
		parts, err := v1Content(m.Content, path+".content")
		if err != nil {
			return nil, err
		}
		text := (model.Answer{Parts: parts}).Text()
		switch m.Role {
		case "system", "developer":
			t.system = append(t.system, text)
		case "user":
			t.add(model.User, parts...)
		case "assistant":
			t.add(model.Assistant, parts...)
			for _, c := range m.ToolCalls {
				t.call(c.ID, c.Function.Name, c.Function.Arguments)
			}
		case "tool", "function":
			if err := t.result(m.ToolCallID, text, path+".tool_call_id"); err != nil {
				return nil, err
			}
		default:
			return nil, wrongV1(path+".role", "a role is system, developer, user, assistant or tool, and not %q", m.Role)
		}
	}
	if len(t.list) == 0 {
		return nil, wrongV1("messages", "there are no messages")
	}
	return t, nil
}

func (s *server) v1Chat(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	var q v1ChatRequest
	if err := v1Read(r, &q); err != nil {
		return err
	}
	if q.N != nil && *q.N != 1 {
		return wrongV1("n", "an agent gives one answer")
	}
	talk, err := q.talk()
	if err != nil {
		return err
	}
	asked := v1Asked{model: q.Model, talk: talk, tools: q.Tools, choice: q.ToolChoice, temperature: q.Temperature,
		limits: map[string]*int{"max_tokens": q.MaxTokens, "max_completion_tokens": q.MaxCompletionTokens}}
	if f := q.ResponseFormat; f != nil {
		if asked.format, err = f.read("response_format", f.JSONSchema); err != nil {
			return err
		}
	}
	t, err := s.v1Ask(r, who, asked)
	if err != nil {
		return err
	}
	head := v1Chunk{ID: "chatcmpl-" + t.turn.ID, Created: t.turn.StartedAt.Unix(), Model: q.Model}
	if q.Stream {
		return s.v1ChatStream(w, r, t, head, q.StreamOptions.IncludeUsage)
	}
	return s.v1ChatWhole(w, r, t, head)
}

// v1Finish is why a completion ended.
func v1Finish(calls int, stop model.Stop) *string {
	why := "stop"
	switch {
	case calls > 0:
		why = "tool_calls"
	case stop == model.StopLength:
		why = "length"
	case stop == model.StopRefused:
		why = "content_filter"
	}
	return &why
}

func v1CallOf(f *reeve.Frame) v1ToolCall {
	c := v1ToolCall{ID: f.ToolCallID, Type: "function"}
	c.Function.Name, c.Function.Arguments = f.Tool, string(f.Args)
	return c
}

// v1ChatWhole answers when all has been said.
func (s *server) v1ChatWhole(w http.ResponseWriter, r *http.Request, t *v1Turn, out v1Chunk) error {
	said, text := v1Said{Role: "assistant"}, ""
	var failure error
	usage, last, err := t.heard(r.Context(), func(seen v1Seen) error {
		text += seen.text
		if seen.call != nil {
			said.ToolCalls = append(said.ToolCalls, v1CallOf(seen.call))
		}
		failure = seen.fail
		return nil
	})
	if err := cmp.Or(failure, err); err != nil {
		return err
	}
	if text != "" || len(said.ToolCalls) == 0 {
		said.Content = &text
	}
	out.Object, out.Usage = "chat.completion", &v1Usage{Prompt: usage.Input, Completion: usage.Output, Total: usage.Input + usage.Output}
	out.Choices = []v1Choose{{Message: &said, Finish: v1Finish(len(said.ToolCalls), last.Stop)}}
	s.v1Write(w, http.StatusOK, out)
	return nil
}

// v1ChatStream answers piece by piece. Once it has begun, an error is an event.
func (s *server) v1ChatStream(w http.ResponseWriter, r *http.Request, t *v1Turn, head v1Chunk, withUsage bool) error {
	head.Object = "chat.completion.chunk"
	e := newEvents(w, http.StatusOK)
	calls := 0
	piece := func(d v1Said, finish *string) error {
		c := head
		c.Choices = []v1Choose{{Delta: &d, Finish: finish}}
		return e.send("", c)
	}
	empty := ""
	if err := piece(v1Said{Role: "assistant", Content: &empty}, nil); err != nil {
		_ = t.left(r.Context(), err)
		t.reader.Close()
		return nil //nolint:nilerr // the client has gone
	}
	var failure error
	usage, last, err := t.heard(r.Context(), func(seen v1Seen) error {
		failure = seen.fail
		if seen.text != "" {
			return piece(v1Said{Content: &seen.text}, nil)
		}
		if seen.call != nil {
			c, at := v1CallOf(seen.call), calls
			c.Index = &at
			calls++
			return piece(v1Said{ToolCalls: []v1ToolCall{c}}, nil)
		}
		return nil
	})
	failure = cmp.Or(failure, err)
	if failure != nil {
		noteFailure(r.Context(), failure)
		p, _ := v1ProblemOf(failure)
		_ = e.send("", map[string]any{"error": p}) // whoever does not listen any more has gone
		return nil
	}
	if err := piece(v1Said{}, v1Finish(calls, last.Stop)); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	if withUsage {
		c := head
		c.Choices, c.Usage = []v1Choose{}, &v1Usage{Prompt: usage.Input, Completion: usage.Output, Total: usage.Input + usage.Output}
		if err := e.send("", c); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
	}
	e.over()
	_ = e.flush() // whoever does not listen any more has gone
	return nil
}
