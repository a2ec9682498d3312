package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"reeve"
)

const messageColumns = `id, workspace_id, thread_id, agent_id, run_id, kind, content, metadata, created_at`

func scanMessage(r scanner) (m reeve.Message, err error) {
	defer wrapCorrupt("messages", &m.ID, &err)
	var meta string
	var created int64
	if err := r.Scan(&m.ID, &m.WorkspaceID, &m.ThreadID, &m.AgentID, &m.RunID, &m.Kind, &m.Content, &meta,
		&created); err != nil {
		return m, err
	}
	m.CreatedAt = reeve.FromMillis(created)
	m.Metadata, err = rawJSON("metadata", meta)
	return m, err
}

// AppendMessage inserts a message. Its time is the time of the transaction.
func (t LedgerTx) AppendMessage(ctx context.Context, m reeve.Message) error {
	if m.RunID != "" {
		t.tx.Announce(m.WorkspaceID, TopicRuns, m.RunID, m.RunID)
	}
	return t.tx.exec(ctx, `INSERT INTO messages (`+messageColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, m.ID,
		m.WorkspaceID, m.ThreadID,
		m.AgentID, m.RunID, string(m.Kind), reeve.SanitizeText(m.Content), reeve.SanitizeText(string(m.Metadata)),
		reeve.Millis(t.now))
}

// The log of a thread or a run consists of its messages and calls, ordered by id. The result of a call is an entry of
// its own directly after the call, regardless of when it arrived. The cursor of an entry is its id. The cursor of a
// result is the id of its call followed by resultMark.

const resultMark = "~" // makes a cursor sort after the call's id and before the next id

// MessageCursor returns the cursor of an entry. Pass it as after to read the next page.
func MessageCursor(m reeve.Message) string {
	if m.Kind == reeve.ToolResult {
		return m.ActionID + resultMark
	}
	return m.ID
}

// IsMessageCursor reports whether s has the form of a cursor.
func IsMessageCursor(s string) bool { return reeve.IsID(strings.TrimSuffix(s, resultMark)) }

// callEntryColumns and messageEntryColumns are the columns of log entries in the order in which scanEntries reads them.
const (
	callEntryColumns = `id, workspace_id, thread_id, agent_id, run_id, 'action' AS kind, args, request, created_at,
		COALESCE(operation_id, ''), result_id, result, result_info, updated_at`
	messageEntryColumns = messageColumns + `, '', '', '', '', 0`
)

// scanEntries returns the log entries of a row: one for a message, or the call and its result if it has one.
func scanEntries(r scanner) (entries []reeve.Message, err error) {
	var m, result reeve.Message
	table, column := "messages", "metadata"
	defer func() { wrapCorrupt(table, &m.ID, &err) }()
	var meta, info string
	var created, updated int64
	if err := r.Scan(&m.ID, &m.WorkspaceID, &m.ThreadID, &m.AgentID, &m.RunID, &m.Kind, &m.Content, &meta, &created,
		&m.OperationID, &result.ID, &result.Content, &info, &updated); err != nil {
		return nil, err
	}
	if m.Kind == reeve.Action {
		table, column = "calls", "request"
	}
	m.CreatedAt = reeve.FromMillis(created)
	if m.Metadata, err = rawJSON(column, meta); err != nil {
		return nil, err
	}
	entries = []reeve.Message{m}
	if result.ID != "" {
		id, content := result.ID, result.Content
		result = m
		result.ID, result.Kind, result.ActionID, result.Content = id, reeve.ToolResult, m.ID, content
		result.CreatedAt = reeve.FromMillis(updated)
		if result.Metadata, err = rawJSON("result_info", info); err != nil {
			return nil, err
		}
		entries = append(entries, result)
	}
	return entries, nil
}

// buildLogQuery returns the query for the rows of a log. Its parameters are the workspace ($1), the thread or run ($2),
// the first id ($3) and the limit ($4). Each table is read in the order of its index.
func buildLogQuery(which, calls string) string {
	part := func(columns, from string) string {
		return `SELECT * FROM (SELECT ` + columns + ` FROM ` + from +
			` AND workspace_id || '' = $1 AND id >= $3 ORDER BY id LIMIT $4) AS part`
	}
	return part(messageEntryColumns, `messages WHERE `+which) + ` UNION ALL ` +
		part(callEntryColumns, `calls WHERE `+calls) + ` ORDER BY id LIMIT $4`
}

const (
	ofThread = `thread_id = $2`
	ofRun    = `run_id = $2 AND run_id <> ''`
)

// entriesAfter returns up to limit entries of the rows whose cursors are greater than after.
func entriesAfter(rows [][]reeve.Message, after string, limit int) []reeve.Message {
	log := slices.Concat(rows...)
	log = slices.DeleteFunc(log, func(m reeve.Message) bool { return MessageCursor(m) <= after })
	return log[:min(limit, len(log))]
}

// listLog returns a page of a log with PrevID set.
func (s Ledger) listLog(ctx context.Context, which, workspace, owner, after string, limit int) ([]reeve.Message,
	error) {
	list, err := s.readLog(ctx, which, workspace, owner, after, limit)
	if err != nil {
		return nil, err
	}
	return list, s.SetPrevious(ctx, list)
}

// readLog returns a page of a log. It leaves out the calls that the viewer does not see.
func (s Ledger) readLog(ctx context.Context, which, workspace, owner, after string, limit int) ([]reeve.Message,
	error) {
	// One row more than the limit, because the first row may hold the last entry of the previous page.
	calls, args := s.onlyVisible(`private_to`, which,
		[]any{workspace, owner, strings.TrimSuffix(after, resultMark), limit + 1})
	rows, err := queryAll(ctx, s.Snap, scanEntries, buildLogQuery(which, calls), args...)
	return entriesAfter(rows, after, limit), err
}

// ListMessages returns a page of a thread's log after a cursor, oldest first, with PrevID set.
func (s Ledger) ListMessages(ctx context.Context, workspace, thread, after string, limit int) ([]reeve.Message, error) {
	return s.listLog(ctx, ofThread, workspace, thread, after, limit)
}

// ListRunMessages returns a page of a run's log after a cursor, oldest first, with PrevID set.
func (s Ledger) ListRunMessages(ctx context.Context, workspace, run, after string, limit int) ([]reeve.Message, error) {
	return s.listLog(ctx, ofRun, workspace, run, after, limit)
}

// RunMessages returns a page of a run's log after a cursor, oldest first. PrevID is not set. It fails if a row is
// corrupt.
func (s Ledger) RunMessages(ctx context.Context, workspace, run, after string, limit int) ([]reeve.Message, error) {
	return s.readLog(ctx, ofRun, workspace, run, after, limit)
}

// AllRunMessages returns the whole log of a run, oldest first.
func (s Ledger) AllRunMessages(ctx context.Context, workspace, run string) ([]reeve.Message, error) {
	var list []reeve.Message
	for after := ""; ; {
		page, err := s.RunMessages(ctx, workspace, run, after, runMessagesPage)
		if list = append(list, page...); err != nil || len(page) < runMessagesPage {
			return list, err
		}
		after = MessageCursor(page[runMessagesPage-1])
	}
}

// runMessagesPage is the number of entries that AllRunMessages reads at once.
const runMessagesPage = 1000

// SetPrevious sets PrevID of each entry to the id of the entry before it in its thread. Entries of the same thread must
// be in order.
func (s Ledger) SetPrevious(ctx context.Context, list []reeve.Message) error {
	threads := map[string][]*reeve.Message{}
	for i := range list {
		threads[list[i].ThreadID] = append(threads[list[i].ThreadID], &list[i])
	}
	for thread, entries := range threads {
		from, to := entryRowID(entries[0]), entryRowID(entries[len(entries)-1])
		before, err := s.entryBefore(ctx, thread, from)
		if err != nil {
			return err
		}
		calls, args := s.onlyVisible(`private_to`, `thread_id = $1 AND id >= $2 AND id <= $3`, []any{thread, from, to})
		rows, err := queryAll(ctx, s.Snap, scanEntryIDs, `SELECT id, '' FROM messages WHERE thread_id = $1 AND id >= $2
			AND id <= $3
			UNION ALL SELECT id, result_id FROM calls WHERE `+calls+` ORDER BY id`, args...)
		if err != nil {
			return err
		}
		previous := map[string]string{}
		for _, r := range rows {
			previous[r.id], before = before, r.id
			if r.result != "" {
				previous[r.result], before = r.id, r.result
			}
		}
		for _, m := range entries {
			m.PrevID = previous[m.ID]
		}
	}
	return nil
}

// entryRowID returns the id of the row that contains an entry.
func entryRowID(m *reeve.Message) string {
	if m.Kind == reeve.ToolResult {
		return m.ActionID
	}
	return m.ID
}

// entryIDs are the ids of the entries in one row. result is empty for a message and for a call without a result.
type entryIDs struct{ id, result string }

func scanEntryIDs(r scanner) (e entryIDs, err error) { return e, r.Scan(&e.id, &e.result) }

// entryBefore returns the id of the last entry of a thread whose row comes before id, or "" if there is none.
func (s Ledger) entryBefore(ctx context.Context, thread, id string) (string, error) {
	message, _, err := queryOne(ctx, s.Snap, scanValue[string],
		`SELECT id FROM messages WHERE thread_id = $1 AND id < $2 ORDER BY id DESC LIMIT 1`, thread, id)
	if err != nil {
		return "", err
	}
	calls, args := s.onlyVisible(`private_to`, `thread_id = $1 AND id < $2`, []any{thread, id})
	c, _, err := queryOne(ctx, s.Snap, scanEntryIDs,
		`SELECT id, result_id FROM calls WHERE `+calls+` ORDER BY id DESC LIMIT 1`, args...)
	if message > c.id {
		return message, err
	}
	return cmp.Or(c.result, c.id), err
}

// TurnMessages returns the last entries of some runs, oldest first. ORDER BY id || ” keeps the planner from using the
// index on all ids, which would read the whole table.
func (s Ledger) TurnMessages(ctx context.Context, workspace string, runs []string, limit int) ([]reeve.Message, error) {
	rows, err := queryIn(ctx, s.Snap, scanEntries, `SELECT * FROM (SELECT `+messageEntryColumns+` FROM messages
		WHERE run_id IN (?) AND run_id <> ''
		UNION ALL SELECT `+callEntryColumns+` FROM calls WHERE run_id IN (?) AND run_id <> '') AS log
		ORDER BY id || '' DESC LIMIT $1`, runs, limit)
	list := slices.Concat(rows...)
	slices.SortFunc(list, func(a, b reeve.Message) int { return cmp.Compare(MessageCursor(a), MessageCursor(b)) })
	list = list[max(0, len(list)-limit):]
	return slices.DeleteFunc(list, func(m reeve.Message) bool { return m.WorkspaceID != workspace }), err
}

// Notices returns the last observations that were added to a thread between its turns, from one message to before
// another, oldest first.
func (s Ledger) Notices(ctx context.Context, workspace, thread, from, before string,
	limit int) ([]reeve.Message, error) {
	list, err := queryAll(ctx, s.Snap, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE thread_id = $2
		AND run_id = '' AND kind = 'observation' AND workspace_id = $1
		AND id >= $3 AND id < $4 ORDER BY id DESC LIMIT $5`, workspace, thread, from, before, limit)
	slices.Reverse(list)
	return list, err
}

// InsertEvents inserts an event for each token of a change.
func (t LedgerTx) InsertEvents(ctx context.Context, workspace, agent, operation string, tokens []reeve.Token) error {
	rows := make([][]any, len(tokens))
	for i, k := range tokens {
		if err := k.Check(); err != nil {
			return err
		}
		rows[i] = []any{t.NewID(reeve.PrefixEvent), workspace, string(k.Class), k.Name, agent, operation,
			reeve.Millis(t.now)}
	}
	return t.tx.insertRows(`INSERT INTO events (id, workspace_id, class, name, agent_id, operation_id, created_at)
		VALUES (?)`, rows, t.tx.execFunc(ctx))
}
