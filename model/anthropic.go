package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

type anthropicRequest struct {
	MaxTokens   int                `json:"max_tokens"`
	Messages    []anthropicMessage `json:"messages"`
	Model       string             `json:"model"`
	Temperature *float64           `json:"temperature,omitempty"`
	Output      *anthropicOutput   `json:"output_config,omitempty"`
	System      []anthropicBlock   `json:"system,omitempty"`
	Thinking    *anthropicThink    `json:"thinking,omitempty"`
	StopAt      []string           `json:"stop_sequences,omitempty"`
	TopP        *float64           `json:"top_p,omitempty"`
	Choice      *anthropicChoice   `json:"tool_choice,omitempty"`
	Tools       []anthropicTool    `json:"tools,omitempty"`
	Stream      bool               `json:"stream"`
}

type anthropicOutput struct {
	Effort string `json:"effort"`
}

type anthropicThink struct {
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type"`
}

// anthropicMark is an object that is only of a type.
type anthropicMark struct {
	Type string `json:"type"`
}

type anthropicChoice struct {
	Type       string `json:"type"`
	Name       string `json:"name,omitempty"`
	NoParallel bool   `json:"disable_parallel_tool_use,omitempty"`
}

type anthropicTool struct {
	Schema      schema         `json:"input_schema"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Cache       *anthropicMark `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Content []any  `json:"content"` // blocks, or what came as one
	Role    string `json:"role"`
}

type anthropicBlock struct {
	ID        string           `json:"id,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	Name      string           `json:"name,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	IsError   *bool            `json:"is_error,omitempty"`
	Content   []anthropicBlock `json:"content,omitempty"`
	Text      string           `json:"text,omitempty"`
	Source    *anthropicSource `json:"source,omitempty"`
	Title     string           `json:"title,omitempty"`
	Cache     *anthropicMark   `json:"cache_control,omitempty"`
	Type      string           `json:"type"`
}

type anthropicSource struct {
	Data      string `json:"data,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	URL       string `json:"url,omitempty"`
	Type      string `json:"type"`
}

// anthropicMax is how many tokens an answer may have when the request does not say: the API insists on a number, and
// every model that is still served takes this one.
const anthropicMax = 8192

// anthropicThought is how many tokens older models may think, by effort; newer ones decide for themselves.
var anthropicThought = map[string]int{"low": 2048, "medium": 8192, "high": 24576}

// anthropicOlder are models that are told how many tokens to think.
var anthropicOlder = []string{"claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5",
	"claude-sonnet-4-0", "claude-sonnet-4-2",
	"claude-sonnet-4-5", "claude-haiku-4"}

type anthropicModel struct{ server Server }

// Anthropic speaks the Messages API.
func Anthropic(s Server) Model {
	return &anthropicModel{server: s.or("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY")}
}

// Answer implements Model.
func (m *anthropicModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.ask(ctx, m, r, watch)
}

func (m *anthropicModel) address(Request) (string, http.Header) {
	return m.server.URL + "/v1/messages", http.Header{"X-Api-Key": {m.server.Key}, "Anthropic-Version": {"2023-06-01"}}
}

func (m *anthropicModel) request(r Request, ms []Message, n names) (any, error) {
	p := &anthropicRequest{Model: r.Model, MaxTokens: anthropicMax, StopAt: r.StopAt, Stream: true}
	if r.MaxTokens > 0 {
		p.MaxTokens = r.MaxTokens
	}
	// What stays the same from one move of a turn to the next is marked for caching: tools and system text come first
	// in a prompt, and a mark covers all that is before it. What is too short to be cached costs nothing.
	mark := &anthropicMark{Type: "ephemeral"}
	if r.Format != nil {
		r.System = strings.TrimSpace(r.System + "\n\n" + r.Format.inWords())
	}
	if r.System != "" {
		p.System = []anthropicBlock{{Type: "text", Text: r.System, Cache: mark}}
	}
	for i, t := range r.Tools {
		s, err := rooted(t)
		if err != nil {
			return nil, err
		}
		tool := anthropicTool{Name: n.theirs(t.Name), Description: t.Description, Schema: s}
		if r.System == "" && i == len(r.Tools)-1 {
			tool.Cache = mark
		}
		p.Tools = append(p.Tools, tool)
	}
	if len(r.Tools) > 0 {
		p.Choice = anthropicChoiceOf(r, n)
	}
	m.effort(r, ms, p)
	if p.Thinking == nil {
		p.Temperature, p.TopP = r.Temperature, r.TopP
	}
	for _, msg := range ms {
		p.Messages = append(p.Messages, anthropicMessage{Role: string(msg.Role), Content: m.blocks(msg, n)})
	}
	return p, nil
}

// anthropicChoiceOf says which tools may or must be called; nil means what the API assumes by itself.
func anthropicChoiceOf(r Request, n names) *anthropicChoice {
	switch {
	case r.Choice == NoCall:
		return &anthropicChoice{Type: "none"}
	case r.Choice == MustCall && r.ChoiceTool != "":
		return &anthropicChoice{Type: "tool", Name: n.theirs(r.ChoiceTool), NoParallel: r.OneCall}
	case r.Choice == MustCall:
		return &anthropicChoice{Type: "any", NoParallel: r.OneCall}
	case r.OneCall:
		return &anthropicChoice{Type: "auto", NoParallel: true}
	}
	return nil
}

// effort says how hard to think. Thinking does not go with having to call a tool.
func (m *anthropicModel) effort(r Request, ms []Message, p *anthropicRequest) {
	if r.Effort == "" {
		return
	}
	for _, older := range anthropicOlder {
		if !strings.HasPrefix(r.Model, older) {
			continue
		}
		if budget := anthropicThought[r.Effort]; budget > 0 && r.Choice != MustCall && thoughtful(ms) {
			p.Thinking = &anthropicThink{Type: "enabled", Budget: budget}
			p.MaxTokens += budget // its thoughts count as output
		}
		return
	}
	p.Output = &anthropicOutput{Effort: r.Effort}
	if r.Choice != MustCall {
		p.Thinking = &anthropicThink{Type: "adaptive", Display: "summarized"}
	}
}

// thoughtful says whether a model that is told how much to think may do so: calls that it now gets the results of must
// have come from thoughts, which those of another provider's model did not.
func thoughtful(ms []Message) bool {
	if len(ms) < 2 || ms[len(ms)-1].Parts[0].Type != Result {
		return true
	}
	return ms[len(ms)-2].Parts[0].Type == Reasoning
}

func (m *anthropicModel) blocks(msg Message, n names) []any {
	var blocks []any
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			blocks = append(blocks, anthropicBlock{Type: "text", Text: p.Text})
		case Media:
			blocks = append(blocks, m.media(p))
		case Reasoning:
			raw, _ := unseal(m.server.Name, p.Raw)
			blocks = append(blocks, raw)
		case ToolCall:
			blocks = append(blocks, anthropicBlock{Type: "tool_use", ID: p.ID, Name: n.theirs(p.Name),
				Input: object(p.Args)})
		case Result:
			blocks = append(blocks, anthropicBlock{Type: "tool_result", ToolUseID: p.ID, IsError: &p.IsError,
				Content: []anthropicBlock{{Type: "text", Text: p.Text}}})
		}
	}
	return blocks
}

func (m *anthropicModel) refuses(p Part) error {
	switch kind := mediaKind(p); {
	case kind == imageMedia || kind == pdfMedia || kind == textMedia && p.URL == "":
		return nil
	default:
		return unsendable(m.server.Name, p, "images, PDF files and text")
	}
}

func (m *anthropicModel) media(p Part) anthropicBlock {
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
		b.Source = &anthropicSource{Type: "base64", MediaType: p.MediaType, Data: encoded(p)}
	}
	return b
}
