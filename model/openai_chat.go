package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

type chatRequest struct {
	Messages            []chatMessage `json:"messages"`
	Model               string        `json:"model"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	Effort              string        `json:"reasoning_effort,omitempty"`
	StreamOptions       chatOptions   `json:"stream_options"`
	Choice              any           `json:"tool_choice,omitempty"` // a Choice, or a tool
	Parallel            *bool         `json:"parallel_tool_calls,omitempty"`
	StopAt              []string      `json:"stop,omitempty"`
	TopP                *float64      `json:"top_p,omitempty"`
	Format              *openaiFormat `json:"response_format,omitempty"`
	Tools               []chatTool    `json:"tools,omitempty"`
	Stream              bool          `json:"stream"`
}

type chatOptions struct {
	Usage bool `json:"include_usage"`
}

type chatMessage struct {
	Content   any        `json:"content,omitempty"` // a text, or parts
	Calls     []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
	Role      string     `json:"role"`
	Reasoning string     `json:"reasoning_content,omitempty"`
}

type chatCall struct {
	Index    int    `json:"index,omitempty"` // in streams only
	ID       string `json:"id,omitempty"`
	Function struct {
		Arguments piece  `json:"arguments"`
		Name      string `json:"name,omitempty"`
	} `json:"function"`
	Type string `json:"type,omitempty"`
}

type chatPart struct {
	Text  string     `json:"text,omitempty"`
	Image *chatImage `json:"image_url,omitempty"`
	File  *chatFile  `json:"file,omitempty"`
	Audio *chatAudio `json:"input_audio,omitempty"`
	Type  string     `json:"type"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatFile struct {
	Data string `json:"file_data"`
	Name string `json:"filename"`
}

type chatAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type chatTool struct {
	Function chatFunction `json:"function"`
	Type     string       `json:"type"`
}

// chatChoice is the one tool that must be called.
type chatChoice struct {
	Type     string     `json:"type"`
	Function chatChosen `json:"function"`
}

type chatChosen struct {
	Name string `json:"name"`
}

type chatFunction struct {
	Name        string `json:"name"`
	Strict      bool   `json:"strict,omitempty"`
	Description string `json:"description,omitempty"`
	Parameters  schema `json:"parameters"`
}

type chatModel struct{ server Server }

// OpenAIChat speaks the Chat Completions API, which most servers know that call themselves compatible.
func OpenAIChat(s Server) Model {
	return &chatModel{server: s.or("openai", openaiURL, "OPENAI_API_KEY")}
}

// Answer implements Model.
func (m *chatModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.ask(ctx, m, r, watch)
}

func (m *chatModel) address(Request) (string, http.Header) {
	return m.server.URL + "/chat/completions", openaiHeader(m.server)
}

func (m *chatModel) request(r Request, ms []Message, n names) (any, error) {
	p := &chatRequest{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP, StopAt: r.StopAt, Effort: r.Effort,
		StreamOptions: chatOptions{Usage: true}, Stream: true}
	if m.server.genuine() {
		// thinking models of OpenAI's refuse the old name; other servers know only that
		p.MaxCompletionTokens = r.MaxTokens
	} else {
		p.MaxTokens = r.MaxTokens
	}
	if r.Format != nil {
		kind, shape := r.Format.openai()
		p.Format = &openaiFormat{Type: kind, In: shape}
	}
	for _, t := range r.Tools {
		s, err := rooted(t)
		if err != nil {
			return nil, err
		}
		p.Tools = append(p.Tools, chatTool{Type: "function",
			Function: chatFunction{Name: n.theirs(t.Name), Description: t.Description, Parameters: s,
				Strict: m.server.genuine() && strict(s)}})
	}
	if len(r.Tools) > 0 {
		p.Parallel = r.parallel()
		switch {
		case r.Choice == MustCall && r.ChoiceTool != "":
			p.Choice = chatChoice{Type: "function", Function: chatChosen{Name: n.theirs(r.ChoiceTool)}}
		case r.Choice != MayCall:
			p.Choice = r.Choice
		}
	}
	if r.System != "" {
		p.Messages = append(p.Messages, chatMessage{Role: "system", Content: r.System})
	}
	asked := lastAsked(ms)
	for i, msg := range ms {
		if msg.Role == Assistant {
			p.Messages = append(p.Messages, m.assistant(msg, n, i > asked))
			continue
		}
		p.Messages = append(p.Messages, m.user(msg)...)
	}
	return p, nil
}

// assistant gives back what the model said. Servers whose models think want to see the thoughts again that led to calls
// of the present turn, and refuse those of earlier ones.
func (m *chatModel) assistant(msg Message, n names, present bool) chatMessage {
	a := chatMessage{Role: "assistant"}
	var thoughts strings.Builder // there may be very many parts
	for _, p := range msg.Parts {
		switch p.Type {
		case Reasoning:
			thoughts.WriteString(p.Text)
		case ToolCall:
			c := chatCall{ID: p.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = n.theirs(p.Name), piece(written(p.Args))
			a.Calls = append(a.Calls, c)
		case Text, Media, Result:
		}
	}
	if text := (Answer{Parts: msg.Parts}).Text(); text != "" {
		a.Content = text
	}
	if present && len(a.Calls) > 0 && !m.server.genuine() {
		a.Reasoning = thoughts.String()
	}
	return a
}

// user gives results, each a message of its own, and then what the user said.
func (m *chatModel) user(msg Message) []chatMessage {
	var out []chatMessage
	var parts []chatPart
	for _, p := range msg.Parts {
		switch p.Type {
		case Result:
			out = append(out, chatMessage{Role: "tool", CallID: p.ID, Content: resultText(p)})
		case Text:
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
		case Media:
			parts = append(parts, m.media(p))
		case Reasoning, ToolCall:
		}
	}
	switch {
	case len(parts) == 1 && parts[0].Type == "text":
		out = append(out, chatMessage{Role: "user", Content: parts[0].Text}) // the form that every server takes
	case len(parts) > 0:
		out = append(out, chatMessage{Role: "user", Content: parts})
	}
	return out
}

// resultText says that a result is an error where the provider has no field for that.
func resultText(p Part) string {
	if p.IsError {
		return "Error: " + p.Text
	}
	return p.Text
}

// chatSounds are the sounds that can be sent.
var chatSounds = map[string]string{"audio/wav": "wav", "audio/mpeg": "mp3"}

func (m *chatModel) refuses(p Part) error {
	switch kind := mediaKind(p); {
	case kind == imageMedia, p.URL == "" && (kind == pdfMedia || kind == textMedia || chatSounds[p.MediaType] != ""):
		return nil
	default:
		return unsendable(m.server.Name, p, "images, and PDF, text, WAV and MP3 files as bytes")
	}
}

func (m *chatModel) media(p Part) chatPart {
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		return chatPart{Type: "image_url", Image: &chatImage{URL: p.URL}}
	case kind == imageMedia:
		return chatPart{Type: "image_url", Image: &chatImage{URL: dataURL(p)}}
	case kind == pdfMedia:
		return chatPart{Type: "file", File: &chatFile{Data: dataURL(p), Name: named(p)}}
	case kind == textMedia:
		return chatPart{Type: "text", Text: quoted(p)}
	default:
		return chatPart{Type: "input_audio", Audio: &chatAudio{Data: encoded(p), Format: chatSounds[p.MediaType]}}
	}
}

type chatChunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index  int    `json:"index"`
		Finish string `json:"finish_reason"`
		Delta  struct {
			Content   piece      `json:"content"`
			Refusal   piece      `json:"refusal"`
			Reasoning piece      `json:"reasoning_content"` // as most compatible servers call it
			Thought   piece      `json:"reasoning"`         // as others do
			Calls     []chatCall `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Usage tally[*struct {
		Prompt     count `json:"prompt_tokens"`
		Completion count `json:"completion_tokens"`
		Read       struct {
			Cached  count `json:"cached_tokens"`
			Written count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Details struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}] `json:"usage"`
	Error json.RawMessage `json:"error"`
}

var chatStops = map[string]Stop{"stop": StopEnd, "eos": StopEnd, "tool_calls": StopTools, "function_call": StopTools,
	"length": StopLength, "content_filter": StopRefused}

// listen turns the chunks of a stream into an answer. Counts come in a chunk of their own after the last choice, or
// never.
func (m *chatModel) listen(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if err := m.server.check(res, openaiError); err != nil {
		return Answer{}, err
	}
	reason, refused := "", false
	for data, err := range d.events(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		if string(data) == "[DONE]" {
			break
		}
		var c chatChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return Answer{}, m.server.nonsense("%v", err)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			kind, message := openaiError(data)
			return Answer{}, openaiRefused(m.server, kind, message)
		}
		if c.ID != "" {
			d.answer.ID = c.ID
		}
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if u := c.Usage.of; u != nil {
			d.answer.Usage = Usage{Input: int64(u.Prompt), Output: int64(u.Completion), CacheRead: int64(u.Read.Cached),
				CacheWrite: int64(u.Read.Written), Reasoning: int64(u.Details.Reasoning)}
		}
		for _, choice := range c.Choices {
			if choice.Index != 0 {
				continue
			}
			if choice.Finish != "" {
				reason = choice.Finish
			}
			refused = m.piece(d, choice.Delta.Reasoning+choice.Delta.Thought, choice.Delta.Content,
				choice.Delta.Refusal, choice.Delta.Calls) || refused
		}
	}
	if reason == "" {
		return Answer{}, m.server.cut(ctx)
	}
	if refused {
		return d.finish(StopRefused)
	}
	return d.finish(known(chatStops, reason))
}

// piece adds what a chunk has, and says whether it is a refusal.
func (m *chatModel) piece(d *draft, thought, content, refusal piece, calls []chatCall) bool {
	if thought != "" {
		d.keep(d.think("", thought), "reasoning_content")
	}
	if content+refusal != "" {
		d.say("", content+refusal)
	}
	for _, c := range calls {
		d.call(fmt.Sprint(c.Index), c.ID, c.Function.Name, c.Function.Arguments)
	}
	return refusal != ""
}
