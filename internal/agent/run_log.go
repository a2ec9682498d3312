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

// runLog is a run as its messages tell it.
type runLog struct {
	inputs    []reeve.Message // what the run was given: by a person, or by what woke it
	info    reeve.MessageInfo
	answers   []*modelAnswer
	partialAnswer    string // what was said of an answer that a person cut off
	notesTaken   bool   // notes have been taken of it
	lastMessage    string // the last message that was read
	deferredResults int    // how many results of calls that are answered later are known, if any is awaited
}

// modelAnswer is one answer of the model with what became of its calls.
type modelAnswer struct {
	id     string // of its message
	index      int
	lastSeen   string   // the last message that the model knew of
	unseenCalls []string // calls before it, by action, whose results the model did not know of
	answer model.Answer
	calls  []*answerCall
}

// hasSeen tells whether the model knew the result of a call when it gave the answer. That one came before another by its
// id says little: on PostgreSQL both are written at once, and the second may be there first.
func (m *modelAnswer) hasSeen(c *answerCall) bool {
	return c.result != nil && c.answerIndex < m.index && c.result.ID <= m.lastSeen && !slices.Contains(m.unseenCalls, c.action.ID)
}

// answerCall is one call that an answer wants.
type answerCall struct {
	model.Part
	ordinal int // among all calls of the run
	answerIndex    int
	action  *reeve.Message
	result  *reeve.Message
	info    reeve.ResultInfo
}

// readRun reads a run's log.
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

// parseLog makes a log of a run's messages, in order.
func parseLog(list []reeve.Message) (*runLog, error) {
	l := &runLog{}
	byAction := map[string]*answerCall{}
	ordinal := 0
	for i := range list {
		m := &list[i]
		l.lastMessage = max(l.lastMessage, m.ID) // results stand behind their calls, and may have later ids than what follows
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
		case reeve.ToolResult: // its call stands before it
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

// parseAnswer reads a stored answer; nil means that the thought is another, perhaps a part of an answer that was cut off.
func parseAnswer(m *reeve.Message, n int, ordinal *int) (_ *modelAnswer, part bool, err error) {
	var info struct { // what is needed of reeve.MessageInfo, with the answer read at once
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
	partType   = "part" // of an answer that was cut off
)

// findCall finds the call that an action makes: one of the last answer that is known by the model's own id. Others may have
// written into the run too, such as a person who took a call back.
func (l *runLog) findCall(m *reeve.Message) (*answerCall, error) {
	if len(l.answers) == 0 {
		return nil, nil
	}
	var info struct { // what is needed of reeve.ActionInfo
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

// lastAnswer is the last move; nil means that there is none.
func (l *runLog) lastAnswer() *modelAnswer {
	if len(l.answers) == 0 {
		return nil
	}
	return l.answers[len(l.answers)-1]
}

// hasUnseenResults tells whether a result has come that the model has not been shown.
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

// awaitedCalls lists the calls, by action, whose results are still to come.
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

// isSettled tells whether nothing more can come to a turn that is over.
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

// countFailures counts calls that came to an error.
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

// cutReason is why an answer is not whole, the last one if there are several.
func (l *runLog) cutReason() reeve.CutReason {
	for _, m := range slices.Backward(l.answers) {
		if why := m.answer.CutReason(); why != "" {
			return why
		}
	}
	return ""
}

// messages is the run as the model is told it. Every call has exactly one result, whatever became of it: one that had
// not come when the model was asked is said to have been started, and comes as news when it has.
func (l *runLog) messages() []model.Message {
	var out []model.Message
	for i, m := range l.answers {
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
						Text: fmt.Sprintf("The result of %s (call %s), which was started earlier, has come:\n%s",
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

// sendable leaves out parts that say nothing.
func sendable(parts []model.Part) []model.Part {
	var out []model.Part
	for _, p := range parts {
		if p.Type != model.Text || p.Text != "" {
			out = append(out, p)
		}
	}
	return out
}

// resultPart is what the model is told of a call, whose result it may know.
func (c *answerCall) resultPart(known bool) model.Part {
	p := model.Part{Type: model.Result, ID: c.ID, Name: c.Name}
	switch {
	case known:
		p.Text, p.IsError = c.result.Content, c.info.Status == "error"
		if p.IsError {
			p.Text = c.renderError()
		}
	case c.action != nil:
		p.Text = "It has been started. Its result will come later; go on without it."
	default:
		p.Text, p.IsError = "It was not made: the turn ended before.", true
	}
	return p
}

// renderError says why a call failed, with every input that was wrong.
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
