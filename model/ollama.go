package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"reeve"
)

// Ollama's own API, not its OpenAI-compatible one: only there models can be told to think.

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
		Content  piece        `json:"content"`
		Thinking piece        `json:"thinking"`
		Calls    []ollamaCall `json:"tool_calls"`
	} `json:"message"`
	Done    bool   `json:"done"`
	Reason  string `json:"done_reason"`
	Read    count  `json:"prompt_eval_count"`
	Written count  `json:"eval_count"`
	Error   string `json:"error"`
}

var ollamaStops = map[string]Stop{"stop": StopEnd, "length": StopLength}

type ollamaModel struct{ server Server }

// Ollama speaks the API of Ollama, on this machine when no address is given.
func Ollama(s Server) Model {
	return &ollamaModel{server: s.or("ollama", "http://127.0.0.1:11434", "OLLAMA_API_KEY")}
}

// Answer implements Model.
func (m *ollamaModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.ask(ctx, m, r, watch)
}

func (m *ollamaModel) address(Request) (string, http.Header) {
	h := http.Header{}
	if m.server.Key != "" {
		h.Set("Authorization", "Bearer "+m.server.Key)
	}
	return m.server.URL + "/api/chat", h
}

func (m *ollamaModel) request(r Request, ms []Message, n names) (any, error) {
	if r.Choice == MustCall {
		return nil, reeve.Errorf(reeve.Unsupported, "%s cannot be made to call a tool (tool_choice)", m.server.Name).
			Hintf("Let the model choose (auto), or ask a model of another provider.")
	}
	body := &ollamaRequest{Model: r.Model, Stream: true}
	if r.Effort != "" {
		body.Think = true
		if strings.HasPrefix(r.Model, "gpt-oss") {
			body.Think = r.Effort // the one family that knows degrees
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
	if r.Choice != NoCall { // there is no field for the choice: tools that must not be called are not offered
		for _, t := range r.Tools {
			s, err := rooted(t)
			if err != nil {
				return nil, err
			}
			tool := ollamaTool{Type: "function"}
			tool.Function.Name, tool.Function.Description, tool.Function.Parameters = n.theirs(t.Name), t.Description, s
			body.Tools = append(body.Tools, tool)
		}
	}
	for _, msg := range ms {
		body.Messages = append(body.Messages, m.messages(msg, n)...)
	}
	return body, nil
}

func (m *ollamaModel) refuses(p Part) error {
	if kind := mediaKind(p); p.URL == "" && (kind == imageMedia || kind == textMedia) {
		return nil
	}
	return unsendable(m.server.Name, p, "images and text, as bytes")
}

// messages gives results, each a message of its own, and then what the side said.
func (m *ollamaModel) messages(msg Message, n names) []ollamaMessage {
	var out []ollamaMessage
	said := ollamaMessage{Role: string(msg.Role)}
	var words, thoughts []string // joined at the end: there may be very many
	for _, p := range msg.Parts {
		switch p.Type {
		case Text:
			words = append(words, p.Text)
		case Reasoning:
			thoughts = append(thoughts, p.Text)
		case ToolCall:
			c := ollamaCall{ID: p.ID}
			c.Function.Name, c.Function.Arguments = n.theirs(p.Name), object(p.Args)
			said.Calls = append(said.Calls, c)
		case Result:
			out = append(out, ollamaMessage{Role: "tool", Content: resultText(p), ToolName: n.theirs(p.Name),
				CallID: p.ID})
		case Media:
			if mediaKind(p) == imageMedia {
				said.Images = append(said.Images, p.Data)
			} else {
				words = append(words, quoted(p))
			}
		}
	}
	said.Content, said.Thinking = strings.Join(words, "\n\n"), strings.Join(thoughts, "")
	if said.Content != "" || len(said.Images) > 0 || len(said.Calls) > 0 {
		out = append(out, said)
	}
	return out
}

// listen turns the lines of a stream into an answer.
func (m *ollamaModel) listen(ctx context.Context, res *http.Response, d *draft) (Answer, error) {
	if res.StatusCode != http.StatusOK {
		body := wholeBody(res)
		var c ollamaChunk
		if json.Unmarshal(body, &c) != nil || c.Error == "" {
			c.Error = string(body)
		}
		return Answer{}, m.server.refused(res.StatusCode, res.Header, "", c.Error)
	}
	calls := 0
	for line, err := range d.lines(ctx, res.Body) {
		if err != nil {
			return Answer{}, err
		}
		var c ollamaChunk
		if err := json.Unmarshal(line, &c); err != nil {
			return Answer{}, m.server.nonsense("%v", err)
		}
		if c.Error != "" { // in mid-stream there is no status: the model's process failed
			return Answer{}, m.server.refused(http.StatusInternalServerError, nil, "", c.Error)
		}
		if d.answer.ID == "" {
			d.answer.ID = c.Created // answers have no id; when they began tells them apart
		}
		if c.Model != "" {
			d.answer.Model = c.Model
		}
		if c.Message.Thinking != "" {
			d.keep(d.think("", c.Message.Thinking), "thinking")
		}
		if c.Message.Content != "" {
			d.say("", c.Message.Content)
		}
		for _, call := range c.Message.Calls {
			d.call(fmt.Sprint(calls), call.ID, call.Function.Name, piece(call.Function.Arguments))
			calls++
		}
		if c.Done {
			d.answer.Usage = Usage{Input: int64(c.Read), Output: int64(c.Written)}
			return d.finish(known(ollamaStops, c.Reason))
		}
	}
	return Answer{}, m.server.cut(ctx)
}
