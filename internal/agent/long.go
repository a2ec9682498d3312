package agent

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// stretch is how many messages of a long turn are read at once.
const stretch = 10 * window

// unread is an earlier turn that is too long to be read with others: where it begins, and how it is to be shown. False
// means that there is nothing of it.
func (v *turn) unread(ctx context.Context, s *store.Snap, t TurnSnapshot) (p past, ok bool, err error) {
	first, err := s.Ledger().RunMessages(ctx, v.run.WorkspaceID, t.ID, "", 1)
	if err != nil || !begins(first) || first[0].ThreadID != v.run.ThreadID {
		return p, false, err
	}
	var info reeve.MessageInfo
	if err := json.Unmarshal(first[0].Metadata, &info); err != nil {
		return p, false, err
	}
	return past{TurnSnapshot: t, first: first[0].ID, unread: true, words: v.overhears(t, info)}, true, nil
}

// long reads such a turn. Of one that cannot fit into the tokens that are left, the model is told at least what was
// said, and answered.
func (v *turn) long(ctx context.Context, s *store.Snap, people *cast, p past, left int) (past, bool, error) {
	list, whole, err := v.stretches(ctx, s, p, left)
	if err != nil {
		return p, false, err
	}
	words := p.words
	p, ok, err := v.snapshot(ctx, s, people, p.TurnSnapshot, list)
	switch {
	case err != nil || !ok:
		return p, false, err
	case whole:
		v.past.put(p)
		return p, true, nil
	case words:
		return p, true, nil
	}
	if p.Output == "" { // much was written into it behind its answer
		run, err := s.Runs().GetRun(ctx, v.run.WorkspaceID, p.ID)
		if err != nil {
			return p, false, err
		}
		p.Output = run.Output
	}
	p.Messages = brief(p.TurnSnapshot)
	p.tokens = tokens(p.Messages)
	return p, true, nil
}

// stretches reads a turn's messages, one stretch after the other, for as long as it may fit into so many tokens: a
// call, the answer that wants it and its result are two parts of what is shown, and what they say is stored about as it
// is shown, so what comes to twice as much does not fit. Of such a turn it gives the first message and the last ones.
// Of one that is shown by its words, calls are not kept.
func (v *turn) stretches(ctx context.Context, s *store.Snap, p past,
	left int) (list []reeve.Message, whole bool, err error) {
	for last, cost := "", 0; cost <= 2*left; {
		some, err := s.Ledger().RunMessages(ctx, v.run.WorkspaceID, p.ID, last, stretch)
		if err != nil {
			return nil, false, err
		}
		for _, m := range some {
			cost += perPart
			if m.ThreadID == v.run.ThreadID && (!p.words || m.Kind != reeve.Action && m.Kind != reeve.ToolResult) {
				list = append(list, m)
				cost += len(m.Content) / perToken
			}
		}
		if len(some) < stretch {
			return list, true, nil
		}
		last = store.MessageCursor(some[stretch-1])
	}
	end, err := s.Ledger().TurnMessages(ctx, v.run.WorkspaceID, []string{p.ID}, window)
	return append(list[:1], end...), false, err
}
