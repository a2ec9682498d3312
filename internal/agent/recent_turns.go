package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// messagesPerTurn is the average number of messages read for one earlier turn.
const messagesPerTurn = 20

// recentTurns returns the earlier turns and notices, oldest first: as many as the settings allow and as fit. It reads
// only turns that are not cached, in batches of limited size, and long turns separately. It includes open turns that
// called this one.
func (v *assembly) recentTurns(ctx context.Context, s *store.Snap, people *agentNames) ([]TurnSnapshot, error) {
	out := []TurnSnapshot{}
	n := *v.set.RecentTurns
	if n == 0 && !v.isGuest() {
		return out, nil
	}
	turns, err := s.Chat().EndedTurns(ctx, v.run.SessionID, v.run.ID, n)
	if err != nil {
		return out, err
	}
	for _, a := range v.run.Ancestors {
		if run, err := s.Runs().GetRun(ctx, v.run.WorkspaceID, a.RunID); err == nil &&
			run.SessionID == v.run.SessionID && a.RunID != "" {
			turns = append(turns, run)
		}
	}
	if len(turns) == 0 {
		return out, nil
	}
	found, err := v.readTurns(ctx, s, people, turns, (n+1)*messagesPerTurn)
	if err != nil {
		return nil, err
	}
	if err := v.omitOlderTurns(ctx, s, turns, n); err != nil {
		return nil, err
	}
	oldest := slices.MinFunc(turns, func(a, b reeve.Run) int { return cmp.Compare(a.ID, b.ID) })
	told, err := s.Ledger().Notices(ctx, v.run.WorkspaceID, v.run.ThreadID, reeve.LowestIDAt(reeve.PrefixMessage,
		oldest.ID), v.log.inputs[0].ID, n)
	if err != nil {
		return nil, err
	}
	for _, m := range told {
		t := TurnSnapshot{ID: m.ID, Input: m.Content, AgentID: v.run.AgentID,
			Messages: []model.Message{model.NewTextMessage(model.User, "[Notice] "+m.Content)}}
		found = append(found, pastTurn{TurnSnapshot: t, firstMessage: m.ID, tokens: countTokens(t.Messages)})
	}
	slices.SortFunc(found, func(a, b pastTurn) int { return cmp.Compare(b.firstMessage, a.firstMessage) })
	left := v.left
	for _, p := range found {
		if len(out) >= n && !p.isOpen() {
			continue
		}
		if p.isUnread {
			var ok bool
			if p, ok, err = v.readLongTurn(ctx, s, people, p, left); err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		t, cost := p.TurnSnapshot, p.tokens
		if cost > left && t.AgentID == v.run.AgentID { // reduce the turn to its input and output
			t.Messages = shortMessages(t)
			v.leaveOut("turn", t.ID, "its steps: they take %d tokens, and %d of %d were left", cost, left,
				v.set.ContextTokens)
			cost = countTokens(t.Messages)
		}
		if cost > left {
			v.leaveOut("turns", t.ID, "this turn and those before it do not fit: it takes %d tokens, and %d of %d "+
				"(context_tokens) were left", cost, left, v.set.ContextTokens)
			break
		}
		left -= cost
		out = append(out, t)
	}
	slices.Reverse(out)
	return insertNestedTurns(out), nil
}

// omitOlderTurns records that turns before the last n are not shown, if there are any.
func (v *assembly) omitOlderTurns(ctx context.Context, s *store.Snap, shown []reeve.Run, n int) error {
	oldest := slices.MinFunc(shown, func(a, b reeve.Run) int { return cmp.Compare(a.ID, b.ID) })
	older, err := s.Chat().EndedTurns(ctx, v.run.SessionID, oldest.ID, 1)
	if err == nil && len(older) > 0 {
		v.leaveOut("turns", older[0].ID, "this turn and those before it are not among the last %d (recent_turns); "+
			"a summary covers them if there is one", n)
	}
	return err
}

// readTurns returns turns that have something to show. It reads at most that many messages of all turns that are not
// cached. A turn whose start is not among them is marked as unread.
func (v *assembly) readTurns(ctx context.Context, s *store.Snap, people *agentNames, list []reeve.Run,
	most int) (out []pastTurn, err error) {
	var unknown []TurnSnapshot
	var ids []string
	erasures, err := s.Notes().CountForgotten(ctx, v.run.WorkspaceID)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if p, ok := v.turnCache.get(r.ID, erasures); ok && r.AgentID == v.run.AgentID {
			out = append(out, p)
			continue
		}
		unknown = append(unknown, TurnSnapshot{ID: r.ID, State: r.State, AgentID: r.AgentID, ParentID: r.ParentID})
		ids = append(ids, r.ID)
	}
	read, err := s.Ledger().TurnMessages(ctx, v.run.WorkspaceID, ids, most)
	if err != nil {
		return nil, err
	}
	byTurn := map[string][]reeve.Message{}
	for _, m := range read {
		if m.ThreadID == v.run.ThreadID {
			byTurn[m.RunID] = append(byTurn[m.RunID], m)
		}
	}
	for _, t := range unknown {
		var p pastTurn
		var ok bool
		if list := byTurn[t.ID]; startsWithInput(list) || len(read) < most {
			p, ok, err = v.snapshot(ctx, s, people, t, list)
			p.erasures = erasures
			v.turnCache.put(p)
		} else {
			p, ok, err = v.describeLongTurn(ctx, s, t)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// startsWithInput reports whether a list of messages contains the start of its turn.
func startsWithInput(list []reeve.Message) bool {
	return len(list) > 0 && (list[0].Kind == reeve.UserMessage || list[0].Kind == reeve.Observation)
}

// snapshot decodes an earlier turn. It returns false if the start of the turn is missing, if it has nothing to show, or
// if it is an open turn of the same agent.
func (v *assembly) snapshot(ctx context.Context, s *store.Snap, people *agentNames, t TurnSnapshot,
	list []reeve.Message) (p pastTurn, ok bool, err error) {
	if !startsWithInput(list) || !t.State.IsFinal() && t.AgentID == v.run.AgentID {
		return p, false, nil
	}
	l, err := parseLog(list)
	if err != nil {
		return p, false, err
	}
	said, err := v.userMessage(ctx, s, l.inputs)
	if err != nil {
		return p, false, err
	}
	t.Input = list[0].Content
	if last := l.lastAnswer(); last != nil {
		t.Output = last.answer.Text()
	}
	if l.partialAnswer != "" {
		t.Output = l.partialAnswer
	}
	p.firstMessage = list[0].ID
	if v.showsWordsOnly(t, l.info) {
		p.TurnSnapshot, ok, err = v.wordsOnly(ctx, s, people, t, said, l)
		p.tokens = countTokens(p.Messages)
		return p, ok, err
	}
	t.Messages = append([]model.Message{said}, l.messages()...)
	if n := len(t.Messages); t.Messages[n-1].Role == model.User {
		t.Messages = append(t.Messages, model.NewTextMessage(model.Assistant,
			strings.TrimSpace(l.partialAnswer+"\n["+describeEnd(t.State)+"]")))
	}
	p.TurnSnapshot, p.tokens = t, countTokens(t.Messages)
	// the partial answer of a cancelled turn may still be stored
	p.isSettled = l.isSettled() && (t.State != reeve.RunCancelled || l.partialAnswer != "")
	return p, true, nil
}

// describeEnd says how a turn without an answer ended.
func describeEnd(s reeve.RunState) string {
	if s == reeve.RunCancelled {
		return "This turn was cancelled."
	}
	return "This turn ended without an answer."
}

// shortMessages returns a turn's input and output without the steps in between.
func shortMessages(t TurnSnapshot) []model.Message {
	output := t.Output
	if output == "" {
		output = "[" + describeEnd(t.State) + "]"
	}
	return []model.Message{model.NewTextMessage(model.User, reeve.Truncate(t.Input, 4000)),
		model.NewTextMessage(model.Assistant, reeve.Truncate(output, 4000))}
}

const (
	bytesPerToken = 4 // approximate
	tokensPerPart = 4 // overhead of a part
)

// countTokens returns the approximate number of tokens of messages.
func countTokens(list []model.Message) (n int) {
	for _, m := range list {
		for _, p := range m.Parts {
			n += (len(p.Text)+len(p.Args))/bytesPerToken + tokensPerPart
			if p.Type == model.Media {
				n += 1500
			}
		}
	}
	return n
}

// transcript returns a turn for an extractor.
func transcript(l *runLog) []Exchange {
	var out []Exchange
	for i, m := range l.answers {
		mv := Exchange{Sequence: i + 1, Text: m.answer.Text()}
		for _, c := range m.calls {
			mc := ExchangeCall{ID: c.ID, Tool: c.Name, Args: argsAsJSON(c.Args)}
			if c.result != nil {
				mc.Result, mc.IsError = c.result.Content, c.info.Status == "error"
			}
			mv.Calls = append(mv.Calls, mc)
		}
		out = append(out, mv)
	}
	return out
}
