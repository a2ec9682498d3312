package agent

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// window is how many messages of a thread are looked at for one earlier turn, on average.
const window = 20

// recent reads the turns before this one: as many as the settings say and fit, oldest first. Two queries read them and a bounded
// stretch of the thread; a turn that is cut off at its beginning is left out.
func (v *turn) recent(ctx context.Context, s *store.Snap) ([]TurnSnapshot, error) {
	out := []TurnSnapshot{}
	n := *v.set.RecentTurns
	if n == 0 {
		return out, nil
	}
	states, first, err := s.EndedTurns(ctx, v.run.SessionID, v.run.ID, n)
	if err != nil || first == "" {
		return out, err
	}
	since := reeve.SameTime(reeve.PrefixMessage, first)
	list, err := s.RecentMessages(ctx, v.run.WorkspaceID, v.run.ThreadID, since, v.log.said[0].ID, (n+1)*window)
	if err != nil {
		return nil, err
	}
	var order []string
	byTurn := map[string][]reeve.Message{}
	for _, m := range list {
		key := m.RunID
		if key == "" {
			key = m.ID // a notice, or a call that somebody made by hand
		}
		if _, ok := byTurn[key]; !ok {
			order = append(order, key)
		}
		byTurn[key] = append(byTurn[key], m)
	}
	left := v.set.ContextTokens
	for i := len(order) - 1; i >= 0 && len(out) < n; i-- {
		t, ok, err := v.snapshot(ctx, s, states[order[i]], byTurn[order[i]])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		cost := tokens(t.Messages)
		if cost > left { // at least what was said, and answered
			t.Messages = brief(t)
			cost = tokens(t.Messages)
		}
		if cost > left {
			break
		}
		left -= cost
		out = append([]TurnSnapshot{t}, out...)
	}
	return out, nil
}

// snapshot makes an earlier turn of its messages; false means that it has nothing to show, or is still under way.
func (v *turn) snapshot(ctx context.Context, s *store.Snap, state reeve.RunState, list []reeve.Message) (t TurnSnapshot, ok bool, err error) {
	first := list[0]
	key := cmp.Or(first.RunID, first.ID)
	if first.RunID == "" {
		if first.Kind != reeve.Observation {
			return t, false, nil
		}
		return TurnSnapshot{ID: key, Input: first.Content, Messages: []model.Message{model.Said(model.User, "[Notice] "+first.Content)}}, true, nil
	}
	if first.Kind != reeve.UserMessage && first.Kind != reeve.Observation {
		return t, false, nil // its beginning is outside the window
	}
	if state == "" || !state.Final() {
		return t, false, nil
	}
	l, err := readLog(list)
	if err != nil {
		return t, false, err
	}
	said, err := v.spoken(ctx, s, l.said)
	if err != nil {
		return t, false, err
	}
	t = TurnSnapshot{ID: key, State: state, Input: first.Content, Messages: append([]model.Message{said}, l.messages()...)}
	if last := l.end(); last != nil {
		t.Output = last.answer.Text()
	}
	if n := len(t.Messages); t.Messages[n-1].Role == model.User {
		t.Messages = append(t.Messages, model.Said(model.Assistant, "["+ending(state)+"]"))
	}
	return t, true, nil
}

// ending says how a turn without a last word came to its end.
func ending(s reeve.RunState) string {
	if s == reeve.RunCancelled {
		return "This turn was cancelled."
	}
	return "This turn ended without an answer."
}

// brief is a turn without what happened in between.
func brief(t TurnSnapshot) []model.Message {
	output := t.Output
	if output == "" {
		output = "[" + ending(t.State) + "]"
	}
	return []model.Message{model.Said(model.User, clip(t.Input, 4000)), model.Said(model.Assistant, clip(output, 4000))}
}

// tokens is about how many tokens messages have.
func tokens(list []model.Message) (n int) {
	for _, m := range list {
		for _, p := range m.Parts {
			n += (len(p.Text)+len(p.Args))/4 + 4
			if p.Type == model.Media {
				n += 1500
			}
		}
	}
	return n
}

// transcript is a turn as an extractor is given it.
func transcript(l *log) []Move {
	var out []Move
	for i, m := range l.moves {
		mv := Move{Sequence: i + 1, Text: m.answer.Text()}
		for _, c := range m.calls {
			mc := MoveCall{ID: c.ID, Tool: c.Name, Args: readable(c.Args)}
			if c.result != nil {
				mc.Result, mc.IsError = c.result.Content, c.info.Status == "error"
			}
			mv.Calls = append(mv.Calls, mc)
		}
		out = append(out, mv)
	}
	return out
}
