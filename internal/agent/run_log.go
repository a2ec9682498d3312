package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// runLog is a run's messages, decoded.
type runLog struct {
	inputs          []reeve.Message // messages of a person, or what woke the run
	info            reeve.MessageInfo
	answers         []*modelAnswer
	partialAnswer   string // text of an answer that a person cancelled
	notesTaken      bool   // notes were extracted
	lastMessage     string // the highest message id
	deferredResults int    // number of stored results of deferred calls, if any call is open
}

// modelAnswer is one answer of the model with its calls.
type modelAnswer struct {
	id          string // message id
	index       int
	lastSeen    string   // the last message that the model had seen
	unseenCalls []string // earlier calls, by action, whose results the model had not seen
	answer      model.Answer
	calls       []*answerCall
}

// hasSeen reports whether the model had the result of a call when it gave the answer. The order of ids is not enough:
// on PostgreSQL a result with a lower id may be committed later.
func (m *modelAnswer) hasSeen(c *answerCall) bool {
	return c.result != nil && c.answerIndex < m.index && c.result.ID <= m.lastSeen &&
		!slices.Contains(m.unseenCalls, c.action.ID)
}

// answerCall is one call of an answer.
type answerCall struct {
	model.Part
	ordinal     int // number of the call among all calls of the run
	answerIndex int
	action      *reeve.Message
	result      *reeve.Message
	info        reeve.ResultInfo
}

// readRun reads and decodes a run's log.
func readRun(ctx context.Context, s *store.Snap, run reeve.Run) (*runLog, error) {
	list, err := s.Ledger().AllRunMessages(ctx, run.WorkspaceID, run.ID)
	if err != nil {
		return nil, err
	}
	l, err := parseLog(list)
	if err == nil && len(l.awaitedCalls()) > 0 {
		l.deferredResults, err = s.Runs().CountDeferredResults(ctx, run.ID)
	}
	return l, err
}

// parseLog decodes a run's messages, which are in order.
func parseLog(list []reeve.Message) (*runLog, error) {
	l := &runLog{}
	byAction := map[string]*answerCall{}
	ordinal := 0
	for i := range list {
		m := &list[i]
		// results follow their calls in the list, and may have higher ids than later messages
		l.lastMessage = max(l.lastMessage, m.ID)
		switch m.Kind {
		case reeve.UserMessage, reeve.Observation:
			if len(l.inputs) == 0 {
				if err := json.Unmarshal(m.Metadata, &l.info); err != nil {
					return nil, err
				}
			}
			l.inputs = append(l.inputs, *m)
		case reeve.Thought:
			v, part, err := parseAnswer(m, len(l.answers), &ordinal)
			if err != nil {
				return nil, err
			}
			if v != nil {
				l.answers = append(l.answers, v)
			} else if part {
				l.partialAnswer = m.Content
			}
		case reeve.Action:
			if c, err := l.findCall(m); err != nil {
				return nil, err
			} else if c != nil {
				c.action, byAction[m.ID] = m, c
			}
		case reeve.ToolResult: // follows its call
			if c := byAction[m.ActionID]; c != nil {
				c.result = m
				if err := json.Unmarshal(m.Metadata, &c.info); err != nil {
					return nil, err
				}
			}
		case reeve.SystemNote:
			l.notesTaken = true
		case reeve.Summary:
		}
	}
	return l, nil
}

// parseAnswer decodes a stored answer. It returns nil for any other thought; part reports a partial answer.
func parseAnswer(m *reeve.Message, n int, ordinal *int) (_ *modelAnswer, part bool, err error) {
	var info struct { // the needed fields of reeve.MessageInfo, with the answer decoded
		Type   string       `json:"type"`
		Seen   string       `json:"seen"`
		Awaits []string     `json:"awaits"`
		Answer model.Answer `json:"answer"`
	}
	if err := json.Unmarshal(m.Metadata, &info); err != nil {
		return nil, false, err
	}
	if info.Type != answerType {
		return nil, info.Type == partType, nil
	}
	v := &modelAnswer{id: m.ID, index: n, lastSeen: info.Seen, unseenCalls: info.Awaits, answer: info.Answer}
	for _, p := range v.answer.Calls() {
		v.calls = append(v.calls, &answerCall{Part: p, ordinal: *ordinal, answerIndex: n})
		*ordinal++
	}
	return v, false, nil
}

const (
	answerType = "answer"
	partType   = "part" // part of a cancelled answer
)

// findCall returns the call of the last answer that an action made, or nil. Actions of others, such as a person who
// cancelled a call, have no matching call.
func (l *runLog) findCall(m *reeve.Message) (*answerCall, error) {
	if len(l.answers) == 0 {
		return nil, nil
	}
	var info struct { // the needed fields of reeve.ActionInfo
		Ref string `json:"ref"`
	}
	if err := json.Unmarshal(m.Metadata, &info); err != nil || info.Ref == "" {
		return nil, err
	}
	for _, c := range l.answers[len(l.answers)-1].calls {
		if c.ID == info.Ref && c.action == nil {
			return c, nil
		}
	}
	return nil, nil
}

// lastAnswer returns the last answer, or nil.
func (l *runLog) lastAnswer() *modelAnswer {
	if len(l.answers) == 0 {
		return nil
	}
	return l.answers[len(l.answers)-1]
}

// hasUnseenResults reports whether a result has arrived that the model has not seen.
func (l *runLog) hasUnseenResults() bool {
	end := l.lastAnswer()
	for _, m := range l.answers {
		for _, c := range m.calls {
			if c.result != nil && !end.hasSeen(c) {
				return true
			}
		}
	}
	return false
}

// awaitedCalls lists the actions of the calls that have no result yet.
func (l *runLog) awaitedCalls() (actions []string) {
	for _, m := range l.answers {
		for _, c := range m.calls {
			if c.action != nil && c.result == nil {
				actions = append(actions, c.action.ID)
			}
		}
	}
	return actions
}

// isSettled reports whether every call has a result.
func (l *runLog) isSettled() bool {
	for _, m := range l.answers {
		for _, c := range m.calls {
			if c.result == nil {
				return false
			}
		}
	}
	return true
}

// countFailures counts the failed calls.
func (l *runLog) countFailures() (n int) {
	for _, m := range l.answers {
		for _, c := range m.calls {
			if c.result != nil && c.info.Status == "error" {
				n++
			}
		}
	}
	return n
}

// cutReason returns why the last incomplete answer was cut, or "".
func (l *runLog) cutReason() reeve.CutReason {
	for _, m := range slices.Backward(l.answers) {
		if why := m.answer.CutReason(); why != "" {
			return why
		}
	}
	return ""
}

// messages returns the run as messages for the model. Every call has exactly one result. If a result was missing when
// the model was asked, the call is reported as started. The result then follows as text once it has arrived.
func (l *runLog) messages() []model.Message { return l.messagesBefore(len(l.answers)) }

// messagesBefore returns the messages that the model had before it gave an answer. answer counts from 0.
func (l *runLog) messagesBefore(answer int) []model.Message {
	var out []model.Message
	for i, m := range l.answers[:answer] {
		if parts := sendable(m.answer.Parts); len(parts) > 0 {
			out = append(out, model.Message{Role: model.Assistant, Parts: parts})
		}
		known := func(c *answerCall) bool { return c.result != nil }
		if i+1 < len(l.answers) {
			known = l.answers[i+1].hasSeen
		}
		var parts []model.Part
		for _, c := range m.calls {
			parts = append(parts, c.resultPart(known(c)))
		}
		for _, earlier := range l.answers[:i] {
			for _, c := range earlier.calls {
				if !m.hasSeen(c) && known(c) {
					parts = append(parts, model.Part{Type: model.Text,
						Text: fmt.Sprintf("The result of %s (call %s), which was started earlier, has arrived:\n%s",
							c.Name, c.ID, c.result.Content)})
				}
			}
		}
		if len(parts) > 0 {
			out = append(out, model.Message{Role: model.User, Parts: parts})
		}
	}
	return out
}

// sendable removes empty text parts.
func sendable(parts []model.Part) []model.Part {
	var out []model.Part
	for _, p := range parts {
		if p.Type != model.Text || p.Text != "" {
			out = append(out, p)
		}
	}
	return out
}

// resultPart returns the result of a call for the model. If it is not known, the part says why.
func (c *answerCall) resultPart(known bool) model.Part {
	p := model.Part{Type: model.Result, ID: c.ID, Name: c.Name}
	switch {
	case known:
		p.Text, p.IsError = c.result.Content, c.info.Status == "error"
		if p.IsError {
			p.Text = c.renderError()
		}
	case c.action != nil:
		p.Text = "Started. The result arrives later; continue without it."
	default:
		p.Text, p.IsError = "Not called: the turn ended first.", true
	}
	return p
}

// renderError renders why a call failed, with every invalid field.
func (c *answerCall) renderError() string {
	text := fmt.Sprintf("%s: %s", c.info.Code, c.info.Message)
	if c.info.Message == "" {
		text = string(c.info.Code) + ": " + c.result.Content
	}
	for _, f := range c.info.Fields {
		text += fmt.Sprintf("\n- %s: %s", f.Path, f.Message)
		if f.Expected != "" {
			text += " (expected: " + f.Expected + ")"
		}
	}
	if c.info.Hint != "" {
		text += "\nHint: " + c.info.Hint
	}
	return text
}
