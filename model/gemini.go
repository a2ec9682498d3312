package model

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"
)

type geminiRequest struct {
	System   *geminiContent   `json:"systemInstruction,omitempty"`
	Contents []*geminiContent `json:"contents"`
	Tools    []geminiTools    `json:"tools,omitempty"`
	Choice   *geminiChoice    `json:"toolConfig,omitempty"`
	Config   *geminiConfig    `json:"generationConfig,omitempty"`
}

type geminiContent struct {
	Role  string        `json:"role,omitempty"`
	Parts []*geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      piece           `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`
	Inline    *geminiInline   `json:"inlineData,omitempty"`
	File      *geminiFile     `json:"fileData,omitempty"`
	Call      *geminiCall     `json:"functionCall,omitempty"`
	Response  *geminiResponse `json:"functionResponse,omitempty"`
}

type geminiInline struct {
	MediaType string `json:"mimeType"`
	Data      []byte `json:"data"`
}

type geminiFile struct {
	MediaType string `json:"mimeType,omitempty"`
	URI       string `json:"fileUri"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type geminiTools struct {
	Functions []geminiFunction `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  schema `json:"parameters,omitempty"`
}

type geminiChoice struct {
	Calling struct {
		Mode    string   `json:"mode"`
		Allowed []string `json:"allowedFunctionNames,omitempty"`
	} `json:"functionCallingConfig"`
}

type geminiConfig struct {
	MaxTokens   int             `json:"maxOutputTokens,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	TopP        *float64        `json:"topP,omitempty"`
	StopAt      []string        `json:"stopSequences,omitempty"`
	Thinking    *geminiThinking `json:"thinkingConfig,omitempty"`
	MediaType   string          `json:"responseMimeType,omitempty"`
	Schema      any             `json:"responseJsonSchema,omitempty"`
}

type geminiThinking struct {
	Thoughts bool   `json:"includeThoughts"`
	Level    string `json:"thinkingLevel,omitempty"`
	Budget   int    `json:"thinkingBudget,omitempty"`
}

// geminiKept is what a part's Raw holds: what Gemini wants to see again.
type geminiKept struct {
	ID        string `json:"id,omitempty"`
	Signature string `json:"thoughtSignature,omitempty"`
}

// geminiUnsigned goes where a signature must be and there is none, because another provider's model made the call.
const geminiUnsigned = "skip_thought_signature_validator"

// geminiThought is how many tokens models before Gemini 3 may think, by effort.
var geminiThought = map[string]int{"low": 1024, "medium": 8192, "high": 24576}

type geminiModel struct{ server Server }

// Gemini speaks the Gemini API.
func Gemini(s Server) Model {
	return &geminiModel{server: s.or("gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY")}
}

// Answer implements Model.
func (m *geminiModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.ask(ctx, m, r, watch)
}

func (m *geminiModel) address(r Request) (string, http.Header) {
	return m.server.URL + "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(r.Model, "models/")) +
			":streamGenerateContent?alt=sse",
		http.Header{"X-Goog-Api-Key": {m.server.Key}}
}

func (m *geminiModel) request(r Request, ms []Message, n names) (any, error) {
	body := &geminiRequest{}
	if r.System != "" {
		body.System = &geminiContent{Parts: []*geminiPart{{Text: piece(r.System)}}}
	}
	var functions []geminiFunction
	for _, t := range r.Tools {
		s, err := geminiSchema(t)
		if err != nil {
			return nil, err
		}
		functions = append(functions, geminiFunction{Name: n.theirs(t.Name), Description: t.Description, Parameters: s})
	}
	if len(functions) > 0 {
		body.Tools = []geminiTools{{Functions: functions}}
		if mode := map[Choice]string{MustCall: "ANY", NoCall: "NONE"}[r.Choice]; mode != "" {
			body.Choice = &geminiChoice{}
			body.Choice.Calling.Mode = mode
			if r.Choice == MustCall && r.ChoiceTool != "" {
				body.Choice.Calling.Allowed = []string{n.theirs(r.ChoiceTool)}
			}
		}
	}
	third := strings.Contains(r.Model, "gemini-3")
	config := geminiConfig{MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP, StopAt: r.StopAt}
	switch {
	case r.Effort == "":
	case strings.Contains(r.Model, "gemini-2") || strings.Contains(r.Model, "gemini-1"):
		config.Thinking = &geminiThinking{Thoughts: true, Budget: geminiThought[r.Effort]}
	default:
		config.Thinking = &geminiThinking{Thoughts: true, Level: r.Effort}
	}
	if f := r.Format; f != nil {
		config.MediaType = "application/json"
		if len(f.Schema) > 0 {
			config.Schema = &f.Schema
		}
	}
	if !reflect.ValueOf(config).IsZero() {
		body.Config = &config
	}
	ids := map[string]string{} // the ids that Gemini itself gave, by ours
	for _, msg := range ms {
		c := m.content(msg, n, ids)
		if third {
			signed(c)
		}
		body.Contents = append(body.Contents, c)
	}
	return body, nil
}

// signed makes sure that the first call of a message has a signature: Gemini 3 refuses it otherwise.
func signed(c *geminiContent) {
	for _, p := range c.Parts {
		if p.Call != nil {
			if p.Signature == "" {
				p.Signature = geminiUnsigned
			}
			return
		}
	}
}

func (m *geminiModel) refuses(p Part) error {
	if mediaKind(p) == otherMedia {
		return unsendable(m.server.Name, p, "images, audio, video, PDF files and text")
	}
	return nil
}

func (m *geminiModel) content(msg Message, n names, ids map[string]string) *geminiContent {
	c := &geminiContent{Role: "user"}
	if msg.Role == Assistant {
		c.Role = "model"
	}
	for _, p := range msg.Parts {
		var kept geminiKept
		if raw, ok := unseal(m.server.Name, p.Raw); ok {
			_ = json.Unmarshal(raw, &kept) // what is not as we wrote it holds nothing
		}
		part := &geminiPart{Signature: kept.Signature}
		switch p.Type {
		case Text:
			part.Text = piece(p.Text)
		case Reasoning:
			continue // thoughts are summaries for people; the signatures carry them
		case ToolCall:
			ids[p.ID] = kept.ID
			part.Call = &geminiCall{ID: kept.ID, Name: n.theirs(p.Name), Args: object(p.Args)}
		case Result:
			key := "output"
			if p.IsError {
				key = "error"
			}
			part.Response = &geminiResponse{ID: ids[p.ID], Name: n.theirs(p.Name),
				Response: map[string]string{key: p.Text}}
		case Media:
			switch {
			case p.URL != "":
				part.File = &geminiFile{MediaType: p.MediaType, URI: p.URL}
			case mediaKind(p) == textMedia:
				part.Text = piece(quoted(p))
			default:
				part.Inline = &geminiInline{MediaType: p.MediaType, Data: p.Data}
			}
		}
		c.Parts = append(c.Parts, part)
	}
	return c
}
