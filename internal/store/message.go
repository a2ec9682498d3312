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

// AppendMessage writes what was said: a thought, an observation, a message of a person, a summary or a note of the
// system.
func (t LedgerTx) AppendMessage(ctx context.Context, m reeve.Message) error {
	return t.tx.exec(ctx, `INSERT INTO messages (`+messageColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, m.ID,
		m.WorkspaceID, m.ThreadID,
		m.AgentID, m.RunID, string(m.Kind), reeve.SanitizeText(m.Content), reeve.SanitizeText(string(m.Metadata)),
		reeve.Millis(t.now))
}

// A log is what was said and done in a thread or a run: messages and calls, in the order of their ids. The result of a
// call has its place right behind the call, whenever it came. A place in a log is the id of an entry, or that of a call
// with resultMark for its result.

const resultMark = "~" // comes after no mark, and before the next id

// MessageCursor returns the position of an entry in its log, to be passed as after when the next page is read.
func MessageCursor(m reeve.Message) string {
	if m.Kind == reeve.ToolResult {
		return m.ActionID + resultMark
	}
	return m.ID
}

// IsMessageCursor tells whether s has the form of a place in a log.
func IsMessageCursor(s string) bool { return reeve.IsID(strings.TrimSuffix(s, resultMark)) }

// entryColumns are what a log shows of a call, and messageEntry what it shows of a message, in the same order.
const (
	entryColumns = `id, workspace_id, thread_id, agent_id, run_id, 'action' AS kind, args, request, created_at,
		COALESCE(operation_id, ''), result_id, result, result_info, updated_at`
	messageEntry = messageColumns + `, '', '', '', '', 0`
)

// scanEntries reads the entries that a row of a log makes: one of a message, and of a call also its result.
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

// logFrom reads rows of a workspace ($1), of a thread or a run ($2), from an id on ($3), the first of them ($4). Each
// table is read in the order of its index.
func logFrom(which string) string {
	part := func(columns, table string) string {
		return `SELECT * FROM (SELECT ` + columns + ` FROM ` + table + ` WHERE ` + which +
			` AND workspace_id || '' = $1 AND id >= $3 ORDER BY id LIMIT $4) AS part`
	}
	return part(messageEntry, "messages") + ` UNION ALL ` + part(entryColumns, "calls") + ` ORDER BY id LIMIT $4`
}

var (
	threadLog = logFrom(`thread_id = $2`)
	runLog    = logFrom(`run_id = $2 AND run_id <> ''`)
)

// behind gives the entries behind a place, up to a limit, of rows that were read from there on.
func behind(rows [][]reeve.Message, after string, limit int) []reeve.Message {
	log := slices.Concat(rows...)
	log = slices.DeleteFunc(log, func(m reeve.Message) bool { return MessageCursor(m) <= after })
	return log[:min(limit, len(log))]
}

// listLog reads entries as they are shown.
func (s Ledger) listLog(ctx context.Context, query, workspace, of, after string, limit int) ([]reeve.Message, error) {
	// One row more than the limit: the first may be that which was read last.
	rows, err := all(ctx, s.Snap, scanEntries, query, workspace, of, strings.TrimSuffix(after, resultMark), limit+1)
	if err != nil {
		return nil, err
	}
	list := behind(rows, after, limit)
	return list, s.SetPrevious(ctx, list)
}

// ListMessages reads a page of a thread as it is shown, oldest first, behind a place.
func (s Ledger) ListMessages(ctx context.Context, workspace, thread, after string, limit int) ([]reeve.Message, error) {
	return s.listLog(ctx, threadLog, workspace, thread, after, limit)
}

// ListRunMessages reads a page of what was written in a run as it is shown, oldest first, behind a place.
func (s Ledger) ListRunMessages(ctx context.Context, workspace, run, after string, limit int) ([]reeve.Message, error) {
	return s.listLog(ctx, runLog, workspace, run, after, limit)
}

// RunMessages reads what was written in a run, oldest first, behind a place. It fails if a row cannot be read: nobody
// acts on half of a log.
func (s Ledger) RunMessages(ctx context.Context, workspace, run, after string, limit int) ([]reeve.Message, error) {
	rows, err := all(ctx, s.Snap, scanEntries, runLog, workspace, run, strings.TrimSuffix(after, resultMark), limit+1)
	return behind(rows, after, limit), err
}

// AllRunMessages reads all that was written in a run, oldest first.
func (s Ledger) AllRunMessages(ctx context.Context, workspace, run string) ([]reeve.Message, error) {
	var list []reeve.Message
	for after := ""; ; {
		page, err := s.RunMessages(ctx, workspace, run, after, somePage)
		if list = append(list, page...); err != nil || len(page) < somePage {
			return list, err
		}
		after = MessageCursor(page[somePage-1])
	}
}

// somePage is how many entries are read at once.
const somePage = 1000

// SetPrevious sets PrevID of entries, of which those of a thread stand in order: each to the id of the entry before it
// in its thread.
func (s Ledger) SetPrevious(ctx context.Context, list []reeve.Message) error {
	threads := map[string][]*reeve.Message{}
	for i := range list {
		threads[list[i].ThreadID] = append(threads[list[i].ThreadID], &list[i])
	}
	for thread, entries := range threads {
		from, to := rowOf(entries[0]), rowOf(entries[len(entries)-1])
		before, err := s.entryBefore(ctx, thread, from)
		if err != nil {
			return err
		}
		rows, err := all(ctx, s.Snap, scanEntryIDs, `SELECT id, '' FROM messages WHERE thread_id = $1 AND id >= $2 AND id <= $3
			UNION ALL SELECT id, result_id FROM calls WHERE thread_id = $1 AND id >= $2 AND id <= $3 ORDER BY id`, thread, from, to)
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

// rowOf is the id of the row that an entry is read from.
func rowOf(m *reeve.Message) string {
	if m.Kind == reeve.ToolResult {
		return m.ActionID
	}
	return m.ID
}

// entryIDs are the ids of the entries that a row makes: of a message, or of a call and its result, if it has one.
type entryIDs struct{ id, result string }

func scanEntryIDs(r scanner) (e entryIDs, err error) { return e, r.Scan(&e.id, &e.result) }

// entryBefore finds the id of the last entry of a thread before an id; empty if there is none.
func (s Ledger) entryBefore(ctx context.Context, thread, id string) (string, error) {
	said, _, err := one(ctx, s.Snap, value[string],
		`SELECT id FROM messages WHERE thread_id = $1 AND id < $2 ORDER BY id DESC LIMIT 1`, thread, id)
	if err != nil {
		return "", err
	}
	c, _, err := one(ctx, s.Snap, scanEntryIDs,
		`SELECT id, result_id FROM calls WHERE thread_id = $1 AND id < $2 ORDER BY id DESC LIMIT 1`, thread, id)
	if said > c.id {
		return said, err
	}
	return cmp.Or(c.result, c.id), err
}

// TurnMessages reads the last messages of some runs, oldest first. The order is said so that no index is taken for it:
// that of all ids has every row that there ever was.
func (s Ledger) TurnMessages(ctx context.Context, workspace string, runs []string, limit int) ([]reeve.Message, error) {
	rows, err := among(ctx, s.Snap, scanEntries, `SELECT * FROM (SELECT `+messageEntry+` FROM messages WHERE run_id IN (?) AND run_id <> ''
		UNION ALL SELECT `+entryColumns+` FROM calls WHERE run_id IN (?) AND run_id <> '') AS log ORDER BY id || '' DESC LIMIT $1`, runs, limit)
	list := slices.Concat(rows...)
	slices.SortFunc(list, func(a, b reeve.Message) int { return cmp.Compare(MessageCursor(a), MessageCursor(b)) })
	list = list[max(0, len(list)-limit):]
	return slices.DeleteFunc(list, func(m reeve.Message) bool { return m.WorkspaceID != workspace }), err
}

// Notices reads the last things that an agent was told between its turns, from one message on and before another,
// oldest first.
func (s Ledger) Notices(ctx context.Context, workspace, thread, from, before string,
	limit int) ([]reeve.Message, error) {
	list, err := all(ctx, s.Snap, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE thread_id = $2 AND run_id = '' AND kind = 'observation' AND workspace_id = $1
		AND id >= $3 AND id < $4 ORDER BY id DESC LIMIT $5`, workspace, thread, from, before, limit)
	slices.Reverse(list)
	return list, err
}

// InsertEvents writes what a change notifies about.
func (t LedgerTx) InsertEvents(ctx context.Context, workspace, agent, operation string, tokens []reeve.Token) error {
	rows := make([][]any, len(tokens))
	for i, k := range tokens {
		if err := k.Check(); err != nil {
			return err
		}
		rows[i] = []any{t.NewID(reeve.PrefixEvent), workspace, string(k.Class), k.Name, agent, operation,
			reeve.Millis(t.now)}
	}
	return t.tx.insert(`INSERT INTO events (id, workspace_id, class, name, agent_id, operation_id, created_at) VALUES (?)`, rows, t.tx.unheard(ctx))
}
