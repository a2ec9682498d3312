package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/chat"
)

// playground sends a message in a session that the caller names, and streams the turn. The first message creates the
// session's conversation. The turn is cancelled if the client disconnects.
func (h *turnHandlers) playground(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Session string `path:"sessionId" minLength:"1" maxLength:"128" doc:"Any name; the same name continues the session"`
	Key     string `header:"Idempotency-Key" maxLength:"255" doc:"Sends the message once"`
	Body    api.PlaygroundRequest
}) (*huma.StreamResponse, error) {
	if strings.TrimSpace(in.Body.Message) == "" {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "the message is empty",
			Fields: []reeve.Field{{Path: "/message", Message: "is empty", Expected: "text"}}}
	}
	id := in.Session
	if !reeve.IsID(id) || !strings.HasPrefix(id, reeve.PrefixConversation+"_") {
		id = reeve.DeriveID(reeve.PrefixConversation, "playground", who.Workspace, who.User, in.Session)
	}
	c, err := h.chat.Open(ctx, who, id, "playground", reeve.ConversationRequest{Agent: in.Body.Agent})
	if err != nil {
		return nil, err
	}
	request := reeve.TurnRequest{Content: in.Body.Message, Variables: in.Body.Variables, Model: in.Body.Model}
	if in.Body.Detach {
		turn, _, err := h.chat.BeginTurn(ctx, who, c.ID, in.Key, request)
		if err != nil {
			return nil, err
		}
		info := api.PlaygroundInfo{SessionID: in.Session, ConversationID: c.ID, TurnID: turn.ID}
		return &huma.StreamResponse{Body: func(c huma.Context) { h.writeJSON(c, http.StatusOK, info) }}, nil
	}
	f, err := h.beginStreamed(ctx, who, c.ID, in.Key, request)
	if err != nil {
		return nil, err
	}
	p := playgroundTranslator{info: api.PlaygroundInfo{SessionID: in.Session, ConversationID: c.ID, TurnID: f.turn}}
	f.translate, f.onEnd = p.translate, p.sendEnd
	f.onError = func(ctx context.Context, e *eventWriter, err error) {
		h.canceler.abandon(ctx, who, f.turn, err)
		why := reeve.AsError(err)
		// fails only if the client has disconnected
		_ = e.send(errorEventType(why.Code), playgroundEvent{Type: errorEventType(why.Code), Code: why.Code,
			Message: why.Message,
			Hint:    why.Hint})
	}
	return &huma.StreamResponse{Body: func(c huma.Context) { h.streamer.send(c, http.StatusOK, f) }}, nil
}

// playgroundTranslator converts frames into events of the playground.
type playgroundTranslator struct {
	info api.PlaygroundInfo
	sent string // text of the current message that was sent
}

// playgroundEvent is an event of the playground. Its type determines which fields are set.
type playgroundEvent struct {
	Type        string             `json:"type"`
	MessageID   string             `json:"messageId,omitempty"`
	Text        string             `json:"text,omitempty"`
	ToolCallID  string             `json:"toolCallId,omitempty"`
	ToolName    string             `json:"toolName,omitempty"`
	Args        json.RawMessage    `json:"args,omitempty"`
	Result      *string            `json:"result,omitempty"`
	IsError     bool               `json:"isError,omitempty"`
	ApprovalID  string             `json:"approvalId,omitempty"`
	Preview     string             `json:"preview,omitempty"`
	Code        reeve.Code         `json:"code,omitempty"`
	Message     string             `json:"message,omitempty"`
	Hint        string             `json:"hint,omitempty"`
	State       reeve.RunState     `json:"state,omitempty"`
	Usage       *reeve.Amount      `json:"usage,omitempty"`
	Attachments []reeve.Attachment `json:"attachments,omitempty"`
	*api.PlaygroundInfo
	TraceID string `json:"traceId,omitempty"`
}

// translate writes the events for a frame.
func (p *playgroundTranslator) translate(e *eventWriter, l chat.EncodedFrame) error {
	var f reeve.Frame
	if err := json.Unmarshal(l.Data, &f); err != nil {
		return err
	}
	put := func(p playgroundEvent) { e.add(l.Seq, p.Type, p) }
	call := playgroundEvent{ToolCallID: f.ToolCallID, ToolName: f.Tool}
	as := func(kind string) playgroundEvent { e := call; e.Type = kind; return e }
	switch f.Type {
	case reeve.FrameStarted:
		put(playgroundEvent{Type: "message-start", MessageID: f.TurnID})
	case reeve.FrameToken:
		p.sendToken(f, put)
	case reeve.FrameMessage:
		p.sendRemainder(f, put)
	case reeve.FrameTool:
		put(as("tool-call"))
		args := as("tool-call-args")
		args.Args = f.Args
		put(args)
		put(as("tool-call-end"))
	case reeve.FrameResult:
		e := as("tool-result")
		e.Result, e.IsError, e.Code = &f.Content, f.IsError, f.Code
		put(e)
	case reeve.FrameApproval:
		e := as("approval-required")
		e.ApprovalID, e.Preview, e.Code, e.Message, e.Hint = f.ApprovalID, f.Preview, f.Code, f.Message, f.Hint
		put(e)
	case reeve.FrameError:
		put(playgroundEvent{Type: errorEventType(f.Code), Code: f.Code, Message: f.Message, Hint: f.Hint})
	case reeve.FrameComplete:
		if f.Code == reeve.StepLimit && f.State == reeve.RunCompleted { // the turn completed all the same
			put(playgroundEvent{Type: errorEventType(f.Code), Code: f.Code, Message: f.Message})
		}
		put(playgroundEvent{Type: "finish", State: f.State, Code: f.Code, Usage: f.Spent})
	case reeve.FrameMedia:
		e := as("media")
		e.Attachments, e.Message = f.Attachments, f.Text
		put(e)
	case reeve.FrameConnected, reeve.FramePong, reeve.FrameReport:
	}
	return nil
}

func (p *playgroundTranslator) sendToken(f reeve.Frame, put func(playgroundEvent)) {
	switch {
	case f.Discard:
		p.sent = ""
		put(playgroundEvent{Type: "discard"})
	case f.Reasoning:
		put(playgroundEvent{Type: "reasoning-delta", Text: f.Text})
	case f.Text != "":
		p.sent += f.Text
		put(playgroundEvent{Type: "text-delta", Text: f.Text})
	}
}

// sendRemainder sends the part of a message that was not streamed. If the streamed part differs, it discards that part
// and sends the whole message.
func (p *playgroundTranslator) sendRemainder(f reeve.Frame, put func(playgroundEvent)) {
	rest, ok := strings.CutPrefix(f.Text, p.sent)
	if !ok {
		put(playgroundEvent{Type: "discard"})
		rest = f.Text
	}
	if rest != "" {
		put(playgroundEvent{Type: "text-delta", Text: rest})
	}
	p.sent = ""
}

// sendEnd sends the session's ids and the end of the stream.
func (p *playgroundTranslator) sendEnd(e *eventWriter) {
	e.add(0, "session-info", playgroundEvent{Type: "session-info", PlaygroundInfo: &p.info, TraceID: p.info.TurnID})
	e.addDone()
}

// errorEventType returns "recoverable-error" for errors after which the session can simply continue, otherwise "error".
func errorEventType(c reeve.Code) string {
	switch c {
	case reeve.StepLimit, reeve.Timeout, reeve.ToolFailed, reeve.RateLimited, reeve.ModelFailed, reeve.Unavailable,
		reeve.BudgetExceeded:
		return "recoverable-error"
	default:
	}
	return "error"
}
