package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// forgottenText replaces the text of a forgotten note where it was quoted.
const forgottenText = "[forgotten]"

// MinQuote is the length in bytes from which the text of a note is searched for. A shorter text may occur by chance.
const MinQuote = 12

// quotePlace is a table that may quote a note.
type quotePlace struct {
	table   string
	key     string     // columns that identify a row
	scope   quoteScope // selects the rows that may quote a user's note
	columns []string   // columns that may have quotes
	isBytes bool       // the columns are bytes, and the table has their size
}

// erasedPlaces are the places whose texts agents or the server wrote. Their quotes are erased.
var erasedPlaces = []quotePlace{
	{table: "calls", key: "id", scope: (*quoteQuery).calls,
		columns: []string{"args", "request", "undo", "result", "result_info", "message"}},
	{table: "messages", key: "id", scope: anyOf(ofRuns("run_id"), ofSummaries),
		columns: []string{"content", "metadata"}},
	{table: "runs", key: "id", scope: ofRuns("id"), columns: []string{"input", "output", "message"}},
	{table: "model_answers", key: "run_id, hash", scope: ofRuns("run_id"), columns: []string{"answer"}},
	{table: "model_requests", key: "run_id, number", scope: ofRuns("run_id"), columns: []string{"request", "left_out"}},
	{table: "wakes", key: "run_key", scope: anyOf(ofUser, ofRuns("run_id")), columns: []string{"input", "why"}},
	{table: "timers", key: "id", scope: ofUser, columns: []string{"name", "goal"}},
	{table: "agent_states", key: "agent_id", columns: []string{"slots"},
		scope: where(`agent_id IN (SELECT id FROM agents WHERE workspace_id = $1)`)},
	{table: "approvals", key: "id", scope: allOf(visibleToUser, ofCalls("call_id")),
		columns: []string{"args", "why", "preview", "reason", "comment"}},
	{table: "proposals", key: "id", scope: allOf(visibleToUser, anyOf(ofUser, ofRuns("run_id"))),
		columns: []string{"args", "preview", "reason", "comment"}},
	{table: "notifications", key: "id", scope: ofUser, columns: []string{"title", "body"}},
	{table: "note_suggestions", key: "id", scope: ofUser, columns: []string{"args", "reason"}},
	{table: "conversations", key: "id", scope: ofUser, columns: []string{"title"}},
	{table: "frames", key: "conversation_id, n", scope: anyOf(ofConversations, ofRuns("turn_id")),
		columns: []string{"body"}},
	{table: "summaries", key: "thread_id, up_to", scope: anyOf(ofUser, ofConversations), columns: []string{"message"}},
	{table: "scratchpads", key: "workspace_id, session_id", scope: ofSessions("session_id"),
		columns: []string{"items"}},
	{table: "session_files", key: "workspace_id, session_id, path", scope: ofSessions("session_id"),
		columns: []string{"body"}, isBytes: true},
	{table: "run_media", key: "run_id, operation_id", scope: ofRuns("run_id"), columns: []string{"name", "caption"}},
	{table: "script_runs", key: "run_key", scope: ofRuns("run_id"), columns: []string{"progress", "log"}},
	{table: "script_jobs", key: "id", scope: anyOf(ofUser, ofRuns("run_id")),
		columns: []string{"request", "question", "talk", "message"}},
	{table: "items", key: "agent_id, item_id", scope: ofRuns("first_run", "last_run", "attempt_run"),
		columns: []string{"title", "message"}},
	{table: "item_attempts", key: "agent_id, item_id, attempt", scope: ofRuns("first_run", "last_run"),
		columns: []string{"message"}},
	{table: "planned_calls", key: "run_id, ordinal", scope: ofRuns("run_id"),
		columns: []string{"title", "args", "preview"}},
	{table: "automation_failures", key: "agent_id", scope: ofRuns("run_id"), columns: []string{"message"}},
	{table: "requests", key: "id", scope: ofRequests, columns: []string{"body"}, isBytes: true},
	{table: "changes", key: "change_id, entity_id", scope: ofChanges, columns: []string{"title", "fields"}},
	{table: "payloads", key: "workspace_id, hash", scope: ofOutputs, columns: []string{"body"}, isBytes: true},
}

// ofChanges selects the changes that the user's runs made, or that are about the user's entries.
func ofChanges(q *quoteQuery) string {
	return anyOf(ofUser, where("workspace_id = $1 AND owner = "+q.bind(q.user)), ofRuns("run_id"))(q)
}

// ofOutputs selects the full copies of outputs of the user's calls.
func ofOutputs(q *quoteQuery) string {
	called := `EXISTS (SELECT 1 FROM calls WHERE ` + q.contains("result_info", "payloads.hash", false) + ` AND ` +
		q.calls() + `)`
	return "workspace_id = $1 AND uses < 4 AND (" +
		anyOf(ofPrivateUser, allOf(where("private_to = ''"), where(called)))(q) + ")"
}

// ofSummaries selects the messages that summarize the user's runs or conversations.
func ofSummaries(q *quoteQuery) string {
	return "id IN (SELECT message_id FROM summaries WHERE " + anyOf(ofUser, ofConversations)(q) + ")"
}

// ofRequests selects the user's requests. Rows of older versions have no user, and perhaps no workspace.
func ofRequests(q *quoteQuery) string {
	return "workspace_id IN ('', $1) AND user_id IN ('', " + q.bind(q.user) + ")"
}

// EraseQuotes replaces the texts of a user's note in up to limit rows of each table, also where they are shortened. It
// deletes recorded values of changes, and full copies of tool outputs, that contain them. It returns the number of rows
// by table; the map is empty when no row is left. It leaves rows of other users alone. It reads whole tables.
func (t NotesTx) EraseQuotes(ctx context.Context, workspace, user string, texts []string,
	limit int) (map[string]int64, error) {
	forms := quotedForms(texts)
	erased := map[string]int64{}
	if len(forms) == 0 {
		return erased, nil
	}
	for _, p := range erasedPlaces {
		rows, err := t.findQuotes(ctx, p, workspace, user, forms, limit)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if err := t.eraseRow(ctx, p, row); err != nil {
				return nil, err
			}
		}
		if len(rows) > 0 {
			erased[p.table] = int64(len(rows))
		}
	}
	return erased, nil
}

// eraseRow replaces the quotes in a row of a table.
func (t NotesTx) eraseRow(ctx context.Context, p quotePlace, row quotingRow) error {
	if p.table == "payloads" {
		return t.tx.exec(ctx, `DELETE FROM payloads WHERE workspace_id = $1 AND hash = $2`, row.key...)
	}
	var set, where []string
	var args []any
	add := func(list *[]string, column string, v any) {
		args = append(args, v)
		*list = append(*list, column+" = $"+strconv.Itoa(len(args)))
	}
	for i, column := range p.columns {
		text := row.erased[i]
		switch {
		case p.table == "changes" && text == row.texts[i]:
		case p.table == "changes" && column == "fields":
			add(&set, column, "") // as a whole, because a shortened value can end within a quote
		case p.table == "changes":
			add(&set, column, forgottenText)
		case !p.isBytes:
			add(&set, column, text)
		case p.table == "session_files":
			add(&set, "size", len(text))
			add(&set, column, []byte(text))
		default:
			add(&set, column, []byte(text))
		}
	}
	for i, column := range strings.Split(p.key, ", ") {
		add(&where, column, row.key[i])
	}
	return t.tx.exec(ctx, "UPDATE "+p.table+" SET "+strings.Join(set, ", ")+" WHERE "+strings.Join(where, " AND "),
		args...)
}

// quotingRow is a row that quotes a note.
type quotingRow struct {
	key    []any
	texts  []string // the columns of its place
	erased []string // the same without quotes
}

// findQuotes returns up to limit rows of a table that quote the note with these forms.
func (s Notes) findQuotes(ctx context.Context, p quotePlace, workspace, user string, forms []quoteForm,
	limit int) ([]quotingRow, error) {
	q := s.newQuoteQuery(workspace, user)
	scope := p.scope(q)
	found := q.anyContains(findAnchors(forms), p.isBytes, p.columns...)
	var rows []quotingRow
	_, err := queryAll(ctx, s.Snap, func(r scanner) (struct{}, error) {
		if len(rows) == limit {
			return struct{}{}, nil
		}
		row, err := p.scanRow(r)
		for i, text := range row.texts {
			row.erased = append(row.erased, eraseQuotes(text, forms, p.isStructured(p.columns[i])))
		}
		if !slices.Equal(row.texts, row.erased) {
			rows = append(rows, row)
		}
		return struct{}{}, err
	}, "SELECT "+p.key+", "+strings.Join(p.columns, ", ")+" FROM "+p.table+" WHERE ("+scope+") AND "+found, q.args...)
	return rows, err
}

// isStructured reports whether a column has JSON in a format of the server.
func (p quotePlace) isStructured(column string) bool {
	return slices.Contains(structuredColumns, column) && (!p.isBytes || p.table == "requests")
}

// scanRow scans the key and the columns of a place.
func (p quotePlace) scanRow(r scanner) (quotingRow, error) {
	row := quotingRow{key: make([]any, strings.Count(p.key, ",")+1), texts: make([]string, len(p.columns))}
	var dest []any
	for i := range row.key {
		dest = append(dest, &row.key[i])
	}
	bytes := make([][]byte, len(p.columns))
	for i := range row.texts {
		if p.isBytes {
			dest = append(dest, &bytes[i])
		} else {
			dest = append(dest, &row.texts[i])
		}
	}
	err := r.Scan(dest...)
	for i := range bytes {
		if p.isBytes {
			row.texts[i] = string(bytes[i])
		}
	}
	return row, err
}

// contains returns the condition that a column contains the text of the parameter p.
func (s Notes) contains(column, p string, isBytes bool) string {
	switch isPostgres := s.db.Engine() == "postgres"; {
	case isPostgres && isBytes:
		return "position(convert_to(" + p + ", 'UTF8') IN " + column + ") > 0"
	case isPostgres:
		return "strpos(" + column + ", " + p + ") > 0"
	case isBytes:
		return "instr(" + column + ", CAST(" + p + " AS BLOB)) > 0"
	}
	return "instr(" + column + ", " + p + ") > 0"
}

// keptPlaces are the places whose texts belong to people, or configure agents. Their quotes are kept and named.
var keptPlaces = []struct {
	what string
	quotePlace
}{
	{"note", quotePlace{table: "notes", key: "id", columns: []string{"content", "source"}, scope: ofUser}},
	{"an earlier version of note", quotePlace{table: "note_versions", key: "note_id", columns: []string{"content"},
		scope: func(q *quoteQuery) string { return "note_id IN (SELECT id FROM notes WHERE " + ofUser(q) + ")" }}},
	{"the config of agent", quotePlace{table: "agents", key: "id", columns: []string{"name", "config"},
		scope: ofWorkspace}},
	{"tool", quotePlace{table: "tools", key: "id", columns: []string{"name", "description", "spec"},
		scope: ofWorkspace}},
	{"script version", quotePlace{table: "scripts", key: "id", columns: []string{"source", "comment"},
		scope: ofWorkspace}},
	{"the id of an item of automation", quotePlace{table: "items", key: "agent_id", columns: []string{"item_id"},
		scope: ofWorkspace}},
	{"subscription", quotePlace{table: "subscriptions", key: "id", columns: []string{"name", "predicate"},
		scope: anyOf(ofUser, where("workspace_id = $1 AND user_id = ''"))}},
	{"category", quotePlace{table: "categories", key: "id", columns: []string{"name"}, scope: ofWorkspace}},
	{"label", quotePlace{table: "labels", key: "id", columns: []string{"name"}, scope: ofWorkspace}},
	{"task", quotePlace{table: "tasks", key: "id", columns: []string{"title", "description"}, scope: ofWorkspace}},
	{"checklist", quotePlace{table: "checklists", key: "id", columns: []string{"title"}, scope: ofWorkspace}},
	{"checklist item", quotePlace{table: "checklist_items", key: "id", columns: []string{"title"},
		scope: ofWorkspace}},
	{"time entry", quotePlace{table: "time_entries", key: "id", columns: []string{"note"}, scope: ofUser}},
	{"plan block", quotePlace{table: "plan_blocks", key: "id", columns: []string{"note"},
		scope: func(q *quoteQuery) string { return "plan_id IN (SELECT id FROM day_plans WHERE " + ofUser(q) + ")" }}},
	{"rating", quotePlace{table: "ratings", key: "id", columns: []string{"note"}, scope: ofUser}},
	{"feedback", quotePlace{table: "feedback", key: "id", columns: []string{"comment"}, scope: ofUser}},
	{"mail", quotePlace{table: "emails", key: "message_id", columns: []string{"subject", "body"},
		scope: func(q *quoteQuery) string {
			return "inbox_id IN (SELECT id FROM inboxes WHERE workspace_id = $1 AND user_id IN ('', " +
				q.bind(q.user) + "))"
		}}},
	{"the attachment with the hash", quotePlace{table: "payloads", key: "hash", columns: []string{"body"},
		scope: func(q *quoteQuery) string {
			return "workspace_id = $1 AND uses >= 4 AND hash IN (SELECT hash FROM attachments WHERE " +
				ofConversations(q) + ")"
		}, isBytes: true}},
	{"the attachment name in conversation", quotePlace{table: "attachments", key: "conversation_id",
		columns: []string{"name"}, scope: ofConversations}},
	{"the shell of", quotePlace{table: "shells", key: "thread_id", columns: []string{"state"},
		scope: ofSessions("thread_id"), isBytes: true}},
}

// ListKeptQuotes names up to limit rows of each place whose quotes of the texts of a note are kept. It leaves out the
// note itself. It reads whole tables.
func (s Notes) ListKeptQuotes(ctx context.Context, workspace string, n reeve.Note, texts []string,
	limit int) (list []string, err error) {
	forms := quotedForms(texts)
	if len(forms) == 0 {
		return nil, nil
	}
	for _, p := range keptPlaces {
		rows, err := s.findQuotes(ctx, p.quotePlace, workspace, n.UserID, forms, limit)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			name := fmt.Sprint(append([]any{p.what, " "}, row.key...)...)
			if row.key[0] != n.ID && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		if len(rows) == limit {
			list = append(list, "more rows of "+p.table)
		}
	}
	return list, nil
}
