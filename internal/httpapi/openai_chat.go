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

// v1ChatRequest holds the supported parameters of POST /v1/chat/completions. v1ChatParameters has the rules for all
// parameters.
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

// v1Header holds the common fields of completions and chunks.
type v1Header struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

// v1Completion is a complete chat completion.
type v1Completion struct {
	v1Header
	Choices []v1Choice `json:"choices"`
	Usage   *v1Usage   `json:"usage"`
}

type v1Choice struct {
	Index    int                `json:"index"`
	Message  v1AssistantMessage `json:"message"`
	Finish   string             `json:"finish_reason"`
	Logprobs *string            `json:"logprobs"` // always null, but required
}

type v1AssistantMessage struct {
	Role        string       `json:"role"`
	Content     *string      `json:"content"`
	Refusal     *string      `json:"refusal"`
	Annotations []any        `json:"annotations"`
	ToolCalls   []v1ToolCall `json:"tool_calls,omitempty"`
}

// v1Chunk is a chunk of a streamed completion.
type v1Chunk struct {
	v1Header
	Choices []v1ChunkChoice `json:"choices"`
}

// v1UsageChunk is a chunk for clients that requested the usage. Only the last chunk has a value.
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

// v1Usage is the token usage of a completion.
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

// transcript converts the messages of the request.
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
				return nil, newV1Unsupported(path+".function_call", "function_call is not supported; use tool_calls")
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
			return nil, newV1Invalid(path+".role", "role must be system, developer, user, assistant or tool, not %q",
				m.Role)
		}
	}
	if len(t.messages) == 0 {
		return nil, newV1Invalid("messages", "messages is empty")
	}
	return t, nil
}

func (h *openaiHandlers) createChatCompletion(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	var q v1ChatRequest
	if err := decodeV1Request(r, v1ChatParameters, &q); err != nil {
		return err
	}
	if q.N != nil && *q.N != 1 {
		return newV1Unsupported("n", "n must be 1")
	}
	talk, err := q.transcript()
	if err != nil {
		return err
	}
	request := v1Request{model: q.Model, transcript: talk, tools: q.Tools, choice: q.ToolChoice,
		temperature: q.Temperature,
		topP:        q.TopP,
		limits:      map[string]*int{"max_tokens": q.MaxTokens, "max_completion_tokens": q.MaxCompletionTokens}}
	request.history.OneCall = q.Parallel != nil && !*q.Parallel
	if request.history.StopAt, err = parseV1Stop(q.Stop); err != nil {
		return err
	}
	if request.history.Effort, err = parseV1Effort(q.Effort, "reasoning_effort"); err != nil {
		return err
	}
	if request.history.Metadata, err = parseV1Metadata(q.Metadata); err != nil {
		return err
	}
	if f := q.ResponseFormat; f != nil {
		if request.history.Format, err = f.parse("response_format", f.JSONSchema); err != nil {
			return err
		}
	}
	t, err := h.beginRequestedTurn(r, who, request)
	if err != nil {
		return err
	}
	head := v1Header{ID: "chatcmpl-" + t.turn.ID, Created: t.turn.StartedAt.Unix(), Model: q.Model}
	if q.Stream {
		return h.streamChatCompletion(w, r, t, head, q.StreamOptions.IncludeUsage)
	}
	return h.writeChatCompletion(w, r, t, head)
}

// v1FinishReason returns the finish_reason of a completion.
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

// v1TextJoiner joins the messages of a turn into the single content of a completion, with a gap between messages.
type v1TextJoiner struct {
	started bool // a message has text
	ended   bool // that message has ended
}

// join returns the text to send for an event.
func (o *v1TextJoiner) join(event v1Event) string {
	text := event.text
	if text != "" {
		if o.started && o.ended {
			text = model.TextSeparator + text
		}
		o.started, o.ended = true, false
	}
	if event.messageEnd {
		o.ended = true
	}
	return text
}

func newV1ToolCall(f *reeve.Frame) v1ToolCall {
	c := v1ToolCall{ID: f.ToolCallID, Type: "function"}
	c.Function.Name, c.Function.Arguments = f.Tool, string(f.Args)
	return c
}

// writeChatCompletion waits for the end of the turn and sends one completion.
func (h *openaiHandlers) writeChatCompletion(w http.ResponseWriter, r *http.Request, t *v1Turn, head v1Header) error {
	message := v1AssistantMessage{Role: "assistant", Annotations: []any{}}
	var failure error
	var joiner v1TextJoiner
	var text strings.Builder
	usage, last, err := t.followToEnd(r.Context(), func(event v1Event) error {
		text.WriteString(joiner.join(event))
		if event.call != nil {
			message.ToolCalls = append(message.ToolCalls, newV1ToolCall(event.call))
		}
		failure = event.failure
		return nil
	})
	if err := cmp.Or(failure, err); err != nil {
		return err
	}
	if content := text.String(); content != "" || len(message.ToolCalls) == 0 {
		message.Content = &content
	}
	head.Object = "chat.completion"
	writeV1JSON(w, http.StatusOK, v1Completion{v1Header: head, Usage: newV1Usage(usage),
		Choices: []v1Choice{{Message: message, Finish: v1FinishReason(len(message.ToolCalls), last.Stop)}}})
	return nil
}

// streamChatCompletion sends the turn as chunks. After the first chunk, errors are sent as events.
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
		return nil //nolint:nilerr // the client has disconnected
	}
	var failure error
	var joiner v1TextJoiner
	calls := 0
	usage, last, err := t.followToEnd(r.Context(), func(event v1Event) error {
		failure = event.failure
		if text := joiner.join(event); text != "" {
			return piece(v1Delta{Content: &text}, nil)
		}
		if event.call != nil {
			c, at := newV1ToolCall(event.call), calls
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
		_ = e.send("", map[string]any{"error": p}) // fails only if the client has disconnected
		return nil
	}
	finish := v1FinishReason(calls, last.Stop)
	if err := piece(v1Delta{}, &finish); err != nil {
		return nil //nolint:nilerr // the client has disconnected
	}
	if withUsage {
		if err := send([]v1ChunkChoice{}, newV1Usage(usage)); err != nil {
			return nil //nolint:nilerr // the client has disconnected
		}
	}
	e.addDone()
	_ = e.flush() // fails only if the client has disconnected
	return nil
}
