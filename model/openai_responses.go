package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

type responsesModel struct {
	server  Server
	service responses.ResponseService
}

// thoughtless are models that do not think, and that are refused when they are asked for their thoughts.
var thoughtless = []string{"gpt-4", "gpt-3", "chatgpt-"}

// OpenAIResponses speaks the Responses API. Nothing is kept at OpenAI: the thoughts of a model come encrypted and go back with the next request.
func OpenAIResponses(s Server) Model {
	s = s.or("openai", openaiURL, "OPENAI_API_KEY")
	return &responsesModel{server: s, service: responses.NewResponseService(openaiOptions(s)...)}
}

// Answer implements Model.
func (m *responsesModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
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

func (m *responsesModel) params(r Request, ms []Message, n names) (responses.ResponseNewParams, error) {
	p := responses.ResponseNewParams{Model: r.Model, Store: openai.Bool(false)}
	if !slices.ContainsFunc(thoughtless, func(begins string) bool { return strings.HasPrefix(r.Model, begins) }) {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if r.System != "" {
		p.Instructions = openai.String(r.System)
	}
	if r.MaxTokens > 0 {
		p.MaxOutputTokens = openai.Int(int64(r.MaxTokens))
	}
	if r.Temperature != nil {
		p.Temperature = openai.Float(*r.Temperature)
	}
	if r.Effort != "" {
		p.Reasoning.Effort = shared.ReasoningEffort(r.Effort) // no summary: organizations that are not verified are refused when they ask for one
	}
	for _, t := range r.Tools {
		s, err := rooted(t)
		if err != nil {
			return p, err
		}
		// Strict is what the API assumes when it is not told.
		f := &responses.FunctionToolParam{Name: n.theirs(t.Name), Parameters: s, Strict: openai.Bool(strict(s))}
		if t.Description != "" {
			f.Description = openai.String(t.Description)
		}
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: f})
	}
	if len(r.Tools) > 0 && r.Choice != MayCall {
		p.ToolChoice.OfToolChoiceMode = openai.Opt(responses.ToolChoiceOptions(r.Choice))
	}
	for _, msg := range ms {
		items, err := m.items(msg, n)
		if err != nil {
			return p, err
		}
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, items...)
	}
	return p, nil
}

// items gives a message's parts, each an item of its own, except that what a person says at once is one.
func (m *responsesModel) items(msg Message, n names) (responses.ResponseInputParam, error) {
	var out responses.ResponseInputParam
	var said responses.ResponseInputMessageContentListParam
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			if msg.Role == User {
				said = append(said, responses.ResponseInputContentParamOfInputText(p.Text))
				continue
			}
			item := responses.ResponseInputItemParamOfMessage(p.Text, responses.EasyInputMessageRoleAssistant)
			var kept struct{ Phase string }
			if raw, ok := unseal(m.server.Name, p.Raw); ok && json.Unmarshal(raw, &kept) == nil {
				item.OfMessage.Phase = responses.EasyInputMessagePhase(kept.Phase)
			}
			out = append(out, item)
		case Media:
			c, err := m.media(p)
			if err != nil {
				return nil, err
			}
			said = append(said, c)
		case Reasoning:
			raw, _ := unseal(m.server.Name, p.Raw)
			var item struct{ Type string }
			if json.Unmarshal(raw, &item) == nil && item.Type == "reasoning" { // what the chat API kept is of no use here
				out = append(out, param.Override[responses.ResponseInputItemUnionParam](raw))
			}
		case ToolCall:
			out = append(out, responses.ResponseInputItemParamOfFunctionCall(written(p.Args), p.ID, n.theirs(p.Name)))
		case Result:
			out = append(out, responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(p.ID),
				Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(resultText(p))}}})
		}
	}
	if len(said) > 0 {
		out = append(out, responses.ResponseInputItemParamOfMessage(said, responses.EasyInputMessageRoleUser))
	}
	return out, nil
}

func (m *responsesModel) media(p Part) (responses.ResponseInputContentUnionParam, error) {
	image := &responses.ResponseInputImageParam{Detail: responses.ResponseInputImageDetailAuto}
	file := &responses.ResponseInputFileParam{}
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		image.ImageURL = openai.String(p.URL)
		return responses.ResponseInputContentUnionParam{OfInputImage: image}, nil
	case kind == imageMedia:
		image.ImageURL = openai.String(dataURL(p))
		return responses.ResponseInputContentUnionParam{OfInputImage: image}, nil
	case kind == pdfMedia && p.URL != "":
		file.FileURL = openai.String(p.URL)
		return responses.ResponseInputContentUnionParam{OfInputFile: file}, nil
	case kind == pdfMedia:
		file.FileData, file.Filename = openai.String(dataURL(p)), openai.String(named(p))
		return responses.ResponseInputContentUnionParam{OfInputFile: file}, nil
	case kind == textMedia && p.URL == "":
		return responses.ResponseInputContentParamOfInputText(quoted(p)), nil
	default:
		return responses.ResponseInputContentUnionParam{}, unsendable(m.server.Name, p, "images, PDF files, and text as bytes")
	}
}

// listen turns the events of a stream into an answer.
func (m *responsesModel) listen(ctx context.Context, st *ssestream.Stream[responses.ResponseStreamEventUnion], d *draft) (Answer, error) {
	defer func() { _ = st.Close() }()
	refused := false
	for st.Next() {
		e := st.Current()
		key := fmt.Sprint(e.OutputIndex)
		switch e.Type {
		case "response.created", "response.in_progress":
			d.answer.ID = e.Response.ID
			if e.Response.Model != "" {
				d.answer.Model = e.Response.Model
			}
		case "response.output_text.delta":
			d.say(key, e.Delta)
		case "response.refusal.delta":
			refused = true
			d.say(key, e.Delta)
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			d.think(key, e.Delta)
		case "response.reasoning_summary_part.added":
			if e.SummaryIndex > 0 {
				d.think(key, "\n\n")
			}
		case "response.output_item.added":
			if e.Item.Type == "function_call" {
				d.call(key, e.Item.CallID, e.Item.Name, e.Item.Arguments.OfString)
			}
		case "response.function_call_arguments.delta":
			d.call(key, "", "", e.Delta)
		case "response.output_item.done":
			m.done(d, key, e.Item)
		case "response.completed", "response.incomplete":
			return m.end(d, e.Response, refused)
		case "response.failed":
			return Answer{}, openaiRefused(m.server, string(e.Response.Error.Code), e.Response.Error.Message)
		case "error":
			return Answer{}, openaiRefused(m.server, e.Code, e.Message)
		}
	}
	if err := st.Err(); err != nil {
		return Answer{}, openaiFailed(ctx, m.server, err)
	}
	return Answer{}, m.server.cut(ctx)
}

// done takes what an item was in the end: servers that do not stream pieces of it give it here only.
func (m *responsesModel) done(d *draft, key string, item responses.ResponseOutputItemUnion) {
	switch item.Type {
	case "reasoning":
		d.think(key, "").Raw = seal(m.server.Name, json.RawMessage(item.RawJSON()))
	case "function_call":
		p := d.call(key, item.CallID, item.Name, "")
		if p.text.Len() == 0 {
			d.call(key, "", "", item.Arguments.OfString)
		}
	case "message":
		p := d.part(key, Text)
		if p.text.Len() == 0 {
			for _, c := range item.Content {
				d.say(key, c.Text+c.Refusal)
			}
		}
		if item.Phase != "" {
			p.Raw = seal(m.server.Name, map[string]string{"phase": string(item.Phase)})
		}
	}
}

func (m *responsesModel) end(d *draft, r responses.Response, refused bool) (Answer, error) {
	if r.ID != "" {
		d.answer.ID = r.ID
	}
	u := r.Usage
	d.answer.Usage = Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.InputTokensDetails.CachedTokens,
		CacheWrite: u.InputTokensDetails.CacheWriteTokens, Reasoning: u.OutputTokensDetails.ReasoningTokens}
	filtered := r.IncompleteDetails.Reason == "content_filter"
	switch {
	case refused || filtered:
		return d.finish(StopRefused)
	case r.Status == responses.ResponseStatusIncomplete:
		return d.finish(StopLength)
	default:
		return d.finish(StopEnd)
	}
}
