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
	Input        []any               `json:"input"` // items, or raw JSON of an item
	Model        string              `json:"model"`
	Reasoning    *responsesReasoning `json:"reasoning,omitempty"`
	Choice       any                 `json:"tool_choice,omitempty"` // a Choice or a responsesChoice
	Parallel     *bool               `json:"parallel_tool_calls,omitempty"`
	TopP         *float64            `json:"top_p,omitempty"`
	Text         *responsesText      `json:"text,omitempty"`
	Tools        []responsesTool     `json:"tools,omitempty"`
	Stream       bool                `json:"stream"`
}

// responsesChoice selects the tool that must be called.
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
	Content any    `json:"content"` // a string of the assistant or []responsesPart of the user
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

// responsesRaw is the Raw of a text part.
type responsesRaw struct {
	Phase string `json:"phase"`
}

type responsesModel struct{ server Server }

// nonReasoningModels are prefixes of models that reject a request for reasoning.
var nonReasoningModels = []string{"gpt-4", "gpt-3", "chatgpt-"}

// OpenAIResponses returns a Model that uses OpenAI's Responses API. OpenAI stores nothing: encrypted reasoning comes
// with the answer and goes back with the next request.
func OpenAIResponses(s Server) Model {
	return &responsesModel{server: s.withDefaults("openai", openaiURL, "OPENAI_API_KEY")}
}

// Answer implements Model.
func (m *responsesModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.roundTrip(ctx, m, r, watch)
}

func (m *responsesModel) endpoint(Request) (string, http.Header) {
	return m.server.URL + "/responses", openaiHeader(m.server)
}

func (m *responsesModel) buildRequest(r Request, ms []Message, n toolNames) (any, error) {
	if len(r.StopAt) > 0 {
		return nil, reeve.Errorf(reeve.Unsupported, "the Responses API of %s has no stop sequences (stop)",
			m.server.Name).
			Hintf("omit stop, or set the provider's api to chat in reeve.yaml")
	}
	p := &responsesRequest{Model: r.Model, Instructions: r.System, MaxTokens: r.MaxTokens, Temperature: r.Temperature,
		TopP: r.TopP, Stream: true}
	if !slices.ContainsFunc(nonReasoningModels,
		func(begins string) bool { return strings.HasPrefix(r.Model, begins) }) {
		p.Include = []string{"reasoning.encrypted_content"}
	}
	if r.Effort != "" {
		// Request no summary: OpenAI rejects that from organizations that are not verified.
		p.Reasoning = &responsesReasoning{Effort: r.Effort}
	}
	if r.Format != nil {
		kind, shape := r.Format.openaiFormat()
		p.Text = &responsesText{openaiFormat{Type: kind, openaiJSONSchema: shape}}
	}
	for _, t := range r.Tools {
		s, err := objectSchema(t)
		if err != nil {
			return nil, err
		}
		// Always set Strict, because the API's default is true.
		p.Tools = append(p.Tools, responsesTool{Type: "function", Name: n.toProvider(t.Name),
			Description: t.Description,
			Parameters:  s, Strict: isStrict(s)})
	}
	if len(r.Tools) > 0 {
		p.Parallel = r.parallelToolCalls()
		switch {
		case r.Choice == MustCall && r.ChoiceTool != "":
			p.Choice = responsesChoice{Type: "function", Name: n.toProvider(r.ChoiceTool)}
		case r.Choice != MayCall:
			p.Choice = r.Choice
		}
	}
	for _, msg := range ms {
		p.Input = append(p.Input, m.inputItems(msg, n)...)
	}
	return p, nil
}

// inputItems converts a message: one item per part, except that all user texts and media are one item.
func (m *responsesModel) inputItems(msg Message, n toolNames) []any {
	var out []any
	var userParts []responsesPart
	for _, p := range msg.Parts {
		raw, own := decodeRaw(m.server.Name, p.Raw)
		switch p.Type {
		case Text:
			if msg.Role == User {
				userParts = append(userParts, responsesPart{Type: "input_text", Text: p.Text})
				continue
			}
			item, kept := responsesMessage{Role: "assistant", Content: p.Text}, responsesRaw{}
			if own && json.Unmarshal(raw, &kept) == nil {
				item.Phase = kept.Phase
			}
			out = append(out, item)
		case Media:
			userParts = append(userParts, m.mediaPart(p))
		case Reasoning:
			var item struct{ Type string }
			// Raw of the Chat API is no reasoning item.
			if json.Unmarshal(raw, &item) == nil && item.Type == "reasoning" {
				out = append(out, raw)
			}
		case ToolCall:
			out = append(out, responsesCall{Type: "function_call", CallID: p.ID, Name: n.toProvider(p.Name),
				Arguments: argumentsText(p.Args)})
		case Result:
			out = append(out, responsesOutput{Type: "function_call_output", CallID: p.ID, Output: resultText(p)})
		}
	}
	if len(userParts) > 0 {
		out = append(out, responsesMessage{Role: "user", Content: userParts})
	}
	return out
}

func (m *responsesModel) checkMedia(p Part) error {
	switch kind := mediaKind(p); {
	case kind == imageMedia || kind == pdfMedia || kind == textMedia && p.URL == "":
		return nil
	default:
		return unsupportedMedia(m.server.Name, p, "images, PDF files, and text as bytes")
	}
}

func (m *responsesModel) mediaPart(p Part) responsesPart {
	switch kind := mediaKind(p); {
	case kind == imageMedia && p.URL != "":
		return responsesPart{Type: "input_image", Detail: "auto", ImageURL: p.URL}
	case kind == imageMedia:
		return responsesPart{Type: "input_image", Detail: "auto", ImageURL: dataURL(p)}
	case kind == pdfMedia && p.URL != "":
		return responsesPart{Type: "input_file", FileURL: p.URL}
	case kind == pdfMedia:
		return responsesPart{Type: "input_file", FileData: dataURL(p), FileName: fileName(p)}
	default:
		return responsesPart{Type: "input_text", Text: inlineText(p)}
	}
}
