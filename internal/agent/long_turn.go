package agent

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// longTurnPage is the number of messages of a long turn that are read at once.
const longTurnPage = 10 * messagesPerTurn

// describeLongTurn returns an earlier turn without its messages, because the turn is too long to be read together with
// others. It returns false if the turn has nothing to show.
func (v *assembly) describeLongTurn(ctx context.Context, s *store.Snap, t TurnSnapshot) (p pastTurn, ok bool,
	err error) {
	first, err := s.Ledger().RunMessages(ctx, v.run.WorkspaceID, t.ID, "", 1)
	if err != nil || !startsWithInput(first) || first[0].ThreadID != v.run.ThreadID {
		return p, false, err
	}
	var info reeve.MessageInfo
	if err := json.Unmarshal(first[0].Metadata, &info); err != nil {
		return p, false, err
	}
	return pastTurn{TurnSnapshot: t, firstMessage: first[0].ID, isUnread: true, wordsOnly: v.showsWordsOnly(t, info)},
		true, nil
}

// readLongTurn reads a long turn. If it does not fit into the tokens left, it is reduced to its input and output.
func (v *assembly) readLongTurn(ctx context.Context, s *store.Snap, people *agentNames, p pastTurn,
	left int) (pastTurn, bool, error) {
	list, whole, err := v.readLongTurnMessages(ctx, s, p, left)
	if err != nil {
		return p, false, err
	}
	words := p.wordsOnly
	p, ok, err := v.snapshot(ctx, s, people, p.TurnSnapshot, list)
	switch {
	case err != nil || !ok:
		return p, false, err
	case whole:
		v.turnCache.put(p)
		return p, true, nil
	case words:
		return p, true, nil
	}
	if p.Output == "" { // the answer is not among the last messages
		run, err := s.Runs().GetRun(ctx, v.run.WorkspaceID, p.ID)
		if err != nil {
			return p, false, err
		}
		p.Output = run.Output
	}
	p.Messages = shortMessages(p.TurnSnapshot)
	p.tokens = countTokens(p.Messages)
	return p, true, nil
}

// readLongTurnMessages reads the messages of a turn in pages, as long as they may fit into the tokens that are left. A
// call and its result are two parts of a request, so a turn that costs more than twice the tokens left cannot fit. Of
// such a turn it returns the first message and the last ones. If only words are shown, it leaves out calls.
func (v *assembly) readLongTurnMessages(ctx context.Context, s *store.Snap, p pastTurn,
	left int) (list []reeve.Message, whole bool, err error) {
	for last, cost := "", 0; cost <= 2*left; {
		some, err := s.Ledger().RunMessages(ctx, v.run.WorkspaceID, p.ID, last, longTurnPage)
		if err != nil {
			return nil, false, err
		}
		for _, m := range some {
			cost += tokensPerPart
			if m.ThreadID == v.run.ThreadID && (!p.wordsOnly || m.Kind != reeve.Action && m.Kind != reeve.ToolResult) {
				list = append(list, m)
				cost += len(m.Content) / bytesPerToken
			}
		}
		if len(some) < longTurnPage {
			return list, true, nil
		}
		last = store.MessageCursor(some[longTurnPage-1])
	}
	end, err := s.Ledger().TurnMessages(ctx, v.run.WorkspaceID, []string{p.ID}, messagesPerTurn)
	return append(list[:1], end...), false, err
}
