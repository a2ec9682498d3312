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
	Text      fragment        `json:"text,omitempty"`
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

// geminiRaw is the Raw of a part: values that Gemini expects back.
type geminiRaw struct {
	ID        string `json:"id,omitempty"`
	Signature string `json:"thoughtSignature,omitempty"`
}

// geminiSkipSignature replaces the signature that Gemini requires on a call that another provider's model made.
const geminiSkipSignature = "skip_thought_signature_validator"

// geminiThinkingBudgets are the thinking tokens of models before Gemini 3 by effort.
var geminiThinkingBudgets = map[string]int{"low": 1024, "medium": 8192, "high": 24576}

type geminiModel struct{ server Server }

// Gemini returns a Model that uses the Gemini API.
func Gemini(s Server) Model {
	return &geminiModel{server: s.withDefaults("gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY")}
}

// Answer implements Model.
func (m *geminiModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	return m.server.roundTrip(ctx, m, r, watch)
}

func (m *geminiModel) endpoint(r Request) (string, http.Header) {
	return m.server.URL + "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(r.Model, "models/")) +
			":streamGenerateContent?alt=sse",
		http.Header{"X-Goog-Api-Key": {m.server.Key}}
}

func (m *geminiModel) buildRequest(r Request, ms []Message, n toolNames) (any, error) {
	body := &geminiRequest{}
	if r.System != "" {
		body.System = &geminiContent{Parts: []*geminiPart{{Text: fragment(r.System)}}}
	}
	var functions []geminiFunction
	for _, t := range r.Tools {
		s, err := geminiSchema(t)
		if err != nil {
			return nil, err
		}
		functions = append(functions, geminiFunction{Name: n.toProvider(t.Name), Description: t.Description,
			Parameters: s})
	}
	if len(functions) > 0 {
		body.Tools = []geminiTools{{Functions: functions}}
		if mode := map[Choice]string{MustCall: "ANY", NoCall: "NONE"}[r.Choice]; mode != "" {
			body.Choice = &geminiChoice{}
			body.Choice.Calling.Mode = mode
			if r.Choice == MustCall && r.ChoiceTool != "" {
				body.Choice.Calling.Allowed = []string{n.toProvider(r.ChoiceTool)}
			}
		}
	}
	isGemini3 := strings.Contains(r.Model, "gemini-3")
	config := geminiConfig{MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP, StopAt: r.StopAt}
	switch {
	case r.Effort == "":
	case strings.Contains(r.Model, "gemini-2") || strings.Contains(r.Model, "gemini-1"):
		config.Thinking = &geminiThinking{Thoughts: true, Budget: geminiThinkingBudgets[r.Effort]}
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
	ids := map[string]string{} // Gemini's own call ids by ours
	for _, msg := range ms {
		c := m.buildContent(msg, n, ids)
		if isGemini3 {
			addMissingSignature(c)
		}
		body.Contents = append(body.Contents, c)
	}
	return body, nil
}

// addMissingSignature adds a signature to the first call of a message if it has none. Gemini 3 requires one.
func addMissingSignature(c *geminiContent) {
	for _, p := range c.Parts {
		if p.Call != nil {
			if p.Signature == "" {
				p.Signature = geminiSkipSignature
			}
			return
		}
	}
}

func (m *geminiModel) checkMedia(p Part) error {
	if mediaKind(p) == otherMedia {
		return unsupportedMedia(m.server.Name, p, "images, audio, video, PDF files and text")
	}
	return nil
}

func (m *geminiModel) buildContent(msg Message, n toolNames, ids map[string]string) *geminiContent {
	c := &geminiContent{Role: "user"}
	if msg.Role == Assistant {
		c.Role = "model"
	}
	for _, p := range msg.Parts {
		var kept geminiRaw
		if raw, ok := decodeRaw(m.server.Name, p.Raw); ok {
			_ = json.Unmarshal(raw, &kept) // ignore a Raw of another shape
		}
		part := &geminiPart{Signature: kept.Signature}
		switch p.Type {
		case Text:
			part.Text = fragment(p.Text)
		case Reasoning:
			continue // the text is a summary for people; the signatures carry the reasoning
		case ToolCall:
			ids[p.ID] = kept.ID
			part.Call = &geminiCall{ID: kept.ID, Name: n.toProvider(p.Name), Args: argumentsObject(p.Args)}
		case Result:
			key := "output"
			if p.IsError {
				key = "error"
			}
			part.Response = &geminiResponse{ID: ids[p.ID], Name: n.toProvider(p.Name),
				Response: map[string]string{key: p.Text}}
		case Media:
			switch {
			case p.URL != "":
				part.File = &geminiFile{MediaType: p.MediaType, URI: p.URL}
			case mediaKind(p) == textMedia:
				part.Text = fragment(inlineText(p))
			default:
				part.Inline = &geminiInline{MediaType: p.MediaType, Data: p.Data}
			}
		}
		c.Parts = append(c.Parts, part)
	}
	return c
}
