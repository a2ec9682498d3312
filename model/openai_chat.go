package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

type chatModel struct {
	server  Server
	service openai.ChatCompletionService
}

// OpenAIChat speaks the Chat Completions API, which most servers know that call themselves compatible.
func OpenAIChat(s Server) Model {
	s = s.or("openai", openaiURL, "OPENAI_API_KEY")
	return &chatModel{server: s, service: openai.NewChatCompletionService(openaiOptions(s)...)}
}

// Answer implements Model.
func (m *chatModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
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

func (m *chatModel) params(r Request, ms []Message, n names) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: r.Model, StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}}
	switch {
	case r.MaxTokens > 0 && m.server.genuine():
		p.MaxCompletionTokens = openai.Int(int64(r.MaxTokens)) // thinking models of OpenAI's refuse the old name; other servers know only that
	case r.MaxTokens > 0:
		p.MaxTokens = openai.Int(int64(r.MaxTokens))
	}
	if r.Temperature != nil {
		p.Temperature = openai.Float(*r.Temperature)
	}
	p.ReasoningEffort = shared.ReasoningEffort(r.Effort)
	for _, t := range r.Tools {
		s, err := rooted(t)
		if err != nil {
			return p, err
		}
		f := shared.FunctionDefinitionParam{Name: n.theirs(t.Name), Parameters: s}
		if t.Description != "" {
			f.Description = openai.String(t.Description)
		}
		if m.server.genuine() && strict(s) {
			f.Strict = openai.Bool(true)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(f))
	}
	if len(r.Tools) > 0 && r.Choice != MayCall {
		p.ToolChoice.OfAuto = openai.String(string(r.Choice))
	}
	if r.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(r.System))
	}
	asked := lastAsked(ms)
	for i, msg := range ms {
		if msg.Role == Assistant {
			p.Messages = append(p.Messages, m.assistant(msg, n, i > asked))
			continue
		}
		said, err := m.user(msg)
		if err != nil {
			return p, err
		}
		p.Messages = append(p.Messages, said...)
	}
	return p, nil
}

// lastAsked is the last message in which a person says something, and not only tools.
func lastAsked(ms []Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		for _, p := range ms[i].Parts {
			if ms[i].Role == User && p.Type != Result {
				return i
			}
		}
	}
	return -1
}

// assistant gives back what the model said. Servers whose models think want to see the thoughts again that led to calls of the present turn, and
// refuse those of earlier ones.
func (m *chatModel) assistant(msg Message, n names, present bool) openai.ChatCompletionMessageParamUnion {
	var a openai.ChatCompletionAssistantMessageParam
	var text, thoughts string
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			text += p.Text
		case Reasoning:
			thoughts += p.Text
		case ToolCall:
			a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: p.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: n.theirs(p.Name), Arguments: written(p.Args)}}})
		case Media, Result:
		}
	}
	if text != "" {
		a.Content.OfString = openai.String(text)
	}
	if present && thoughts != "" && len(a.ToolCalls) > 0 && !m.server.genuine() {
		a.SetExtraFields(map[string]any{"reasoning_content": thoughts})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

// user gives results, each a message of its own, and then what the user said.
func (m *chatModel) user(msg Message) ([]openai.ChatCompletionMessageParamUnion, error) {
	var out []openai.ChatCompletionMessageParamUnion
	var parts []openai.ChatCompletionContentPartUnionParam
	for _, p := range msg.Parts {
		switch p.Type {
		case Result:
			out = append(out, openai.ToolMessage(resultText(p), p.ID))
		case Text:
			parts = append(parts, openai.TextContentPart(p.Text))
		case Media:
			c, err := m.media(p)
			if err != nil {
				return nil, err
			}
			parts = append(parts, c)
		case Reasoning, ToolCall:
		}
	}
	switch {
	case len(parts) == 1 && parts[0].OfText != nil:
		out = append(out, openai.UserMessage(parts[0].OfText.Text)) // the form that every server takes
	case len(parts) > 0:
		out = append(out, openai.UserMessage(parts))
	}
	return out, nil
}

// resultText says that a result is an error where the provider has no field for that.
func resultText(p Part) string {
	if p.IsError {
		return "Error: " + p.Text
	}
	return p.Text
}

func (m *chatModel) media(p Part) (openai.ChatCompletionContentPartUnionParam, error) {
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: p.URL}), nil
	case kind == imageMedia:
		return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: dataURL(p)}), nil
	case kind == pdfMedia && p.URL == "":
		return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileData: openai.String(dataURL(p)), Filename: openai.String(named(p))}), nil
	case kind == textMedia && p.URL == "":
		return openai.TextContentPart(quoted(p)), nil
	case kind == audioMedia && p.URL == "" && (p.MediaType == "audio/wav" || p.MediaType == "audio/mpeg"):
		format := map[string]string{"audio/wav": "wav", "audio/mpeg": "mp3"}[p.MediaType]
		return openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: encoded(p), Format: format}), nil
	default:
		return openai.ChatCompletionContentPartUnionParam{}, unsendable(m.server.Name, p, "images, and PDF, text, WAV and MP3 files as bytes")
	}
}

var chatStops = map[string]Stop{"stop": StopEnd, "eos": StopEnd, "tool_calls": StopTools, "function_call": StopTools, "length": StopLength, "content_filter": StopRefused}

// listen turns the chunks of a stream into an answer. Counts come in a chunk of their own after the last choice, or never.
func (m *chatModel) listen(ctx context.Context, st *ssestream.Stream[openai.ChatCompletionChunk], d *draft) (Answer, error) {
	defer func() { _ = st.Close() }()
	reason, refused := "", false
	for st.Next() {
		c := st.Current()
		if c.ID != "" {
			d.answer.ID = c.ID
		}
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if c.JSON.Usage.Valid() {
			u := c.Usage
			d.answer.Usage = Usage{Input: u.PromptTokens, Output: u.CompletionTokens, CacheRead: u.PromptTokensDetails.CachedTokens,
				CacheWrite: u.PromptTokensDetails.CacheWriteTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens}
		}
		for _, choice := range c.Choices {
			if choice.Index != 0 {
				continue
			}
			if choice.FinishReason != "" {
				reason = choice.FinishReason
			}
			delta := choice.Delta
			if t := thought(delta.JSON.ExtraFields); t != "" {
				d.think("", t)
			}
			if delta.Content != "" {
				d.say("", delta.Content)
			}
			if delta.Refusal != "" {
				refused = true
				d.say("", delta.Refusal)
			}
			for _, t := range delta.ToolCalls {
				d.call(fmt.Sprint(t.Index), t.ID, t.Function.Name, t.Function.Arguments)
			}
		}
	}
	if err := st.Err(); err != nil {
		return Answer{}, openaiFailed(ctx, m.server, err)
	}
	if reason == "" {
		return Answer{}, m.server.cut(ctx)
	}
	for _, p := range d.parts {
		if p.Type == Reasoning {
			p.Raw = seal(m.server.Name, "reasoning_content")
		}
	}
	stop := known(chatStops, reason)
	if refused {
		stop = StopRefused
	}
	return d.finish(stop)
}

// thought reads the field that compatible servers put thoughts into.
func thought(extra map[string]respjson.Field) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if f, ok := extra[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil {
			return text
		}
	}
	return ""
}
