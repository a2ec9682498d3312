package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"reeve"
)

// This adapter uses Ollama's own API, because thinking cannot be enabled in its OpenAI-compatible one.

type ollamaRequest struct {
	Model    string          `json:"model"`
	Messages []ollamaMessage `json:"messages"`
	Tools    []ollamaTool    `json:"tools,omitempty"`
	Stream   bool            `json:"stream"`
	Think    any             `json:"think,omitempty"`
	Format   any             `json:"format,omitempty"`
	Options  *ollamaOptions  `json:"options,omitempty"`
}

type ollamaOptions struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	StopAt      []string `json:"stop,omitempty"`
	MaxTokens   int      `json:"num_predict,omitempty"`
}

type ollamaMessage struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Images   [][]byte     `json:"images,omitempty"`
	Calls    []ollamaCall `json:"tool_calls,omitempty"`
	ToolName string       `json:"tool_name,omitempty"`
	CallID   string       `json:"tool_call_id,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type ollamaTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Parameters  schema `json:"parameters"`
	} `json:"function"`
}

type ollamaChunk struct {
	Model   string `json:"model"`
	Created string `json:"created_at"`
	Message struct {
		Content  fragment     `json:"content"`
		Thinking fragment     `json:"thinking"`
		Calls    []ollamaCall `json:"tool_calls"`
	} `json:"message"`
	Done    bool       `json:"done"`
	Reason  string     `json:"done_reason"`
	Read    tokenCount `json:"prompt_eval_count"`
	Written tokenCount `json:"eval_count"`
	Error   string     `json:"error"`
}

var ollamaStops = map[string]Stop{"stop": StopEnd, "length": StopLength}

type ollamaModel struct{ server Server }

// Ollama returns a Model that uses the Ollama API, by default on this machine.
func Ollama(s Server) Model {
	return &ollamaModel{server: s.withDefaults("ollama", "http://127.0.0.1:11434", "OLLAMA_API_KEY")}
}

// Answer implements Model.
func (m *ollamaModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.roundTrip(ctx, m, r, watch)
}

func (m *ollamaModel) endpoint(Request) (string, http.Header) {
	h := http.Header{}
	if m.server.Key != "" {
		h.Set("Authorization", "Bearer "+m.server.Key)
	}
	return m.server.URL + "/api/chat", h
}

func (m *ollamaModel) buildRequest(r Request, ms []Message, n toolNames) (any, error) {
	if r.Choice == MustCall {
		return nil, reeve.Errorf(reeve.Unsupported, "%s cannot force a tool call (tool_choice)", m.server.Name).
			Hintf("set tool_choice to auto, or use a model of another provider")
	}
	body := &ollamaRequest{Model: r.Model, Stream: true}
	if r.Effort != "" {
		body.Think = true
		if strings.HasPrefix(r.Model, "gpt-oss") {
			body.Think = r.Effort // the only models with levels of effort
		}
	}
	if f := r.Format; f != nil {
		body.Format = "json"
		if len(f.Schema) > 0 {
			body.Format = f.Schema
		}
	}
	if r.MaxTokens > 0 || r.Temperature != nil || r.TopP != nil || len(r.StopAt) > 0 {
		body.Options = &ollamaOptions{Temperature: r.Temperature, MaxTokens: r.MaxTokens, TopP: r.TopP,
			StopAt: r.StopAt}
	}
	if r.System != "" {
		body.Messages = append(body.Messages, ollamaMessage{Role: "system", Content: r.System})
	}
	if r.Choice != NoCall { // the API has no tool choice, so offer no tools
		for _, t := range r.Tools {
			s, err := objectSchema(t)
			if err != nil {
				return nil, err
			}
			tool := ollamaTool{Type: "function"}
			tool.Function.Name, tool.Function.Description, tool.Function.Parameters = n.toProvider(t.Name),
				t.Description, s
			body.Tools = append(body.Tools, tool)
		}
	}
	for _, msg := range ms {
		body.Messages = append(body.Messages, m.buildMessages(msg, n)...)
	}
	return body, nil
}

func (m *ollamaModel) checkMedia(p Part) error {
	if kind := mediaKind(p); p.URL == "" && (kind == imageMedia || kind == textMedia) {
		return nil
	}
	return unsupportedMedia(m.server.Name, p, "images and text, as bytes")
}

// buildMessages converts a message: one message per tool result, then one for the rest.
func (m *ollamaModel) buildMessages(msg Message, n toolNames) []ollamaMessage {
	var out []ollamaMessage
	rest := ollamaMessage{Role: string(msg.Role)}
	var texts, reasoning []string // joined at the end, because there may be very many
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			texts = append(texts, p.Text)
		case Reasoning:
			reasoning = append(reasoning, p.Text)
		case ToolCall:
			c := ollamaCall{ID: p.ID}
			c.Function.Name, c.Function.Arguments = n.toProvider(p.Name), argumentsObject(p.Args)
			rest.Calls = append(rest.Calls, c)
		case Result:
			out = append(out, ollamaMessage{Role: "tool", Content: resultText(p), ToolName: n.toProvider(p.Name),
				CallID: p.ID})
		case Media:
			if mediaKind(p) == imageMedia {
				rest.Images = append(rest.Images, p.Data)
			} else {
				texts = append(texts, inlineText(p))
			}
		}
	}
	rest.Content, rest.Thinking = strings.Join(texts, "\n\n"), strings.Join(reasoning, "")
	if rest.Content != "" || len(rest.Images) > 0 || len(rest.Calls) > 0 {
		out = append(out, rest)
	}
	return out
}

// readStream builds the answer from the lines of a stream.
func (m *ollamaModel) readStream(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if res.StatusCode != http.StatusOK {
		body := readBody(res)
		var c ollamaChunk
		if json.Unmarshal(body, &c) != nil || c.Error == "" {
			c.Error = string(body)
		}
		return Answer{}, m.server.statusError(res.StatusCode, res.Header, "", c.Error)
	}
	calls := 0
	for line, err := range d.lines(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		var c ollamaChunk
		if err := json.Unmarshal(line, &c); err != nil {
			return Answer{}, m.server.invalidAnswer("%v", err)
		}
		if c.Error != "" { // an error within the stream has no status
			return Answer{}, m.server.statusError(http.StatusInternalServerError, nil, "", c.Error)
		}
		if d.answer.ID == "" {
			d.answer.ID = c.Created // answers have no id, so use their start time
		}
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if c.Message.Thinking != "" {
			d.setRaw(d.addReasoning("", c.Message.Thinking), "thinking")
		}
		if c.Message.Content != "" {
			d.addText("", c.Message.Content)
		}
		for _, call := range c.Message.Calls {
			d.addCall(fmt.Sprint(calls), call.ID, call.Function.Name, fragment(call.Function.Arguments))
			calls++
		}
		if c.Done {
			d.answer.Usage = Usage{Input: int64(c.Read), Output: int64(c.Written)}
			return d.finish(parseStop(ollamaStops, c.Reason))
		}
	}
	return Answer{}, m.server.truncatedError(ctx)
}
