package model

import (
	"context"
	"encoding/json"
)

// Model sends requests to a language model.
type Model interface {
	// Answer sends a request and returns the model's answer. It calls watch with each delta, in order and from one
	// goroutine. watch may be nil. When the request fails or is cancelled, Answer returns an error, and of the answer
	// at most Usage is set.
	Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error)
}

// Request is the input of one model call.
type Request struct {
	Model       string    `json:"model" doc:"Model name as the provider knows it"`
	System      string    `json:"system,omitempty"`
	Messages    []Message `json:"messages"`
	Tools       []Tool    `json:"tools,omitempty"`
	Choice      Choice    `json:"choice,omitempty" doc:"Whether tools may or must be called; empty: may"`
	ChoiceTool  string    `json:"choice_tool,omitempty" doc:"With choice required: the tool to call"`
	OneCall     bool      `json:"one_call,omitempty" doc:"Allow at most one tool call per answer"`
	StopAt      []string  `json:"stop_at,omitempty" doc:"The answer ends before any of these texts"`
	TopP        *float64  `json:"top_p,omitempty"`
	MaxTokens   int       `json:"max_tokens,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	Effort      string    `json:"effort,omitempty" doc:"Reasoning effort, if supported: low, medium, high"`
	Format      *Format   `json:"format,omitempty" doc:"Set for an answer in JSON"`
}

// Format asks for an answer in JSON.
type Format struct {
	Name   string          `json:"name,omitempty" doc:"Name of the schema, sent to the provider"`
	Schema json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the answer; empty: any JSON"`
	Strict bool            `json:"strict,omitempty" doc:"Let the provider enforce the schema, if it can"`
}

// Choice says whether the model may, must or must not call tools.
type Choice string

// The values of Choice.
const (
	MayCall  Choice = ""
	MustCall Choice = "required"
	NoCall   Choice = "none"
)

// Tool is a tool as the model sees it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters" doc:"JSON Schema; adapters convert it for their provider"`
}

// Role is the author of a message.
type Role string

// The roles. Tool results are parts of type Result in messages of the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// PartType is the type of a part.
type PartType string

// The types of part.
const (
	Text      PartType = "text"
	Media     PartType = "media"     // an image or a file
	Reasoning PartType = "reasoning" // the model's reasoning, sent back in later requests
	ToolCall  PartType = "tool_call"
	Result    PartType = "tool_result"
)

// Part is a part of a message. Only the fields of its type are set.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty" doc:"Text of texts, reasoning and results"`

	ID      string          `json:"id,omitempty" doc:"Call id, of calls and results"`
	Name    string          `json:"name,omitempty" doc:"Calls and results: name of the tool. Media: name of the file"`
	Args    json.RawMessage `json:"args,omitempty" doc:"Arguments of calls; a string if the model wrote invalid JSON"`
	IsError bool            `json:"is_error,omitempty" doc:"True for the result of a failed call"`

	MediaType string `json:"media_type,omitempty" doc:"MIME type of media"`
	Data      []byte `json:"data,omitempty" doc:"Bytes of media"`
	URL       string `json:"url,omitempty" doc:"URL of media, instead of its bytes"`

	Raw json.RawMessage `json:"raw,omitempty" doc:"The provider's own form, sent back to it unchanged"`
}

// Answer is the model's reply to a request.
type Answer struct {
	ID       string `json:"id,omitempty" doc:"Id that the provider gave the answer"`
	Provider string `json:"provider"`
	Model    string `json:"model" doc:"The model that answered"`
	Parts    []Part `json:"parts"`
	Stop     Stop   `json:"stop"`
	Usage    Usage  `json:"usage"`
}

// Stop is the reason why a model stopped.
type Stop string

// The reasons to stop.
const (
	StopEnd     Stop = "end"     // the answer is complete
	StopTools   Stop = "tools"   // the answer ends with tool calls
	StopLength  Stop = "length"  // the token limit was reached
	StopRefused Stop = "refused" // the model or a content filter refused
)

// Usage is the number of tokens and the price of an answer.
type Usage struct {
	Input      int64 `json:"input_tokens" doc:"Tokens read, including cached ones"`
	Output     int64 `json:"output_tokens" doc:"Tokens written, including reasoning"`
	CacheRead  int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	Reasoning  int64 `json:"reasoning_tokens,omitempty"`
	Micros     int64 `json:"micros" doc:"Price in millionths of a dollar"`
	Estimated  bool  `json:"estimated,omitempty" doc:"True if the provider's counts are missing or implausible"`
}

// DeltaType is the type of a delta.
type DeltaType string

// The types of delta.
const (
	TextDelta      DeltaType = "text"
	ReasoningDelta DeltaType = "reasoning"
	CallDelta      DeltaType = "call"    // part of a tool call's arguments; the first has ID and Name
	Discard        DeltaType = "discard" // forget the deltas of this answer so far; the request is retried
)

// Delta is one streamed fragment of an answer.
type Delta struct {
	Type  DeltaType
	Text  string
	Index int // position of the call among the calls of the answer
	ID    string
	Name  string
}
