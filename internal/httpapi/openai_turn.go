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

// v1Request is what a request asks for, in whichever of OpenAI's ways.
type v1Request struct {
	model       string
	transcript        *v1Transcript
	tools       []v1Tool // that the client offers
	choice      json.RawMessage
	history       reeve.ClientHistory // what else goes along with the request as it is
	temperature *float64
	topP        *float64
	limits      map[string]*int // of the answer's length, by their names
	previous    string          // the response that it goes on from
}

// beginRequestedTurn begins the turn that a request asks for. Nothing has happened when it is refused.
func (h *openaiHandlers) beginRequestedTurn(r *http.Request, who reeve.Principal, q v1Request) (*v1Turn, error) {
	most, err := checkV1Limits(q)
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
		b.Messages = nil // the conversation's own history counts
	}
	choice, tool, err := parseV1ToolChoice(q.choice, offers)
	if err != nil {
		return nil, err
	}
	q.history.System = b.System
	b.ClientHistory = q.history
	b.Choice, b.ChoiceTool = string(choice), tool
	b.MaxTokens, b.Temperature, b.TopP, b.Previous = most, q.temperature, q.topP, q.previous
	return h.beginTurn(r.Context(), who, a, conversation, request, b, offers)
}

// getPreviousConversation is the conversation of an earlier response.
func (h *openaiHandlers) getPreviousConversation(r *http.Request, who reeve.Principal, a reeve.Agent, id string) (string, error) {
	const at = "previous_response_id"
	before, err := h.getResponseTurn(r, who, id)
	if e := reeve.AsError(err); err != nil && e.Code == reeve.NotFound {
		e.Fields = []reeve.Field{{Path: at}}
	}
	if err == nil && before.AgentID != a.ID {
		err = newV1Invalid(at, "the response before is another agent's")
	}
	return before.SessionID, err
}

// checkV1Limits checks how long and how free an answer may be, and gives what it may take; 0 means what the agent's own
// settings say.
func checkV1Limits(q v1Request) (most int, err error) {
	if t := q.temperature; t != nil && (*t < 0 || *t > 2) {
		return 0, newV1Invalid("temperature", "temperature is from 0 to 2, and not %v", *t)
	}
	if p := q.topP; p != nil && (*p < 0 || *p > 1) {
		return 0, newV1Invalid("top_p", "top_p is from 0 to 1, and not %v", *p)
	}
	for name, n := range q.limits {
		if n != nil && *n < 1 {
			return 0, newV1Invalid(name, "%s is at least 1, and not %d", name, *n)
		}
		if n != nil {
			most = max(most, *n)
		}
	}
	return most, nil
}

// v1Turn is a turn that a client of OpenAI's language waits for.
type v1Turn struct {
	h       *openaiHandlers
	who     reeve.Principal
	turn    reeve.Turn
	history   reeve.ClientHistory // what the request brought along
	offered map[string]bool
	reader  *chat.Reader
}

// beginTurn begins one, in a conversation of its own or in one that is there.
func (h *openaiHandlers) beginTurn(ctx context.Context, who reeve.Principal, a reeve.Agent, conversation string,
	r reeve.TurnRequest, b chat.HistoryInput, offers []model.Tool) (*v1Turn, error) {
	var err error
	after := int64(0)
	if b.With = a.ID; conversation != "" {
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
	if t.reader, err = h.chat.Hub.Subscribe(ctx, t.turn.ConversationID, after); err != nil {
		return nil, t.stopFollowing(ctx, err)
	}
	return t, nil
}

// v1Event is what a client is to be told next.
type v1Event struct {
	text string
	messageEnd  bool         // the message under way is over; what follows is another one
	call *reeve.Frame // a call of a tool that the client offers
	turnEnd bool
	failure error
}

// follow tells what the turn says until there is nothing more for this client: the agent has said all, hands a call
// over, or waits for a person. An error says why it is followed no further; see left.
func (t *v1Turn) follow(ctx context.Context, tell func(v1Event) error) error {
	defer t.reader.Close()
	sent := ""    // what was told of the message under way
	held := false // a message is made anew: its pieces are held back, as nobody can take back what was told
	right, err := t.h.permits.issue(ctx, t.who, t.turn.ConversationID)
	defer right.close()
	if err != nil {
		return t.stopFollowing(ctx, err)
	}
	for {
		lines, err := right.next(ctx, t.reader)
		if err != nil {
			return t.stopFollowing(ctx, err)
		}
		for _, l := range lines {
			var f reeve.Frame
			if err := json.Unmarshal(l.Data, &f); err != nil {
				return err
			}
			if f.TurnID != t.turn.ID {
				continue
			}
			var seen v1Event
			switch f.Type {
			case reeve.FrameToken:
				switch {
				case f.Discard:
					held = sent != ""
				case !f.Reasoning && !held:
					seen.text, sent = f.Text, sent+f.Text
				}
			case reeve.FrameMessage:
				seen.text = unsentText(f.Text, sent)
				sent, held = "", false
				seen.messageEnd, seen.turnEnd = true, f.Final
			case reeve.FrameTool:
				if t.offered[f.Tool] {
					seen.call = &f
				}
			case reeve.FrameApproval:
				seen.text = "[" + f.Tool + " waits for a person: " + f.Message +
					". It goes on by itself when it is approved: " + f.ApprovalID + "]"
				seen.turnEnd = true
			case reeve.FrameError:
				seen.failure = &reeve.Error{Code: f.Code, Message: f.Message, Hint: f.Hint,
					RetryAfter: time.Duration(f.RetryAfterMS) * time.Millisecond}
			case reeve.FrameComplete:
				seen.turnEnd = true
			case reeve.FrameStarted, reeve.FrameResult, reeve.FrameConnected, reeve.FramePong, reeve.FrameMedia:
			}
			if seen.text == "" && seen.call == nil && seen.failure == nil && !seen.turnEnd && !seen.messageEnd {
				continue
			}
			if err := tell(seen); err != nil {
				return t.stopFollowing(ctx, err)
			}
			if seen.turnEnd || seen.failure != nil {
				return nil
			}
		}
	}
}

// unsentText is what has not been told of a message yet. If what was told was another, which was given up, the whole follows
// on a new line.
func unsentText(whole, told string) string {
	if more, ok := strings.CutPrefix(whole, told); ok {
		return more
	}
	return "\n" + whole
}

// stopFollowing gives why a turn is followed no further, and ends it if that is its client's going.
func (t *v1Turn) stopFollowing(ctx context.Context, err error) error {
	err = t.h.streams.endError(ctx, err)
	t.h.canceler.abandon(ctx, t.who, t.turn.ID, err)
	return err
}

// followToEnd follows the turn, and gives what its answers cost, and the last of them.
func (t *v1Turn) followToEnd(ctx context.Context, tell func(v1Event) error) (u model.Usage, last model.Answer, err error) {
	if err = t.follow(ctx, tell); err != nil {
		return u, last, err
	}
	p, err := t.readResult(ctx)
	return p.usage, p.last, t.h.streams.endError(ctx, err)
}

// v1TurnResult is what a turn has come to so far.
type v1TurnResult struct {
	history   reeve.ClientHistory // what its request brought along
	answers []model.Answer
	last    model.Answer
	usage   model.Usage // of all answers
}

// readResult reads what the turn has come to.
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
			if m.Kind == reeve.UserMessage && info.Given != nil {
				p.history = *info.Given
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

// replay tells the answers again as they were told: their texts, and the calls of tools that the client offered.
func (p v1TurnResult) replay(e *responseStream) error {
	var offers []model.Tool
	_ = json.Unmarshal(p.history.Offered, &offers) // we wrote it; there may be none
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
