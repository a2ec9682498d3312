package store

import (
	"context"
	"slices"

	"reeve"
)

// Link says of messages, of which those of a thread are in order, which came before each in its thread. That is so by their ids, whichever was written first: so a thread is one chain, and whoever
// follows it back comes to its beginning. Nobody but people asks.
func (s *Snap) Link(ctx context.Context, list []reeve.Message) error {
	threads := map[string][]*reeve.Message{}
	for i := range list {
		m := &list[i]
		threads[m.ThreadID] = append(threads[m.ThreadID], m)
	}
	for thread, some := range threads {
		if err := s.link(ctx, thread, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snap) link(ctx context.Context, thread string, some []*reeve.Message) error {
	first, last := some[0].ID, some[len(some)-1].ID
	ids, err := all(ctx, s, value[string], threadIDs, thread, first, last)
	if err != nil {
		return err
	}
	before, _, err := one(ctx, s, value[string], `SELECT `+messageBefore("$1", " AND m.id < $2"), thread, first)
	if err != nil {
		return err
	}
	if isAnswer(some[0]) { // its call has the same place in the order, and is right before it
		before, ids = some[0].ActionID, append(ids, first)
	}
	slices.Sort(ids)
	at := map[string]string{}
	for _, id := range ids {
		at[id], before = before, id
	}
	for _, m := range some {
		m.PrevID = at[m.ID]
	}
	return nil
}

// isAnswer tells of a message whether it is the answer to a call that is told in its operation's row.
func isAnswer(m *reeve.Message) bool {
	return m.Kind == reeve.ToolResult && m.ID == reeve.AnswerTo(m.ActionID)
}

// threadIDs reads the ids of the messages of a thread ($1) from one ($2) to another ($3).
const threadIDs = `SELECT id FROM messages WHERE thread_id = $1 AND id >= $2 AND id <= $3
	UNION ALL SELECT call_id FROM operations WHERE thread_id = $1 AND ` + isTold + ` AND ` + isPair + ` AND call_id >= $2 AND call_id <= $3
	UNION ALL SELECT result_id FROM operations WHERE thread_id = $1 AND ` + isTold + ` AND ` + isPair + ` AND call_id >= $2 AND call_id <= $3`
