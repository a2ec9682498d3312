package store

import (
	"cmp"
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
	key     string   // columns that identify a row
	scope   string   // selects the rows of the workspace $1, or of the user $3 in it. Default: by workspace_id
	columns []string // columns that may have quotes
	isBytes bool     // the columns are bytes, and the table has their size
}

// erasedPlaces are the places whose texts agents or the server wrote. Their quotes are erased.
var erasedPlaces = []quotePlace{
	{table: "calls", key: "id", columns: []string{"args", "request", "undo", "result", "result_info", "message"}},
	{table: "messages", key: "id", columns: []string{"content", "metadata"}},
	{table: "runs", key: "id", columns: []string{"input", "output", "message"}},
	{table: "model_answers", key: "run_id, hash", columns: []string{"answer"}},
	{table: "model_requests", key: "run_id, number", columns: []string{"request", "left_out"}},
	{table: "wakes", key: "run_key", columns: []string{"input", "why"}},
	{table: "timers", key: "id", columns: []string{"name", "goal"}},
	{table: "agent_states", key: "agent_id", columns: []string{"slots"},
		scope: `agent_id IN (SELECT id FROM agents WHERE workspace_id = $1)`},
	{table: "approvals", key: "id", columns: []string{"args", "why", "preview", "reason", "comment"}},
	{table: "proposals", key: "id", columns: []string{"args", "preview", "reason", "comment"}},
	{table: "notifications", key: "id", columns: []string{"title", "body"}},
	{table: "note_suggestions", key: "id", columns: []string{"args", "reason"}},
	{table: "conversations", key: "id", columns: []string{"title"}},
	{table: "frames", key: "conversation_id, n", columns: []string{"body"},
		scope: `conversation_id IN (SELECT id FROM conversations WHERE workspace_id = $1)`},
	{table: "summaries", key: "thread_id, up_to", columns: []string{"message"}},
	{table: "scratchpads", key: "workspace_id, session_id", columns: []string{"items"}},
	{table: "session_files", key: "workspace_id, session_id, path", columns: []string{"body"}, isBytes: true},
	{table: "run_media", key: "run_id, operation_id", columns: []string{"name", "caption"},
		scope: `run_id IN (SELECT id FROM runs WHERE workspace_id = $1)`},
	{table: "script_runs", key: "run_key", columns: []string{"progress", "log"}},
	{table: "script_jobs", key: "id", columns: []string{"request", "question", "talk", "message"}},
	{table: "items", key: "agent_id, item_id", columns: []string{"title", "message"}},
	{table: "item_attempts", key: "agent_id, item_id, attempt", columns: []string{"message"},
		scope: `agent_id IN (SELECT id FROM agents WHERE workspace_id = $1)`},
	{table: "planned_calls", key: "run_id, ordinal", columns: []string{"title", "args", "preview"}},
	{table: "automation_failures", key: "agent_id", columns: []string{"message"}},
	{table: "requests", key: "id", columns: []string{"body"}, isBytes: true,
		scope: `workspace_id IN ('', $1)`}, // rows of older versions have no workspace
}

// EraseQuotes replaces the texts of a note in up to limit rows of each table of a workspace, also where they are
// shortened. It deletes recorded values of changes and full copies of tool outputs that contain them. It returns the
// number of rows by table; the map is empty when no row is left. It reads whole tables.
func (t NotesTx) EraseQuotes(ctx context.Context, workspace string, texts []string, limit int) (map[string]int64,
	error) {
	forms := quotedForms(texts)
	erased := map[string]int64{}
	if len(forms) == 0 {
		return erased, nil
	}
	for _, p := range erasedPlaces {
		n, err := t.erasePlace(ctx, p, workspace, forms, limit)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			erased[p.table] = n
		}
	}
	n, err := t.eraseChanges(ctx, workspace, forms, limit)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		erased["changes"] = n
	}
	if n, err = t.eraseOutputs(ctx, workspace, forms, limit); n > 0 {
		erased["outputs"] = n
	}
	return erased, err
}

// erasePlace replaces quotes in up to limit rows of a table and returns their number.
func (t NotesTx) erasePlace(ctx context.Context, p quotePlace, workspace string, forms []quoteForm,
	limit int) (int64, error) {
	rows, err := t.findQuotes(ctx, p, workspace, "", forms, limit)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		var set, where []string
		var args []any
		add := func(list *[]string, column string, v any) {
			args = append(args, v)
			*list = append(*list, column+" = $"+strconv.Itoa(len(args)))
		}
		for i, column := range p.columns {
			text := eraseForms(row.texts[i], forms)
			switch {
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
		if err := t.tx.exec(ctx, "UPDATE "+p.table+" SET "+strings.Join(set, ", ")+" WHERE "+
			strings.Join(where, " AND "), args...); err != nil {
			return 0, err
		}
	}
	return int64(len(rows)), nil
}

// quotingRow is a row that quotes a note.
type quotingRow struct {
	key   []any
	texts []string // the columns of its place
}

// findQuotes returns up to limit rows of a table that contain the start of one of the forms.
func (s Notes) findQuotes(ctx context.Context, p quotePlace, workspace, user string, forms []quoteForm,
	limit int) ([]quotingRow, error) {
	args := []any{workspace, limit}
	scope := cmp.Or(p.scope, "workspace_id = $1")
	if strings.Contains(scope, "$3") {
		args = append(args, user)
	}
	var conditions []string
	for _, f := range forms {
		args = append(args, f.start)
		for _, column := range p.columns {
			conditions = append(conditions, s.contains(column, len(args), p.isBytes))
		}
	}
	return queryAll(ctx, s.Snap, func(r scanner) (row quotingRow, err error) {
		row.key = make([]any, strings.Count(p.key, ",")+1)
		row.texts = make([]string, len(p.columns))
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
		err = r.Scan(dest...)
		for i := range bytes {
			if p.isBytes {
				row.texts[i] = string(bytes[i])
			}
		}
		return row, err
	}, "SELECT "+p.key+", "+strings.Join(p.columns, ", ")+" FROM "+p.table+" WHERE "+scope+" AND ("+
		strings.Join(conditions, " OR ")+") LIMIT $2", args...)
}

// contains returns the condition that a column contains the text of a parameter.
func (s Notes) contains(column string, parameter int, isBytes bool) string {
	p := "$" + strconv.Itoa(parameter)
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

// eraseChanges deletes the titles and fields of recorded changes that contain the start of one of the texts. They are
// deleted as a whole, because a shortened value can end within a quote.
func (t NotesTx) eraseChanges(ctx context.Context, workspace string, forms []quoteForm, limit int) (int64, error) {
	args := []any{workspace, limit, forgottenText}
	var inTitle, inFields []string
	for _, f := range forms {
		args = append(args, f.start)
		inTitle = append(inTitle, t.contains("title", len(args), false))
		inFields = append(inFields, t.contains("fields", len(args), false))
	}
	title, fields := strings.Join(inTitle, " OR "), strings.Join(inFields, " OR ")
	return t.tx.execCount(ctx, `UPDATE changes SET title = CASE WHEN `+title+` THEN $3 ELSE title END,
		fields = CASE WHEN `+fields+` THEN '' ELSE fields END WHERE (change_id, entity_id) IN (
		SELECT change_id, entity_id FROM changes WHERE workspace_id = $1 AND (`+title+` OR `+fields+`) LIMIT $2)`,
		args...)
}

// eraseOutputs deletes full copies of tool outputs that contain one of the texts.
func (t NotesTx) eraseOutputs(ctx context.Context, workspace string, forms []quoteForm, limit int) (int64, error) {
	args := []any{workspace, limit}
	var conditions []string
	for _, f := range forms {
		args = append(args, f.start)
		conditions = append(conditions, t.contains("body", len(args), true))
	}
	return t.tx.execCount(ctx, `DELETE FROM payloads WHERE workspace_id = $1 AND hash IN (SELECT hash FROM payloads
		WHERE workspace_id = $1 AND uses < 4 AND (`+strings.Join(conditions, " OR ")+`) LIMIT $2)`, args...)
}

// keptPlaces are the places whose texts belong to people, or configure agents. Their quotes are kept and named.
var keptPlaces = []struct {
	what string
	quotePlace
}{
	{"note", quotePlace{table: "notes", key: "id", columns: []string{"content", "source"}, scope: ofUser}},
	{"an earlier version of note", quotePlace{table: "note_versions", key: "note_id", columns: []string{"content"},
		scope: `note_id IN (SELECT id FROM notes WHERE ` + ofUser + `)`}},
	{"the config of agent", quotePlace{table: "agents", key: "id", columns: []string{"name", "config"}}},
	{"tool", quotePlace{table: "tools", key: "id", columns: []string{"name", "description", "spec"}}},
	{"script version", quotePlace{table: "scripts", key: "id", columns: []string{"source", "comment"}}},
	{"the id of an item of automation", quotePlace{table: "items", key: "agent_id", columns: []string{"item_id"}}},
	{"subscription", quotePlace{table: "subscriptions", key: "id", columns: []string{"name", "predicate"}}},
	{"category", quotePlace{table: "categories", key: "id", columns: []string{"name"}}},
	{"label", quotePlace{table: "labels", key: "id", columns: []string{"name"}}},
	{"task", quotePlace{table: "tasks", key: "id", columns: []string{"title", "description"}}},
	{"checklist", quotePlace{table: "checklists", key: "id", columns: []string{"title"}}},
	{"checklist item", quotePlace{table: "checklist_items", key: "id", columns: []string{"title"}}},
	{"time entry", quotePlace{table: "time_entries", key: "id", columns: []string{"note"}}},
	{"plan block", quotePlace{table: "plan_blocks", key: "id", columns: []string{"note"}}},
	{"rating", quotePlace{table: "ratings", key: "id", columns: []string{"note"}}},
	{"feedback", quotePlace{table: "feedback", key: "id", columns: []string{"comment"}}},
	{"mail", quotePlace{table: "emails", key: "message_id", columns: []string{"subject", "body"},
		scope: `inbox_id IN (SELECT id FROM inboxes WHERE workspace_id = $1 AND user_id IN ('', $3))`}},
	{"the attachment with the hash", quotePlace{table: "payloads", key: "hash", columns: []string{"body"},
		scope: `workspace_id = $1 AND uses >= 4`, isBytes: true}},
	{"the attachment name in conversation", quotePlace{table: "attachments", key: "conversation_id",
		columns: []string{"name"}, scope: `conversation_id IN (SELECT id FROM conversations WHERE workspace_id = $1)`}},
	{"the shell of", quotePlace{table: "shells", key: "thread_id", columns: []string{"state"}, isBytes: true}},
}

// ofUser selects the rows of the user $3.
const ofUser = `workspace_id = $1 AND user_id = $3`

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
