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
	Choice              any           `json:"tool_choice,omitempty"` // a Choice or a chatChoice
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
	Content   any        `json:"content,omitempty"` // a string or []chatPart
	Calls     []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
	Role      string     `json:"role"`
	Reasoning string     `json:"reasoning_content,omitempty"`
}

type chatCall struct {
	Index    int    `json:"index,omitempty"` // in streams only
	ID       string `json:"id,omitempty"`
	Function struct {
		Arguments fragment `json:"arguments"`
		Name      string   `json:"name,omitempty"`
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

// chatChoice selects the tool that must be called.
type chatChoice struct {
	Type     string           `json:"type"`
	Function chatFunctionName `json:"function"`
}

type chatFunctionName struct {
	Name string `json:"name"`
}

type chatFunction struct {
	Name        string `json:"name"`
	Strict      bool   `json:"strict,omitempty"`
	Description string `json:"description,omitempty"`
	Parameters  schema `json:"parameters"`
}

type chatModel struct{ server Server }

// OpenAIChat returns a Model that uses the Chat Completions API of OpenAI and compatible servers.
func OpenAIChat(s Server) Model {
	return &chatModel{server: s.withDefaults("openai", openaiURL, "OPENAI_API_KEY")}
}

// Answer implements Model.
func (m *chatModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.roundTrip(ctx, m, r, watch)
}

func (m *chatModel) endpoint(Request) (string, http.Header) {
	return m.server.URL + "/chat/completions", openaiHeader(m.server)
}

func (m *chatModel) buildRequest(r Request, ms []Message, n toolNames) (any, error) {
	p := &chatRequest{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP, StopAt: r.StopAt, Effort: r.Effort,
		StreamOptions: chatOptions{Usage: true}, Stream: true}
	if m.server.isOpenAI() {
		// OpenAI's reasoning models reject max_tokens. Other servers know only max_tokens.
		p.MaxCompletionTokens = r.MaxTokens
	} else {
		p.MaxTokens = r.MaxTokens
	}
	if r.Format != nil {
		kind, shape := r.Format.openaiFormat()
		p.Format = &openaiFormat{Type: kind, Nested: shape}
	}
	for _, t := range r.Tools {
		s, err := objectSchema(t)
		if err != nil {
			return nil, err
		}
		p.Tools = append(p.Tools, chatTool{Type: "function",
			Function: chatFunction{Name: n.toProvider(t.Name), Description: t.Description, Parameters: s,
				Strict: m.server.isOpenAI() && isStrict(s)}})
	}
	if len(r.Tools) > 0 {
		p.Parallel = r.parallelToolCalls()
		switch {
		case r.Choice == MustCall && r.ChoiceTool != "":
			p.Choice = chatChoice{Type: "function", Function: chatFunctionName{Name: n.toProvider(r.ChoiceTool)}}
		case r.Choice != MayCall:
			p.Choice = r.Choice
		}
	}
	if r.System != "" {
		p.Messages = append(p.Messages, chatMessage{Role: "system", Content: r.System})
	}
	lastUser := lastUserMessage(ms)
	for i, msg := range ms {
		if msg.Role == Assistant {
			p.Messages = append(p.Messages, m.assistantMessage(msg, n, i > lastUser))
			continue
		}
		p.Messages = append(p.Messages, m.userMessages(msg)...)
	}
	return p, nil
}

// assistantMessage converts a message of the model. Compatible servers expect the reasoning of the current turn's calls
// and reject that of earlier turns.
func (m *chatModel) assistantMessage(msg Message, n toolNames, isCurrentTurn bool) chatMessage {
	a := chatMessage{Role: "assistant"}
	var reasoning strings.Builder // a builder, because there may be very many parts
	for _, p := range msg.Parts {
		switch p.Type {
		case Reasoning:
			reasoning.WriteString(p.Text)
		case ToolCall:
			c := chatCall{ID: p.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = n.toProvider(p.Name), fragment(argumentsText(p.Args))
			a.Calls = append(a.Calls, c)
		case Text, Media, Result:
		}
	}
	if text := (Answer{Parts: msg.Parts}).Text(); text != "" {
		a.Content = text
	}
	if isCurrentTurn && len(a.Calls) > 0 && !m.server.isOpenAI() {
		a.Reasoning = reasoning.String()
	}
	return a
}

// userMessages converts a message of the user: one message per tool result, then one for the rest.
func (m *chatModel) userMessages(msg Message) []chatMessage {
	var out []chatMessage
	var parts []chatPart
	for _, p := range msg.Parts {
		switch p.Type {
		case Result:
			out = append(out, chatMessage{Role: "tool", CallID: p.ID, Content: resultText(p)})
		case Text:
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
		case Media:
			parts = append(parts, m.mediaPart(p))
		case Reasoning, ToolCall:
		}
	}
	switch {
	case len(parts) == 1 && parts[0].Type == "text":
		out = append(out, chatMessage{Role: "user", Content: parts[0].Text}) // all servers accept a plain string
	case len(parts) > 0:
		out = append(out, chatMessage{Role: "user", Content: parts})
	}
	return out
}

// resultText returns the text of a result. It marks an error in the text, because the API has no field for it.
func resultText(p Part) string {
	if p.IsError {
		return "Error: " + p.Text
	}
	return p.Text
}

// chatAudioFormats are the accepted audio types.
var chatAudioFormats = map[string]string{"audio/wav": "wav", "audio/mpeg": "mp3"}

func (m *chatModel) checkMedia(p Part) error {
	switch kind := mediaKind(p); {
	case kind == imageMedia, p.URL == "" && (kind == pdfMedia || kind == textMedia ||
		chatAudioFormats[p.MediaType] != ""):
		return nil
	default:
		return unsupportedMedia(m.server.Name, p, "images, and PDF, text, WAV and MP3 files as bytes")
	}
}

func (m *chatModel) mediaPart(p Part) chatPart {
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		return chatPart{Type: "image_url", Image: &chatImage{URL: p.URL}}
	case kind == imageMedia:
		return chatPart{Type: "image_url", Image: &chatImage{URL: dataURL(p)}}
	case kind == pdfMedia:
		return chatPart{Type: "file", File: &chatFile{Data: dataURL(p), Name: fileName(p)}}
	case kind == textMedia:
		return chatPart{Type: "text", Text: inlineText(p)}
	default:
		return chatPart{Type: "input_audio", Audio: &chatAudio{Data: base64Data(p),
			Format: chatAudioFormats[p.MediaType]}}
	}
}

type chatChunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index  int    `json:"index"`
		Finish string `json:"finish_reason"`
		Delta  struct {
			Content   fragment   `json:"content"`
			Refusal   fragment   `json:"refusal"`
			Reasoning fragment   `json:"reasoning_content"` // the field of most compatible servers
			Thought   fragment   `json:"reasoning"`         // the field of other servers
			Calls     []chatCall `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Usage lenient[*struct {
		Prompt     tokenCount `json:"prompt_tokens"`
		Completion tokenCount `json:"completion_tokens"`
		Read       struct {
			Cached  tokenCount `json:"cached_tokens"`
			Written tokenCount `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Details struct {
			Reasoning tokenCount `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}] `json:"usage"`
	Error json.RawMessage `json:"error"`
}

var chatStops = map[string]Stop{"stop": StopEnd, "eos": StopEnd, "tool_calls": StopTools, "function_call": StopTools,
	"length": StopLength, "content_filter": StopRefused}

// readStream builds the answer from the chunks of a stream. Token counts come in a chunk after the last choice, or not
// at all.
func (m *chatModel) readStream(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if err := m.server.checkStream(res, parseOpenAIError); err != nil {
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
			return Answer{}, m.server.invalidAnswer("%v", err)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			kind, message := parseOpenAIError(data)
			return Answer{}, openaiStreamError(m.server, kind, message)
		}
		if c.ID != "" {
			d.answer.ID = c.ID
		}
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if u := c.Usage.value; u != nil {
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
			refused = m.addDelta(d, choice.Delta.Reasoning+choice.Delta.Thought, choice.Delta.Content,
				choice.Delta.Refusal, choice.Delta.Calls) || refused
		}
	}
	if reason == "" {
		return Answer{}, m.server.truncatedError(ctx)
	}
	if refused {
		return d.finish(StopRefused)
	}
	return d.finish(parseStop(chatStops, reason))
}

// addDelta adds the content of a chunk and reports whether it is a refusal.
func (m *chatModel) addDelta(d *draft, thought, content, refusal fragment, calls []chatCall) bool {
	if thought != "" {
		d.setRaw(d.addReasoning("", thought), "reasoning_content")
	}
	if content+refusal != "" {
		d.addText("", content+refusal)
	}
	for _, c := range calls {
		d.addCall(fmt.Sprint(c.Index), c.ID, c.Function.Name, c.Function.Arguments)
	}
	return refusal != ""
}
