package model

import (
	"context"
	"encoding/json"
)

// Model answers requests.
type Model interface {
	// Answer asks the model. Each delta is given to watch, in order, from one goroutine; watch may be nil. A request
	// that was cancelled or failed gives an error and no answer, whatever was streamed before; only Usage may say what
	// that cost.
	Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error)
}

// Request is what a model is asked.
type Request struct {
	Model       string    `json:"model" doc:"The provider's name of the model"`
	System      string    `json:"system,omitempty"`
	Messages    []Message `json:"messages"`
	Tools       []Tool    `json:"tools,omitempty"`
	Choice      Choice    `json:"choice,omitempty" doc:"Whether tools may or must be called; empty means may"`
	ChoiceTool  string    `json:"choice_tool,omitempty" doc:"With required: the one tool that must be called"`
	OneCall     bool      `json:"one_call,omitempty" doc:"At most one tool is called at once"`
	StopAt      []string  `json:"stop_at,omitempty" doc:"Texts before which the answer ends"`
	TopP        *float64  `json:"top_p,omitempty"`
	MaxTokens   int       `json:"max_tokens,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	Effort      string    `json:"effort,omitempty" doc:"How hard to think, where the provider can: low, medium, high"`
	Format      *Format   `json:"format,omitempty" doc:"That the answer is to be JSON, and of what shape"`
}

// Format wants an answer in JSON.
type Format struct {
	Name   string          `json:"name,omitempty" doc:"What the provider may call it"`
	Schema json.RawMessage `json:"schema,omitempty" doc:"What the answer must fit; empty means any JSON"`
	Strict bool            `json:"strict,omitempty" doc:"Whether the provider is to make sure of it, where it can"`
}

// Choice says whether tools are called.
type Choice string

// The choices.
const (
	MayCall  Choice = ""
	MustCall Choice = "required"
	NoCall   Choice = "none"
)

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters" doc:"A JSON Schema; adapters make it fit their provider"`
}

// Role is who speaks.
type Role string

// The roles. What tools say is spoken by the user's side, in parts of type Result.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one side's words.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// PartType says what a part is.
type PartType string

// The types of part.
const (
	Text      PartType = "text"
	Media     PartType = "media"     // an image or a file
	Reasoning PartType = "reasoning" // what a model thought, kept so that it can go on thinking
	ToolCall  PartType = "tool_call"
	Result    PartType = "tool_result"
)

// Part is a piece of a message: exactly the fields of its type are set.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty" doc:"Of text, reasoning and results"`

	ID      string          `json:"id,omitempty" doc:"Of calls and results: the call's id"`
	Name    string          `json:"name,omitempty" doc:"Of calls and results: the tool; of media: the file"`
	Args    json.RawMessage `json:"args,omitempty" doc:"Of calls: what the model wrote; what is not JSON stands as a string"`
	IsError bool            `json:"is_error,omitempty" doc:"Of results"`

	MediaType string `json:"media_type,omitempty" doc:"Of media: its MIME type"`
	Data      []byte `json:"data,omitempty" doc:"Of media: its bytes"`
	URL       string `json:"url,omitempty" doc:"Of media: where it is, instead of its bytes"`

	Raw json.RawMessage `json:"raw,omitempty" doc:"The provider's own form, where it must see it again unchanged"`
}

// Answer is what a model said.
type Answer struct {
	ID       string `json:"id,omitempty" doc:"The provider's name of the answer"`
	Provider string `json:"provider"`
	Model    string `json:"model" doc:"The model that answered"`
	Parts    []Part `json:"parts"`
	Stop     Stop   `json:"stop"`
	Usage    Usage  `json:"usage"`
}

// Stop is why a model stopped.
type Stop string

// The reasons to stop.
const (
	StopEnd     Stop = "end"     // it had said all
	StopTools   Stop = "tools"   // it wants tools called
	StopLength  Stop = "length"  // it ran out of tokens
	StopRefused Stop = "refused" // it, or a filter, declined
)

// Usage is what an answer cost.
type Usage struct {
	Input      int64 `json:"input_tokens" doc:"All tokens read, cached ones included"`
	Output     int64 `json:"output_tokens" doc:"All tokens written, reasoning included"`
	CacheRead  int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	Reasoning  int64 `json:"reasoning_tokens,omitempty"`
	Micros     int64 `json:"micros" doc:"Millionths of a dollar, by the price table"`
	Estimated  bool  `json:"estimated,omitempty" doc:"The provider gave no counts, or none that can be true"`
}

// DeltaType says what a delta is.
type DeltaType string

// The types of delta.
const (
	TextDelta      DeltaType = "text"
	ReasoningDelta DeltaType = "reasoning"
	CallDelta      DeltaType = "call"    // a piece of a tool call's arguments; the first has ID and Name
	Discard        DeltaType = "discard" // forget what was streamed of this answer: it is asked for again
)

// Delta is a piece of an answer as it comes.
type Delta struct {
	Type  DeltaType
	Text  string
	Index int // of calls: which call of the answer
	ID    string
	Name  string
}
