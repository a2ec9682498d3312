package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"reeve"
)

// anthropicMax is how many tokens an answer may have when the request does not say: the API insists on a number, and every model that is still served takes this one.
const anthropicMax = 8192

// anthropicThought is how many tokens older models may think, by effort; newer ones decide for themselves.
var anthropicThought = map[string]int64{"low": 2048, "medium": 8192, "high": 24576}

// anthropicOlder are models that are told how many tokens to think.
var anthropicOlder = []string{"claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5", "claude-sonnet-4-0", "claude-sonnet-4-2",
	"claude-sonnet-4-5", "claude-haiku-4"}

type anthropicModel struct {
	server  Server
	service anthropic.MessageService
}

// Anthropic speaks the Messages API. The service is made by itself: the SDK's whole client would read the environment and files of the user's.
func Anthropic(s Server) Model {
	s = s.or("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY")
	check := func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err != nil {
			return nil, err
		}
		return res, s.check(res, anthropicError)
	}
	return &anthropicModel{server: s, service: anthropic.NewMessageService(option.WithBaseURL(s.URL), option.WithAPIKey(s.Key),
		option.WithHTTPClient(s.client()), option.WithMaxRetries(0), option.WithMiddleware(check))}
}

// Answer implements Model.
func (m *anthropicModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	ms, err := history(r.Messages, m.server.Name)
	if err != nil {
		return Answer{}, err
	}
	n := nameTools(r, ms)
	p, err := m.params(r, ms, n)
	if err != nil {
		return Answer{}, err
	}
	return m.listen(ctx, m.service.NewStreaming(ctx, p), newDraft(m.server, r, n, watch))
}

func (m *anthropicModel) params(r Request, ms []Message, n names) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: r.Model, MaxTokens: anthropicMax}
	if r.MaxTokens > 0 {
		p.MaxTokens = int64(r.MaxTokens)
	}
	// What stays the same from one move of a turn to the next is marked for caching: tools and system text come first in a prompt, and a mark
	// covers all that is before it. What is too short to be cached costs nothing.
	mark := anthropic.NewCacheControlEphemeralParam()
	if r.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: r.System, CacheControl: mark}}
	}
	for i, t := range r.Tools {
		s, err := rooted(t)
		if err != nil {
			return p, err
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return p, reeve.Errorf(reeve.Unsupported, "the parameters of tool %s: %v", t.Name, err)
		}
		tool := &anthropic.ToolParam{Name: n.theirs(t.Name), InputSchema: param.Override[anthropic.ToolInputSchemaParam](json.RawMessage(raw))}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		if r.System == "" && i == len(r.Tools)-1 {
			tool.CacheControl = mark
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	if len(r.Tools) > 0 {
		switch r.Choice {
		case MustCall:
			p.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{}
		case NoCall:
			none := anthropic.NewToolChoiceNoneParam()
			p.ToolChoice.OfNone = &none
		case MayCall:
		}
	}
	m.effort(r, ms, &p)
	if r.Temperature != nil && param.IsOmitted(p.Thinking) {
		p.Temperature = anthropic.Float(*r.Temperature)
	}
	for _, msg := range ms {
		blocks, err := m.blocks(msg, n)
		if err != nil {
			return p, err
		}
		role := anthropic.MessageParamRoleUser
		if msg.Role == Assistant {
			role = anthropic.MessageParamRoleAssistant
		}
		p.Messages = append(p.Messages, anthropic.MessageParam{Role: role, Content: blocks})
	}
	return p, nil
}

// effort says how hard to think. Thinking does not go with having to call a tool.
func (m *anthropicModel) effort(r Request, ms []Message, p *anthropic.MessageNewParams) {
	if r.Effort == "" {
		return
	}
	for _, older := range anthropicOlder {
		if !strings.HasPrefix(r.Model, older) {
			continue
		}
		if budget := anthropicThought[r.Effort]; budget > 0 && r.Choice != MustCall && thoughtful(ms) {
			p.Thinking.OfEnabled = &anthropic.ThinkingConfigEnabledParam{BudgetTokens: budget}
			p.MaxTokens += budget // its thoughts count as output
		}
		return
	}
	p.OutputConfig.Effort = anthropic.OutputConfigEffort(r.Effort)
	if r.Choice != MustCall {
		p.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	}
}

// thoughtful says whether a model that is told how much to think may do so: calls that it now gets the results of must have come from thoughts, which
// those of another provider's model did not.
func thoughtful(ms []Message) bool {
	if len(ms) < 2 || ms[len(ms)-1].Parts[0].Type != Result {
		return true
	}
	return ms[len(ms)-2].Parts[0].Type == Reasoning
}

func (m *anthropicModel) blocks(msg Message, n names) ([]anthropic.ContentBlockParamUnion, error) {
	var blocks []anthropic.ContentBlockParamUnion
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		case Media:
			b, err := m.media(p)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, b)
		case Reasoning:
			raw, _ := unseal(m.server.Name, p.Raw)
			blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](raw))
		case ToolCall:
			blocks = append(blocks, anthropic.NewToolUseBlock(p.ID, object(p.Args), n.theirs(p.Name)))
		case Result:
			blocks = append(blocks, anthropic.NewToolResultBlock(p.ID, p.Text, p.IsError))
		}
	}
	return blocks, nil
}

func (m *anthropicModel) media(p Part) (anthropic.ContentBlockParamUnion, error) {
	var doc anthropic.DocumentBlockParam
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: p.URL}), nil
	case kind == imageMedia:
		return anthropic.NewImageBlockBase64(p.MediaType, encoded(p)), nil
	case kind == pdfMedia && p.URL != "":
		doc.Source.OfURL = &anthropic.URLPDFSourceParam{URL: p.URL}
	case kind == pdfMedia:
		doc.Source.OfBase64 = &anthropic.Base64PDFSourceParam{Data: encoded(p)}
	case kind == textMedia && p.URL == "":
		doc.Source.OfText = &anthropic.PlainTextSourceParam{Data: string(p.Data)}
	default:
		return anthropic.ContentBlockParamUnion{}, unsendable(m.server.Name, p, "images, PDF files and text")
	}
	if p.Name != "" {
		doc.Title = anthropic.String(p.Name)
	}
	return anthropic.ContentBlockParamUnion{OfDocument: &doc}, nil
}
