package store

import (
	"context"
	"strconv"
	"strings"
)

// forgottenText replaces the text of a forgotten note where it was quoted.
const forgottenText = "[forgotten]"

// MinQuote is the length in bytes from which the text of a note is searched for. A shorter text may occur by chance.
const MinQuote = 12

// quotingTables lists the tables and columns that may quote a note. id identifies a row, and scope selects the rows of
// the workspace $1.
var quotingTables = []struct {
	table, id, scope string
	columns          []string
}{
	{"calls", "id", "workspace_id = $1", []string{"args", "request", "undo", "result", "result_info", "message"}},
	{"messages", "id", "workspace_id = $1", []string{"content", "metadata"}},
	{"runs", "id", "workspace_id = $1", []string{"input", "output"}},
	{"wakes", "run_key", "workspace_id = $1", []string{"input"}},
	{"approvals", "id", "workspace_id = $1", []string{"args", "preview", "reason", "comment"}},
	{"proposals", "id", "workspace_id = $1", []string{"args", "preview", "reason", "comment"}},
	{"notifications", "id", "workspace_id = $1", []string{"body"}},
	{"frames", "conversation_id || ':' || CAST(n AS TEXT)",
		"conversation_id IN (SELECT id FROM conversations WHERE workspace_id = $1)", []string{"body"}},
}

// EraseQuotes replaces the texts of a note in up to limit rows of each table of a workspace, and deletes full copies of
// tool outputs that contain them. It returns the number of rows by table; the map is empty when no row is left. It
// reads whole tables.
func (t NotesTx) EraseQuotes(ctx context.Context, workspace string, texts []string, limit int) (map[string]int64,
	error) {
	forms := quotedForms(texts)
	erased := map[string]int64{}
	if len(forms) == 0 {
		return erased, nil
	}
	args := []any{workspace, limit, forgottenText}
	for _, form := range forms {
		args = append(args, form)
	}
	isPostgres := t.db.Engine() == "postgres"
	for _, q := range quotingTables {
		var set, conditions []string
		for _, column := range q.columns {
			expression := column
			for i := range forms {
				parameter := "$" + strconv.Itoa(4+i)
				expression = "replace(" + expression + ", " + parameter + ", $3)"
				if isPostgres {
					conditions = append(conditions, "strpos("+column+", "+parameter+") > 0")
				} else {
					conditions = append(conditions, "instr("+column+", "+parameter+") > 0")
				}
			}
			set = append(set, column+" = "+expression)
		}
		n, err := t.tx.execCount(ctx, "UPDATE "+q.table+" SET "+strings.Join(set, ", ")+" WHERE "+q.id+" IN (SELECT "+
			q.id+
			" FROM "+q.table+" WHERE "+q.scope+" AND ("+strings.Join(conditions, " OR ")+") LIMIT $2)", args...)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			erased[q.table] = n
		}
	}
	n, err := t.eraseOutputs(ctx, workspace, forms, limit)
	if n > 0 {
		erased["outputs"] = n
	}
	return erased, err
}

// eraseOutputs deletes full copies of tool outputs that contain one of the texts.
func (t NotesTx) eraseOutputs(ctx context.Context, workspace string, forms []string, limit int) (int64, error) {
	args := []any{workspace, limit}
	var conditions []string
	for i, form := range forms {
		args = append(args, form)
		if t.db.Engine() == "postgres" {
			conditions = append(conditions, "position(convert_to($"+strconv.Itoa(3+i)+", 'UTF8') IN body) > 0")
		} else {
			conditions = append(conditions, "instr(body, CAST($"+strconv.Itoa(3+i)+" AS BLOB)) > 0")
		}
	}
	return t.tx.execCount(ctx, `DELETE FROM payloads WHERE workspace_id = $1 AND hash IN (SELECT hash FROM payloads
		WHERE workspace_id = $1 AND uses < 4 AND (`+strings.Join(conditions, " OR ")+`) LIMIT $2)`, args...)
}

// quotedForms returns the forms in which texts are stored: as they are, and within JSON strings. It leaves out texts
// that are shorter than MinQuote.
func quotedForms(texts []string) (forms []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if len(text) < MinQuote {
			continue
		}
		for _, form := range []string{text, trimQuotes(encodeJSON(text)), trimQuotes(encodeJSONUnescaped(text))} {
			if !seen[form] {
				seen[form] = true
				forms = append(forms, form)
			}
		}
	}
	return forms
}

func trimQuotes(s string) string { return s[1 : len(s)-1] }
