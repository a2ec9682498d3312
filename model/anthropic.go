package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

type anthropicRequest struct {
	MaxTokens   int                      `json:"max_tokens"`
	Messages    []anthropicMessage       `json:"messages"`
	Model       string                   `json:"model"`
	Temperature *float64                 `json:"temperature,omitempty"`
	Output      *anthropicOutput         `json:"output_config,omitempty"`
	System      []anthropicBlock         `json:"system,omitempty"`
	Thinking    *anthropicThinkingConfig `json:"thinking,omitempty"`
	StopAt      []string                 `json:"stop_sequences,omitempty"`
	TopP        *float64                 `json:"top_p,omitempty"`
	Choice      *anthropicChoice         `json:"tool_choice,omitempty"`
	Tools       []anthropicTool          `json:"tools,omitempty"`
	Stream      bool                     `json:"stream"`
}

type anthropicOutput struct {
	Effort string `json:"effort"`
}

type anthropicThinkingConfig struct {
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type"`
}

// anthropicCacheControl marks the end of a cached prefix.
type anthropicCacheControl struct {
	Type string `json:"type"`
}

type anthropicChoice struct {
	Type       string `json:"type"`
	Name       string `json:"name,omitempty"`
	NoParallel bool   `json:"disable_parallel_tool_use,omitempty"`
}

type anthropicTool struct {
	Schema      schema                 `json:"input_schema"`
	Name        string                 `json:"name"`
	Description string                 `json:"description,omitempty"`
	Cache       *anthropicCacheControl `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Content []any  `json:"content"` // blocks, or raw JSON of a block
	Role    string `json:"role"`
}

type anthropicBlock struct {
	ID        string                 `json:"id,omitempty"`
	Input     json.RawMessage        `json:"input,omitempty"`
	Name      string                 `json:"name,omitempty"`
	ToolUseID string                 `json:"tool_use_id,omitempty"`
	IsError   *bool                  `json:"is_error,omitempty"`
	Content   []anthropicBlock       `json:"content,omitempty"`
	Text      string                 `json:"text,omitempty"`
	Source    *anthropicSource       `json:"source,omitempty"`
	Title     string                 `json:"title,omitempty"`
	Cache     *anthropicCacheControl `json:"cache_control,omitempty"`
	Type      string                 `json:"type"`
}

type anthropicSource struct {
	Data      string `json:"data,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	URL       string `json:"url,omitempty"`
	Type      string `json:"type"`
}

// anthropicMaxTokens is the token limit of an answer if the request sets none. The API requires a limit, and all
// current models accept this one.
const anthropicMaxTokens = 8192

// anthropicThinkingBudgets are the thinking tokens of older models by effort. Newer models choose for themselves.
var anthropicThinkingBudgets = map[string]int{"low": 2048, "medium": 8192, "high": 24576}

// anthropicBudgetModels are prefixes of the models that need a thinking budget.
var anthropicBudgetModels = []string{"claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2",
	"claude-opus-4-5",
	"claude-sonnet-4-0", "claude-sonnet-4-2",
	"claude-sonnet-4-5", "claude-haiku-4"}

type anthropicModel struct{ server Server }

// Anthropic returns a Model that uses Anthropic's Messages API.
func Anthropic(s Server) Model {
	return &anthropicModel{server: s.withDefaults("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY")}
}

// Answer implements Model.
func (m *anthropicModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.roundTrip(ctx, m, r, watch)
}

func (m *anthropicModel) endpoint(Request) (string, http.Header) {
	return m.server.URL + "/v1/messages", http.Header{"X-Api-Key": {m.server.Key}, "Anthropic-Version": {"2023-06-01"}}
}

func (m *anthropicModel) buildRequest(r Request, ms []Message, n toolNames) (any, error) {
	p := &anthropicRequest{Model: r.Model, MaxTokens: anthropicMaxTokens, StopAt: r.StopAt, Stream: true}
	if r.MaxTokens > 0 {
		p.MaxTokens = r.MaxTokens
	}
	// Mark the tools and the system text for caching, because they stay the same from call to call. They come first in
	// the prompt, and a mark covers everything before it. A prefix too short for caching costs nothing extra.
	mark := &anthropicCacheControl{Type: "ephemeral"}
	if r.Format != nil {
		r.System = strings.TrimSpace(r.System + "\n\n" + r.Format.prompt())
	}
	if r.System != "" {
		p.System = []anthropicBlock{{Type: "text", Text: r.System, Cache: mark}}
	}
	for i, t := range r.Tools {
		s, err := objectSchema(t)
		if err != nil {
			return nil, err
		}
		tool := anthropicTool{Name: n.toProvider(t.Name), Description: t.Description, Schema: s}
		if r.System == "" && i == len(r.Tools)-1 {
			tool.Cache = mark
		}
		p.Tools = append(p.Tools, tool)
	}
	if len(r.Tools) > 0 {
		p.Choice = anthropicToolChoice(r, n)
	}
	m.setEffort(r, ms, p)
	if p.Thinking == nil {
		p.Temperature, p.TopP = r.Temperature, r.TopP
	}
	for _, msg := range ms {
		p.Messages = append(p.Messages, anthropicMessage{Role: string(msg.Role), Content: m.contentBlocks(msg, n)})
	}
	return p, nil
}

// anthropicToolChoice returns the tool choice of a request, or nil for the API's default.
func anthropicToolChoice(r Request, n toolNames) *anthropicChoice {
	switch {
	case r.Choice == NoCall:
		return &anthropicChoice{Type: "none"}
	case r.Choice == MustCall && r.ChoiceTool != "":
		return &anthropicChoice{Type: "tool", Name: n.toProvider(r.ChoiceTool), NoParallel: r.OneCall}
	case r.Choice == MustCall:
		return &anthropicChoice{Type: "any", NoParallel: r.OneCall}
	case r.OneCall:
		return &anthropicChoice{Type: "auto", NoParallel: true}
	}
	return nil
}

// setEffort sets the thinking options. The API does not allow thinking together with a forced tool call.
func (m *anthropicModel) setEffort(r Request, ms []Message, p *anthropicRequest) {
	if r.Effort == "" {
		return
	}
	for _, older := range anthropicBudgetModels {
		if !strings.HasPrefix(r.Model, older) {
			continue
		}
		if budget := anthropicThinkingBudgets[r.Effort]; budget > 0 && r.Choice != MustCall && canThink(ms) {
			p.Thinking = &anthropicThinkingConfig{Type: "enabled", Budget: budget}
			p.MaxTokens += budget // thinking counts as output
		}
		return
	}
	p.Output = &anthropicOutput{Effort: r.Effort}
	if r.Choice != MustCall {
		p.Thinking = &anthropicThinkingConfig{Type: "adaptive", Display: "summarized"}
	}
}

// canThink reports whether a model with a thinking budget may think. If the request ends with tool results, the API
// requires that the message with their calls begins with thinking, which calls of other providers' models do not.
func canThink(ms []Message) bool {
	if len(ms) < 2 || ms[len(ms)-1].Parts[0].Type != Result {
		return true
	}
	return ms[len(ms)-2].Parts[0].Type == Reasoning
}

func (m *anthropicModel) contentBlocks(msg Message, n toolNames) []any {
	var blocks []any
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			blocks = append(blocks, anthropicBlock{Type: "text", Text: p.Text})
		case Media:
			blocks = append(blocks, m.mediaBlock(p))
		case Reasoning:
			raw, _ := decodeRaw(m.server.Name, p.Raw)
			blocks = append(blocks, raw)
		case ToolCall:
			blocks = append(blocks, anthropicBlock{Type: "tool_use", ID: p.ID, Name: n.toProvider(p.Name),
				Input: argumentsObject(p.Args)})
		case Result:
			blocks = append(blocks, anthropicBlock{Type: "tool_result", ToolUseID: p.ID, IsError: &p.IsError,
				Content: []anthropicBlock{{Type: "text", Text: p.Text}}})
		}
	}
	return blocks
}

func (m *anthropicModel) checkMedia(p Part) error {
	switch kind := mediaKind(p); {
	case kind == imageMedia || kind == pdfMedia || kind == textMedia && p.URL == "":
		return nil
	default:
		return unsupportedMedia(m.server.Name, p, "images, PDF files and text")
	}
}

func (m *anthropicModel) mediaBlock(p Part) anthropicBlock {
	b := anthropicBlock{Type: "document", Title: p.Name}
	kind := mediaKind(p)
	if kind == imageMedia {
		b = anthropicBlock{Type: "image"}
	}
	switch {
	case p.URL != "":
		b.Source = &anthropicSource{Type: "url", URL: p.URL}
	case kind == textMedia:
		b.Source = &anthropicSource{Type: "text", MediaType: "text/plain", Data: string(p.Data)}
	default:
		b.Source = &anthropicSource{Type: "base64", MediaType: p.MediaType, Data: base64Data(p)}
	}
	return b
}
