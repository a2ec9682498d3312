package model

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"reeve"
)

type responsesRequest struct {
	Instructions string              `json:"instructions,omitempty"`
	MaxTokens    int                 `json:"max_output_tokens,omitempty"`
	Store        bool                `json:"store"`
	Temperature  *float64            `json:"temperature,omitempty"`
	Include      []string            `json:"include,omitempty"`
	Input        []any               `json:"input"` // items, or what came as one
	Model        string              `json:"model"`
	Reasoning    *responsesReasoning `json:"reasoning,omitempty"`
	Choice       any                 `json:"tool_choice,omitempty"` // a Choice, or a tool
	Parallel     *bool               `json:"parallel_tool_calls,omitempty"`
	TopP         *float64            `json:"top_p,omitempty"`
	Text         *responsesText      `json:"text,omitempty"`
	Tools        []responsesTool     `json:"tools,omitempty"`
	Stream       bool                `json:"stream"`
}

// responsesChoice is the one tool that must be called.
type responsesChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type responsesText struct {
	Format openaiFormat `json:"format"`
}

type responsesReasoning struct {
	Effort string `json:"effort"`
}

type responsesTool struct {
	Strict      bool   `json:"strict"`
	Parameters  schema `json:"parameters"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type"`
}

type responsesMessage struct {
	Content any    `json:"content"` // a text of the assistant's, or parts of the user's
	Role    string `json:"role"`
	Phase   string `json:"phase,omitempty"`
}

type responsesCall struct {
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Type      string `json:"type"`
}

type responsesOutput struct {
	Output string `json:"output"`
	CallID string `json:"call_id"`
	Type   string `json:"type"`
}

type responsesPart struct {
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileData string `json:"file_data,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	Type     string `json:"type"`
}

// responsesKept is what the Raw of a text holds.
type responsesKept struct {
	Phase string `json:"phase"`
}

type responsesModel struct{ server Server }

// thoughtless are models that do not think, and that are refused when they are asked for their thoughts.
var thoughtless = []string{"gpt-4", "gpt-3", "chatgpt-"}

// OpenAIResponses speaks the Responses API. Nothing is kept at OpenAI: the thoughts of a model come encrypted and go
// back with the next request.
func OpenAIResponses(s Server) Model {
	return &responsesModel{server: s.or("openai", openaiURL, "OPENAI_API_KEY")}
}

// Answer implements Model.
func (m *responsesModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.ask(ctx, m, r, watch)
}

func (m *responsesModel) address(Request) (string, http.Header) {
	return m.server.URL + "/responses", openaiHeader(m.server)
}

func (m *responsesModel) request(r Request, ms []Message, n names) (any, error) {
	if len(r.StopAt) > 0 {
		return nil, reeve.Errorf(reeve.Unsupported, "%s cannot be told texts to stop at (stop) by its Responses API",
			m.server.Name).
			Hintf("Leave stop out, or set the provider's api to chat in reeve.yaml.")
	}
	p := &responsesRequest{Model: r.Model, Instructions: r.System, MaxTokens: r.MaxTokens, Temperature: r.Temperature,
		TopP: r.TopP, Stream: true}
	if !slices.ContainsFunc(thoughtless, func(begins string) bool { return strings.HasPrefix(r.Model, begins) }) {
		p.Include = []string{"reasoning.encrypted_content"}
	}
	if r.Effort != "" {
		// no summary: organizations that are not verified are refused when they ask for one
		p.Reasoning = &responsesReasoning{Effort: r.Effort}
	}
	if r.Format != nil {
		kind, shape := r.Format.openai()
		p.Text = &responsesText{openaiFormat{Type: kind, openaiShape: shape}}
	}
	for _, t := range r.Tools {
		s, err := rooted(t)
		if err != nil {
			return nil, err
		}
		// Strict is what the API assumes when it is not told.
		p.Tools = append(p.Tools, responsesTool{Type: "function", Name: n.theirs(t.Name), Description: t.Description,
			Parameters: s, Strict: strict(s)})
	}
	if len(r.Tools) > 0 {
		p.Parallel = r.parallel()
		switch {
		case r.Choice == MustCall && r.ChoiceTool != "":
			p.Choice = responsesChoice{Type: "function", Name: n.theirs(r.ChoiceTool)}
		case r.Choice != MayCall:
			p.Choice = r.Choice
		}
	}
	for _, msg := range ms {
		p.Input = append(p.Input, m.items(msg, n)...)
	}
	return p, nil
}

// items gives a message's parts, each an item of its own, except that what a person says at once is one.
func (m *responsesModel) items(msg Message, n names) []any {
	var out []any
	var said []responsesPart
	for _, p := range msg.Parts {
		raw, own := unseal(m.server.Name, p.Raw)
		switch p.Type {
		case Text:
			if msg.Role == User {
				said = append(said, responsesPart{Type: "input_text", Text: p.Text})
				continue
			}
			item, kept := responsesMessage{Role: "assistant", Content: p.Text}, responsesKept{}
			if own && json.Unmarshal(raw, &kept) == nil {
				item.Phase = kept.Phase
			}
			out = append(out, item)
		case Media:
			said = append(said, m.media(p))
		case Reasoning:
			var item struct{ Type string }
			// what the chat API kept is of no use here
			if json.Unmarshal(raw, &item) == nil && item.Type == "reasoning" {
				out = append(out, raw)
			}
		case ToolCall:
			out = append(out, responsesCall{Type: "function_call", CallID: p.ID, Name: n.theirs(p.Name),
				Arguments: written(p.Args)})
		case Result:
			out = append(out, responsesOutput{Type: "function_call_output", CallID: p.ID, Output: resultText(p)})
		}
	}
	if len(said) > 0 {
		out = append(out, responsesMessage{Role: "user", Content: said})
	}
	return out
}

func (m *responsesModel) refuses(p Part) error {
	switch kind := mediaKind(p); {
	case kind == imageMedia || kind == pdfMedia || kind == textMedia && p.URL == "":
		return nil
	default:
		return unsendable(m.server.Name, p, "images, PDF files, and text as bytes")
	}
}

func (m *responsesModel) media(p Part) responsesPart {
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		return responsesPart{Type: "input_image", Detail: "auto", ImageURL: p.URL}
	case kind == imageMedia:
		return responsesPart{Type: "input_image", Detail: "auto", ImageURL: dataURL(p)}
	case kind == pdfMedia && p.URL != "":
		return responsesPart{Type: "input_file", FileURL: p.URL}
	case kind == pdfMedia:
		return responsesPart{Type: "input_file", FileData: dataURL(p), FileName: named(p)}
	default:
		return responsesPart{Type: "input_text", Text: quoted(p)}
	}
}
