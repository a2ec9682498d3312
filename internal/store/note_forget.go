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
	{"model_answers", "run_id || ':' || hash", "workspace_id = $1", []string{"answer"}},
	{"model_requests", "run_id || ':' || CAST(number AS TEXT)", "workspace_id = $1", []string{"request"}},
	{"wakes", "run_key", "workspace_id = $1", []string{"input"}},
	{"approvals", "id", "workspace_id = $1", []string{"args", "preview", "reason", "comment"}},
	{"proposals", "id", "workspace_id = $1", []string{"args", "preview", "reason", "comment"}},
	{"notifications", "id", "workspace_id = $1", []string{"body"}},
	{"note_suggestions", "id", "workspace_id = $1", []string{"args", "reason"}},
	{"frames", "conversation_id || ':' || CAST(n AS TEXT)",
		"conversation_id IN (SELECT id FROM conversations WHERE workspace_id = $1)", []string{"body"}},
}

// EraseQuotes replaces the texts of a note in up to limit rows of each table of a workspace. It deletes recorded values
// of changes and full copies of tool outputs that contain them. It returns the number of rows by table; the map is
// empty when no row is left. It reads whole tables.
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
	n, err := t.eraseChanges(ctx, workspace, texts, limit)
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

// quoteStart is how many bytes of a text are searched for where long texts are stored shortened.
const quoteStart = 64

// eraseChanges deletes the titles and fields of recorded changes that contain the start of one of the texts. They are
// deleted as a whole, because a shortened value can end within a quote.
func (t NotesTx) eraseChanges(ctx context.Context, workspace string, texts []string, limit int) (int64, error) {
	starts := make([]string, len(texts))
	for i, text := range texts {
		starts[i] = cutText(text, quoteStart)
	}
	args := []any{workspace, limit, forgottenText}
	var inTitle, inFields []string
	for i, form := range quotedForms(starts) {
		args = append(args, form)
		position := "instr("
		if t.db.Engine() == "postgres" {
			position = "strpos("
		}
		parameter := ", $" + strconv.Itoa(4+i) + ") > 0"
		inTitle, inFields = append(inTitle, position+"title"+parameter), append(inFields, position+"fields"+parameter)
	}
	title, fields := strings.Join(inTitle, " OR "), strings.Join(inFields, " OR ")
	return t.tx.execCount(ctx, `UPDATE changes SET title = CASE WHEN `+title+` THEN $3 ELSE title END,
		fields = CASE WHEN `+fields+` THEN '' ELSE fields END WHERE (change_id, entity_id) IN (
		SELECT change_id, entity_id FROM changes WHERE workspace_id = $1 AND (`+title+` OR `+fields+`) LIMIT $2)`,
		args...)
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
