package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"reeve"
	"reeve/model"
)

// v1ChatRequest is what POST /v1/chat/completions heeds; v1ChatParameters says what becomes of other parameters.
type v1ChatRequest struct {
	Model               string          `json:"model"`
	Messages            []v1Message     `json:"messages"`
	Tools               []v1Tool        `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Parallel            *bool           `json:"parallel_tool_calls"`
	Stream              bool            `json:"stream"`
	N                   *int            `json:"n"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	Stop                json.RawMessage `json:"stop"`
	Effort              string          `json:"reasoning_effort"`
	Metadata            json.RawMessage `json:"metadata"`
	ResponseFormat      *v1Format       `json:"response_format"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// v1Header is what a completion and its pieces have in common.
type v1Header struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

// v1Completion is a completion.
type v1Completion struct {
	v1Header
	Choices []v1Choice `json:"choices"`
	Usage   *v1Usage   `json:"usage"`
}

type v1Choice struct {
	Index    int     `json:"index"`
	Message  v1AssistantMessage  `json:"message"`
	Finish   string  `json:"finish_reason"`
	Logprobs *string `json:"logprobs"` // always null, and yet required
}

type v1AssistantMessage struct {
	Role        string       `json:"role"`
	Content     *string      `json:"content"`
	Refusal     *string      `json:"refusal"`
	Annotations []any        `json:"annotations"`
	ToolCalls   []v1ToolCall `json:"tool_calls,omitempty"`
}

// v1Chunk is a piece of a completion.
type v1Chunk struct {
	v1Header
	Choices []v1ChunkChoice `json:"choices"`
}

// v1UsageChunk is a piece of a completion whose client wants to know the usage, which only the last one has.
type v1UsageChunk struct {
	v1Chunk
	Usage *v1Usage `json:"usage"`
}

type v1ChunkChoice struct {
	Index    int     `json:"index"`
	Delta    v1Delta `json:"delta"`
	Finish   *string `json:"finish_reason"`
	Logprobs *string `json:"logprobs"` // always null
}

type v1Delta struct {
	Role      string       `json:"role,omitempty"`
	Content   *string      `json:"content,omitempty"`
	ToolCalls []v1ToolCall `json:"tool_calls,omitempty"`
}

// v1Usage is what a completion cost.
type v1Usage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
		Audio  int64 `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
		Audio     int64 `json:"audio_tokens"`
		Accepted  int64 `json:"accepted_prediction_tokens"`
		Rejected  int64 `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

func newV1Usage(u model.Usage) *v1Usage {
	out := &v1Usage{Prompt: u.Input, Completion: u.Output, Total: reeve.SaturatingAdd(u.Input, u.Output)}
	out.PromptDetails.Cached, out.CompletionDetails.Reasoning = u.CacheRead, u.Reasoning
	return out
}

// transcript reads the messages.
func (q v1ChatRequest) transcript() (*v1Transcript, error) {
	t := &v1Transcript{}
	for i, m := range q.Messages {
		path := fmt.Sprintf("messages[%d]", i)
		parts, err := parseV1Content(m.Content, path+".content")
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
			if len(m.FunctionCall) > 0 && string(m.FunctionCall) != "null" {
				return nil, newV1Unsupported(path+".function_call",
					"function_call is not supported: calls are in tool_calls")
			}
			t.add(model.Assistant, parts...)
			if m.Refusal != "" {
				t.add(model.Assistant, model.Part{Type: model.Text, Text: m.Refusal})
			}
			for _, c := range m.ToolCalls {
				t.addCall(c.ID, c.Function.Name, c.Function.Arguments)
			}
		case "tool", "function":
			if err := t.addResult(m.ToolCallID, text, path+".tool_call_id"); err != nil {
				return nil, err
			}
		default:
			return nil, newV1Invalid(path+".role", "a role is system, developer, user, assistant or tool, and not %q",
				m.Role)
		}
	}
	if len(t.messages) == 0 {
		return nil, newV1Invalid("messages", "there are no messages")
	}
	return t, nil
}

func (h *openaiHandlers) createChatCompletion(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	var q v1ChatRequest
	if err := decodeV1Request(r, v1ChatParameters, &q); err != nil {
		return err
	}
	if q.N != nil && *q.N != 1 {
		return newV1Unsupported("n", "an agent gives one answer, so n is 1")
	}
	talk, err := q.transcript()
	if err != nil {
		return err
	}
	asked := v1Request{model: q.Model, transcript: talk, tools: q.Tools, choice: q.ToolChoice, temperature: q.Temperature,
		topP:   q.TopP,
		limits: map[string]*int{"max_tokens": q.MaxTokens, "max_completion_tokens": q.MaxCompletionTokens}}
	asked.history.OneCall = q.Parallel != nil && !*q.Parallel
	if asked.history.StopAt, err = parseV1Stop(q.Stop); err != nil {
		return err
	}
	if asked.history.Effort, err = parseV1Effort(q.Effort, "reasoning_effort"); err != nil {
		return err
	}
	if asked.history.Metadata, err = parseV1Metadata(q.Metadata); err != nil {
		return err
	}
	if f := q.ResponseFormat; f != nil {
		if asked.history.Format, err = f.parse("response_format", f.JSONSchema); err != nil {
			return err
		}
	}
	t, err := h.beginRequestedTurn(r, who, asked)
	if err != nil {
		return err
	}
	head := v1Header{ID: "chatcmpl-" + t.turn.ID, Created: t.turn.StartedAt.Unix(), Model: q.Model}
	if q.Stream {
		return h.streamChatCompletion(w, r, t, head, q.StreamOptions.IncludeUsage)
	}
	return h.writeChatCompletion(w, r, t, head)
}

// v1FinishReason is why a completion ended.
func v1FinishReason(calls int, stop model.Stop) string {
	switch {
	case calls > 0:
		return "tool_calls"
	case stop == model.StopLength:
		return "length"
	case stop == model.StopRefused:
		return "content_filter"
	}
	return "stop"
}

// v1TextJoiner puts the messages of a turn into the one content that a completion has, with a gap between two of them.
type v1TextJoiner struct {
	started bool // there is a message before
	ended bool // and it is over
}

// join is what a client is told of a piece of a message.
func (o *v1TextJoiner) join(seen v1Event) string {
	text := seen.text
	if text != "" {
		if o.started && o.ended {
			text = model.Gap + text
		}
		o.started, o.ended = true, false
	}
	if seen.messageEnd {
		o.ended = true
	}
	return text
}

func newV1ToolCall(f *reeve.Frame) v1ToolCall {
	c := v1ToolCall{ID: f.ToolCallID, Type: "function"}
	c.Function.Name, c.Function.Arguments = f.Tool, string(f.Args)
	return c
}

// writeChatCompletion answers when all has been said.
func (h *openaiHandlers) writeChatCompletion(w http.ResponseWriter, r *http.Request, t *v1Turn, head v1Header) error {
	said := v1AssistantMessage{Role: "assistant", Annotations: []any{}}
	var failure error
	var one v1TextJoiner
	var text strings.Builder
	usage, last, err := t.followToEnd(r.Context(), func(seen v1Event) error {
		text.WriteString(one.join(seen))
		if seen.call != nil {
			said.ToolCalls = append(said.ToolCalls, newV1ToolCall(seen.call))
		}
		failure = seen.failure
		return nil
	})
	if err := cmp.Or(failure, err); err != nil {
		return err
	}
	if content := text.String(); content != "" || len(said.ToolCalls) == 0 {
		said.Content = &content
	}
	head.Object = "chat.completion"
	writeV1JSON(w, http.StatusOK, v1Completion{v1Header: head, Usage: newV1Usage(usage),
		Choices: []v1Choice{{Message: said, Finish: v1FinishReason(len(said.ToolCalls), last.Stop)}}})
	return nil
}

// streamChatCompletion answers piece by piece. Once it has begun, an error is an event.
func (h *openaiHandlers) streamChatCompletion(w http.ResponseWriter, r *http.Request, t *v1Turn, head v1Header,
	withUsage bool) error {
	head.Object = "chat.completion.chunk"
	e := newEventWriter(w, http.StatusOK)
	send := func(choices []v1ChunkChoice, usage *v1Usage) error {
		c := v1Chunk{v1Header: head, Choices: choices}
		if withUsage {
			return e.send("", v1UsageChunk{v1Chunk: c, Usage: usage})
		}
		return e.send("", c)
	}
	piece := func(d v1Delta, finish *string) error { return send([]v1ChunkChoice{{Delta: d, Finish: finish}}, nil) }
	empty := ""
	if err := piece(v1Delta{Role: "assistant", Content: &empty}, nil); err != nil {
		_ = t.stopFollowing(r.Context(), err)
		t.reader.Close()
		return nil //nolint:nilerr // the client has gone
	}
	var failure error
	var one v1TextJoiner
	calls := 0
	usage, last, err := t.followToEnd(r.Context(), func(seen v1Event) error {
		failure = seen.failure
		if text := one.join(seen); text != "" {
			return piece(v1Delta{Content: &text}, nil)
		}
		if seen.call != nil {
			c, at := newV1ToolCall(seen.call), calls
			c.Index = &at
			calls++
			return piece(v1Delta{ToolCalls: []v1ToolCall{c}}, nil)
		}
		return nil
	})
	failure = cmp.Or(failure, err)
	if failure != nil {
		logServerFailure(r.Context(), failure)
		p, _ := newV1Problem(failure)
		_ = e.send("", map[string]any{"error": p}) // the client may have gone
		return nil
	}
	finish := v1FinishReason(calls, last.Stop)
	if err := piece(v1Delta{}, &finish); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	if withUsage {
		if err := send([]v1ChunkChoice{}, newV1Usage(usage)); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
	}
	e.addDone()
	_ = e.flush() // the client may have gone
	return nil
}
