package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
	"reeve/model"
)

// v1Request is a request of either API in a common form.
type v1Request struct {
	model       string
	transcript  *v1Transcript
	tools       []v1Tool // offered by the client
	choice      json.RawMessage
	history     reeve.ClientHistory // settings that are passed on to the turn
	temperature *float64
	topP        *float64
	limits      map[string]*int // token limits of the answer, by parameter name
	previous    string          // id of the response to continue
}

// beginRequestedTurn checks a request and begins its turn. If it fails, no turn has begun.
func (h *openaiHandlers) beginRequestedTurn(r *http.Request, who reeve.Principal, q v1Request) (*v1Turn, error) {
	maxTokens, err := checkV1Limits(q)
	if err != nil {
		return nil, err
	}
	a, err := h.getAgent(r.Context(), who, q.model)
	if err != nil {
		return nil, err
	}
	offers, err := parseV1Tools(q.tools)
	if err != nil {
		return nil, err
	}
	conversation := ""
	if q.previous != "" {
		if conversation, err = h.getPreviousConversation(r, who, a, q.previous); err != nil {
			return nil, err
		}
	}
	if err := h.loadMedia(r.Context(), q.transcript); err != nil {
		return nil, err
	}
	request, history := q.transcript.splitLast()
	b, err := q.transcript.historyInput(history)
	if err != nil {
		return nil, err
	}
	if conversation != "" {
		b.Messages = nil // the conversation has its own history
	}
	choice, tool, err := parseV1ToolChoice(q.choice, offers)
	if err != nil {
		return nil, err
	}
	q.history.System = b.System
	b.ClientHistory = q.history
	b.Choice, b.ChoiceTool = string(choice), tool
	b.MaxTokens, b.Temperature, b.TopP, b.Previous = maxTokens, q.temperature, q.topP, q.previous
	return h.beginTurn(r.Context(), who, a, conversation, request, b, offers)
}

// getPreviousConversation returns the conversation of an earlier response of the same agent.
func (h *openaiHandlers) getPreviousConversation(r *http.Request, who reeve.Principal, a reeve.Agent,
	id string) (string, error) {
	const at = "previous_response_id"
	previous, err := h.getResponseTurn(r, who, id)
	if e := reeve.AsError(err); err != nil && e.Code == reeve.NotFound {
		e.Fields = []reeve.Field{{Path: at}}
	}
	if err == nil && previous.AgentID != a.ID {
		err = newV1Invalid(at, "the previous response belongs to another agent")
	}
	return previous.SessionID, err
}

// checkV1Limits checks temperature, top_p and the token limits. It returns the largest token limit, or 0 if the agent's
// own setting applies.
func checkV1Limits(q v1Request) (maxTokens int, err error) {
	if t := q.temperature; t != nil && (*t < 0 || *t > 2) {
		return 0, newV1Invalid("temperature", "temperature must be from 0 to 2, not %v", *t)
	}
	if p := q.topP; p != nil && (*p < 0 || *p > 1) {
		return 0, newV1Invalid("top_p", "top_p must be from 0 to 1, not %v", *p)
	}
	for name, n := range q.limits {
		if n != nil && *n < 1 {
			return 0, newV1Invalid(name, "%s must be at least 1, not %d", name, *n)
		}
		if n != nil {
			maxTokens = max(maxTokens, *n)
		}
	}
	return maxTokens, nil
}

// v1Turn is a turn that an OpenAI client follows.
type v1Turn struct {
	h       *openaiHandlers
	who     reeve.Principal
	turn    reeve.Turn
	history reeve.ClientHistory // settings of the request
	offered map[string]bool
	reader  *chat.Reader
}

// beginTurn begins a turn in the given conversation, or in a new one if conversation is "".
func (h *openaiHandlers) beginTurn(ctx context.Context, who reeve.Principal, a reeve.Agent, conversation string,
	r reeve.TurnRequest, b chat.HistoryInput, offers []model.Tool) (*v1Turn, error) {
	var err error
	after := int64(0)
	if b.Agent = a.ID; conversation != "" {
		if err = h.db.View(ctx, func(snap *store.Snap) (err error) {
			after, err = snap.Chat().LastFrame(ctx, conversation)
			return err
		}); err != nil {
			return nil, err
		}
	}
	if len(offers) > 0 {
		list, err := json.Marshal(offers)
		if err != nil {
			return nil, err
		}
		b.Offered = list
	}
	t := &v1Turn{h: h, who: who, offered: map[string]bool{}}
	for _, o := range offers {
		t.offered[o.Name] = true
	}
	t.history = b.ClientHistory
	if t.turn, err = h.chat.BeginTurnWithHistory(ctx, who, conversation, r, b); err != nil {
		return nil, err
	}
	if t.reader, err = h.chat.Broadcaster.Subscribe(ctx, t.turn.ConversationID, after); err != nil {
		return nil, t.stopFollowing(ctx, err)
	}
	return t, nil
}

// v1Event is an event of a turn for the client. Several fields may be set.
type v1Event struct {
	text       string
	messageEnd bool         // the current message has ended
	call       *reeve.Frame // a call of a tool that the client offers
	turnEnd    bool
	failure    error
}

// follow calls handle for each event of the turn until the agent has answered, the turn waits for a person, or the turn
// ends. It returns an error if the stream ends earlier; see stopFollowing.
func (t *v1Turn) follow(ctx context.Context, handle func(v1Event) error) error {
	defer t.reader.Close()
	sentText := ""     // sent text of the current message
	restarted := false // the model restarts a message that was sent in part; its tokens are not sent
	permit, err := t.h.permits.issue(ctx, t.who, t.turn.ConversationID)
	defer permit.close()
	if err != nil {
		return t.stopFollowing(ctx, err)
	}
	for {
		frames, err := permit.next(ctx, t.reader)
		if err != nil {
			return t.stopFollowing(ctx, err)
		}
		for _, l := range frames {
			var f reeve.Frame
			if err := json.Unmarshal(l.Data, &f); err != nil {
				return err
			}
			if f.TurnID != t.turn.ID {
				continue
			}
			var event v1Event
			switch f.Type {
			case reeve.FrameToken:
				switch {
				case f.Discard:
					restarted = sentText != ""
				case !f.Reasoning && !restarted:
					event.text, sentText = f.Text, sentText+f.Text
				}
			case reeve.FrameMessage:
				event.text = unsentText(f.Text, sentText)
				sentText, restarted = "", false
				event.messageEnd, event.turnEnd = true, f.Final
			case reeve.FrameTool:
				if t.offered[f.Tool] {
					event.call = &f
				}
			case reeve.FrameApproval:
				event.text = "[" + f.Tool + " waits for a person: " + f.Message +
					". The turn resumes when approval " + f.ApprovalID + " is given]"
				event.turnEnd = true
			case reeve.FrameError:
				event.failure = &reeve.Error{Code: f.Code, Message: f.Message, Hint: f.Hint,
					RetryAfter: time.Duration(f.RetryAfterMS) * time.Millisecond}
			case reeve.FrameComplete:
				event.turnEnd = true
			case reeve.FrameStarted, reeve.FrameResult, reeve.FrameConnected, reeve.FramePong, reeve.FrameMedia,
				reeve.FrameReport:
			}
			if event.text == "" && event.call == nil && event.failure == nil && !event.turnEnd && !event.messageEnd {
				continue
			}
			if err := handle(event); err != nil {
				return t.stopFollowing(ctx, err)
			}
			if event.turnEnd || event.failure != nil {
				return nil
			}
		}
	}
}

// unsentText returns the part of a message that was not sent yet. If the sent text is not its beginning, because the
// model restarted the message, it returns the whole message on a new line.
func unsentText(whole, sent string) string {
	if more, ok := strings.CutPrefix(whole, sent); ok {
		return more
	}
	return "\n" + whole
}

// stopFollowing returns the error that ended the stream. It cancels the turn if its client has disconnected or may no
// longer listen.
func (t *v1Turn) stopFollowing(ctx context.Context, err error) error {
	err = t.h.streams.endError(ctx, err)
	t.h.canceler.abandon(ctx, t.who, t.turn.ID, err)
	return err
}

// followToEnd follows the turn, and returns the usage of all its answers and the last answer.
func (t *v1Turn) followToEnd(ctx context.Context,
	handle func(v1Event) error) (u model.Usage, last model.Answer, err error) {
	if err = t.follow(ctx, handle); err != nil {
		return u, last, err
	}
	p, err := t.readResult(ctx)
	return p.usage, p.last, t.h.streams.endError(ctx, err)
}

// v1TurnResult is the stored result of a turn so far.
type v1TurnResult struct {
	history reeve.ClientHistory // settings of the request
	answers []model.Answer
	last    model.Answer
	usage   model.Usage // usage of all answers
}

// readResult reads the stored result of the turn.
func (t *v1Turn) readResult(ctx context.Context) (p v1TurnResult, err error) {
	err = t.h.db.View(ctx, func(snap *store.Snap) error {
		list, err := snap.Ledger().AllRunMessages(ctx, t.who.Workspace, t.turn.ID)
		if err != nil {
			return err
		}
		for _, m := range list {
			var info reeve.MessageInfo
			if json.Unmarshal(m.Metadata, &info) != nil {
				continue
			}
			if m.Kind == reeve.UserMessage && info.ClientHistory != nil {
				p.history = *info.ClientHistory
			}
			var a model.Answer
			if m.Kind != reeve.Thought || len(info.Answer) == 0 || json.Unmarshal(info.Answer, &a) != nil {
				continue
			}
			p.answers, p.last = append(p.answers, a), a
			u := &p.usage
			u.Input, u.Output = reeve.SaturatingAdd(u.Input, a.Usage.Input),
				reeve.SaturatingAdd(u.Output, a.Usage.Output)
			u.CacheRead, u.CacheWrite = reeve.SaturatingAdd(u.CacheRead, a.Usage.CacheRead),
				reeve.SaturatingAdd(u.CacheWrite,
					a.Usage.CacheWrite)
			u.Reasoning = reeve.SaturatingAdd(u.Reasoning, a.Usage.Reasoning)
		}
		return nil
	})
	return p, err
}

// replay adds the stored answers to a response: their texts and the calls of tools that the client offered.
func (p v1TurnResult) replay(e *responseStream) error {
	var offers []model.Tool
	_ = json.Unmarshal(p.history.Offered, &offers) // stored by beginTurn; may be empty
	for _, a := range p.answers {
		if err := e.addEvent(v1Event{text: a.Text(), messageEnd: true}); err != nil {
			return err
		}
		for _, c := range a.Calls() {
			if !slices.ContainsFunc(offers, func(o model.Tool) bool { return o.Name == c.Name }) {
				continue
			}
			if err := e.addCall(c.ID, c.Name, c.Args); err != nil {
				return err
			}
		}
	}
	return e.finish()
}
