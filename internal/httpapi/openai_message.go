package httpapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/model"
)

// v1Message is a message of the Chat API.
type v1Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Refusal    string          `json:"refusal"`
	ToolCalls  []v1ToolCall    `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`

	FunctionCall json.RawMessage `json:"function_call"` // the deprecated form of tool calls
}

// v1ToolCall is a tool call of the Chat API.
type v1ToolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// v1Part is a content part of either API.
type v1Part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"`
	File     *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// v1Tool is a tool that a client offers. The Chat API has its fields in function.
type v1Tool struct {
	Type     string `json:"type"`
	Function *struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// newV1Unsupported returns the error for a parameter or a value that would change the answer and is not supported.
func newV1Unsupported(path, format string, args ...any) error {
	e := reeve.AsError(newV1Invalid(path, format, args...))
	return &v1CodedError{code: "unsupported_parameter",
		err: e.Hintf("omit it; docs/conversations.md lists the supported parameters")}
}

// newV1Invalid returns a validation error for a parameter.
func newV1Invalid(path, format string, args ...any) error {
	e := reeve.Errorf(reeve.Validation, format, args...)
	e.Fields = []reeve.Field{{Path: path, Message: e.Message}}
	return e
}

// parseV1Tools converts the tools that a client offers.
func parseV1Tools(list []v1Tool) ([]model.Tool, error) {
	var out []model.Tool
	seen := map[string]bool{}
	for i, t := range list {
		path := fmt.Sprintf("tools[%d]", i)
		v := model.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
		if t.Function != nil {
			v = model.Tool{Name: t.Function.Name, Description: t.Function.Description,
				Parameters: t.Function.Parameters}
		}
		switch {
		case t.Type != "function":
			return nil, newV1Invalid(path+".type", "type must be function, not %q", t.Type)
		case v.Name == "":
			return nil, newV1Invalid(path, "the tool has no name")
		case seen[v.Name]:
			return nil, newV1Invalid(path, "two tools have the name %q", v.Name)
		}
		if len(v.Parameters) > 0 && string(v.Parameters) != "null" {
			if err := gate.CheckParameters(v.Parameters); err != nil {
				return nil, newV1Invalid(path, "the parameters of tool %q are not valid: %s", v.Name,
					reeve.AsError(err).Message)
			}
		}
		seen[v.Name] = true
		if len(v.Parameters) == 0 || string(v.Parameters) == "null" {
			v.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out = append(out, v)
	}
	return out, nil
}

// parseV1ToolChoice parses tool_choice. It fails if tool_choice names a tool that is not in offers.
func parseV1ToolChoice(raw json.RawMessage, offers []model.Tool) (choice model.Choice, tool string, err error) {
	const at = "tool_choice"
	if len(raw) == 0 || string(raw) == "null" {
		return model.MayCall, "", nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		switch word {
		case "auto":
			return model.MayCall, "", nil
		case "none", "required":
			return model.Choice(word), "", nil
		}
		return "", "", newV1Invalid(at, "tool_choice must be auto, none, required or a function, not %q", word)
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return "", "", newV1Invalid(at, "tool_choice must be auto, none, required or a function")
	}
	tool = cmp.Or(named.Function.Name, named.Name)
	switch {
	case named.Type != "function":
		return "", "", newV1Unsupported(at,
			"tool_choice of type %q is not supported; use auto, none, required or a function", named.Type)
	case !slices.ContainsFunc(offers, func(t model.Tool) bool { return t.Name == tool }):
		return "", "", newV1Invalid(at, "tool_choice names the function %q, which is not in tools", tool)
	}
	return model.MustCall, tool, nil
}

// v1Transcript is the conversation that a client sends.
type v1Transcript struct {
	system    []string
	messages  []model.Message
	toolNames map[string]string // by call id
}

// add appends parts. Consecutive parts of the same role form one message.
func (t *v1Transcript) add(role model.Role, parts ...model.Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(t.messages); n > 0 && t.messages[n-1].Role == role {
		t.messages[n-1].Parts = append(t.messages[n-1].Parts, parts...)
		return
	}
	t.messages = append(t.messages, model.Message{Role: role, Parts: parts})
}

func (t *v1Transcript) addCall(id, name, args string) {
	if t.toolNames == nil {
		t.toolNames = map[string]string{}
	}
	t.toolNames[id] = name
	if args == "" {
		args = "{}"
	}
	if !json.Valid([]byte(args)) { // as a JSON string, so that the model sees the invalid arguments
		text, _ := json.Marshal(args) // a string always marshals
		args = string(text)
	}
	t.add(model.Assistant, model.Part{Type: model.ToolCall, ID: id, Name: name, Args: json.RawMessage(args)})
}

func (t *v1Transcript) addResult(id, text, path string) error {
	name, ok := t.toolNames[id]
	if !ok {
		return newV1Invalid(path, "no earlier message has the call %q of this result", id)
	}
	t.add(model.User, model.Part{Type: model.Result, ID: id, Name: name, Text: text})
	return nil
}

// loadMedia checks the attachments of a transcript, and fetches images that are given by URL. The limit of attachments
// applies to each message, because clients send the whole history with every request.
func (h *openaiHandlers) loadMedia(ctx context.Context, t *v1Transcript) error {
	for _, m := range t.messages {
		var attachments []reeve.Attachment
		for _, p := range m.Parts {
			if p.Type == model.Media && p.URL == "" {
				attachments = append(attachments, reeve.Attachment{Name: p.Name, MediaType: p.MediaType, Data: p.Data})
			}
		}
		if len(attachments) > chat.MaxAttachments {
			return newV1Invalid("messages", "a message has %d attachments; the limit is %d", len(attachments),
				chat.MaxAttachments)
		}
		if err := chat.CheckAttachments(attachments,
			func(i int) string { return fmt.Sprintf("attachment %d", i+1) }); err != nil {
			return err
		}
	}
	var list []reeve.Attachment
	var parts []*model.Part
	for i := range t.messages {
		for j := range t.messages[i].Parts {
			if p := &t.messages[i].Parts[j]; p.Type == model.Media && p.URL != "" {
				list, parts = append(list, reeve.Attachment{Name: p.Name, MediaType: p.MediaType, URL: p.URL}),
					append(parts, p)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	if len(list) > chat.MaxAttachments {
		return newV1Invalid("messages", "the request has %d images by URL; the limit is %d", len(list),
			chat.MaxAttachments)
	}
	if err := h.chat.FetchAttachments(ctx, list,
		func(i int) string { return fmt.Sprintf("image %d", i+1) }); err != nil {
		return err
	}
	for i, p := range parts {
		p.MediaType, p.Data, p.URL = list[i].MediaType, list[i].Data, ""
	}
	return nil
}

// splitLast splits the transcript into the last user message, as the request of a turn, and the history before it. If
// the transcript ends with tool results, the request is empty and the history is the whole transcript.
func (t *v1Transcript) splitLast() (request reeve.TurnRequest, history []model.Message) {
	n := len(t.messages)
	if n == 0 || t.messages[n-1].Role != model.User {
		return request, t.messages
	}
	last := t.messages[n-1]
	isRequest := true  // text and media only
	var texts []string // joined once, since there may be very many
	for _, p := range last.Parts {
		switch {
		case p.Type == model.Text:
			texts = append(texts, p.Text)
		case p.Type == model.Media:
			request.Attachments = append(request.Attachments, reeve.Attachment{Name: p.Name, MediaType: p.MediaType,
				Data: p.Data, URL: p.URL})
		default:
			isRequest = false
		}
	}
	if !isRequest {
		return reeve.TurnRequest{}, t.messages
	}
	request.Content = strings.Join(texts, "\n")
	return request, t.messages[:n-1]
}

// historyInput returns the system prompt and the history for the turn.
func (t *v1Transcript) historyInput(history []model.Message) (b chat.HistoryInput, err error) {
	b.System = strings.Join(t.system, "\n\n")
	if history == nil {
		history = []model.Message{}
	}
	b.Messages, err = json.Marshal(history)
	return b, err
}

// parseV1Content parses the content of a message, which is a text or a list of parts.
func parseV1Content(raw json.RawMessage, path string) ([]model.Part, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []model.Part{{Type: model.Text, Text: text}}, nil
	}
	var parts []v1Part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, newV1Invalid(path, "content must be a text or a list of parts")
	}
	var out []model.Part
	for i, p := range parts {
		v, err := p.parse(fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (p v1Part) parse(path string) (model.Part, error) {
	switch p.Type {
	case "text", "input_text", "output_text":
		return model.Part{Type: model.Text, Text: p.Text}, nil
	case "refusal":
		return model.Part{Type: model.Text, Text: p.Refusal}, nil
	case "image_url", "input_image":
		var u string
		if json.Unmarshal(p.ImageURL, &u) != nil {
			var v struct {
				URL string `json:"url"`
			}
			if err := json.Unmarshal(p.ImageURL, &v); err != nil {
				return model.Part{}, newV1Invalid(path, "the image has no url")
			}
			u = v.URL
		}
		return parseV1Media(u, "", path)
	case "file", "input_file":
		name, data := p.Name, p.Data
		if p.File != nil {
			name, data = p.File.Name, p.File.Data
		}
		return parseV1Media(data, name, path)
	}
	return model.Part{}, newV1Invalid(path+".type", "content parts of type %q are not supported", p.Type)
}

// parseV1Media decodes a data: URL. For an http or https URL it returns a part that loadMedia fetches.
func parseV1Media(u, name, path string) (model.Part, error) {
	if rest, ok := strings.CutPrefix(u, "data:"); ok {
		kind, data, found := strings.Cut(rest, ";base64,")
		b, err := base64.StdEncoding.DecodeString(data)
		if !found || err != nil {
			return model.Part{}, newV1Invalid(path, "the data: URL is not valid base64")
		}
		return model.Part{Type: model.Media, MediaType: kind, Name: name, Data: b}, nil
	}
	if !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") {
		return model.Part{}, newV1Invalid(path, "an image or file must be a data: URL or an https: URL")
	}
	return model.Part{Type: model.Media, MediaType: "image/*", Name: name, URL: u}, nil
}
