package store

import (
	"context"
	"strings"

	"reeve"
)

// A call that is over when it is recorded is told in its operation's row: what was asked, what was answered, and what the gate said of it. All others have messages of their own, as they
// are written when each is known. Whoever reads messages reads both; these are the columns of messages, of the row of such a call.
var (
	askedColumns = `call_id AS id, workspace_id, thread_id, agent_id, 'action' AS kind, '' AS action_id,
		id AS operation_id, asked AS content, CASE WHEN trail = '' THEN asked_info
			ELSE substr(asked_info, 1, length(asked_info) - 1) || ',"trail":' || COALESCE((SELECT steps FROM trails WHERE trails.id = operations.trail), '` + trailLost + `') || '}' END AS metadata, created_at, run_id`
	answerColumns = answeredAs(`result_id`, `'tool_result'`)
)

func answeredAs(id, kind string) string {
	return id + ` AS id, workspace_id, thread_id, agent_id, ` + kind + ` AS kind, call_id AS action_id, id AS operation_id, answer AS content, answer_info AS metadata,
		created_at, run_id`
}

// What PostgreSQL takes no index for is said so that it cannot: a plan that it made for few calls, or before it has counted them, would read all that there ever were.
const (
	isTold = `asked_info <> ''`
	isCall = `call_id || '' = $2 AND ` + toldAt
	toldAt = `workspace_id = $1 AND created_at = $3 AND ` + isTold // one of the few calls of the moment that an id was issued at
)

// threadPage and runPage read messages of a workspace ($1), of a thread or a run ($2) and behind one ($3), the first of them ($4). Each part is read in its index's order: the answers in that of
// their calls, which is theirs too, unless an id is damaged: of such a row there is no call, and noPair in place of its answer.
var (
	threadPage = pageOf("thread_id = $2")
	runPage    = pageOf("run_id = $2 AND run_id <> ''")
)

func pageOf(which string) string {
	part := func(columns, table, behind, order string) string {
		return `SELECT * FROM (SELECT ` + columns + ` FROM ` + table + ` WHERE ` + which + ` AND workspace_id || '' = $1 AND ` + behind + ` ORDER BY ` + order + ` LIMIT $4) AS part`
	}
	return `SELECT * FROM (` + part(messageColumns, "messages", `id > $3`, "id") + ` UNION ALL ` + part(askedColumns, "operations", isTold+` AND call_id > $3 AND `+isPair, "call_id") +
		` UNION ALL ` + part(answerOrNone, "operations", isTold+` AND call_id >= $3`, "call_id") + `) AS page ORDER BY id LIMIT $4`
}

// messageBefore is the id of the last message m of a thread, of those that a condition leaves; empty if there is none. A call and its answer have one place in the order, so that the last call
// has the last answer.
func messageBefore(thread, condition string) string {
	return `(SELECT COALESCE(max(id), '') FROM (SELECT (SELECT m.id FROM messages m WHERE m.thread_id = ` + thread + condition + ` ORDER BY m.id DESC LIMIT 1) AS id
		UNION ALL SELECT (SELECT m.result_id FROM operations m WHERE m.thread_id = ` + thread + ` AND m.` + isTold + ` AND ` + isPair + strings.ReplaceAll(condition, "m.id", "m.call_id") + `
			ORDER BY m.call_id DESC LIMIT 1)) AS latest)`
}

// newRecord is the text that RecordCall runs. Standing is what must hold of the workspace's row. What is over waits for nothing, and is in nobody's hands. Most calls went well at once and have nothing more
// to tell, and each argument costs; those that have are special.
func newRecord(standing string, special bool) string {
	state, base, code, message, tries, undo := `'committed'`, `''`, `''`, `''`, `1`, `''`
	if special {
		state, base, code, message, tries, undo = `$21`, `$22`, `$23`, `$24`, `$25`, `$26`
	}
	return `INSERT INTO operations (` + operationColumns + `, trail, asked, asked_info, answer, answer_info) VALUES ($1, (SELECT id FROM workspaces WHERE id = $2 AND revision = $3` + standing + `),
		$4, $5, $6, $7, $8, $9, $10, $11, $12, ` + state + `, $13, ` + base + `, ` + code + `, ` + message + `, ` + tries + `, 0, '', '', '', ` + undo + `, $14, $15, $15, 0, 0, 0, $16, $17, $18, $19, $20)`
}

// RecordCall writes a call that is over, its answer and its operation. As with AppendAction, the row cannot be written unless the call was judged by what still holds; it says Taken if the
// operation id has been used. Metadata of the action are without what the gate said, if that is kept as a trail. The result is given its id, the answer's to its call; the time of the operation is that of its call.
func (t *Tx) RecordCall(ctx context.Context, action reeve.Message, result *reeve.Message, trail string, o reeve.Operation, j Judged) error {
	if err := reeve.State("").To(o.State); err != nil {
		return err
	}
	if result.ID = reeve.AnswerTo(action.ID); result.ID == "" || len(action.Metadata) == 0 {
		return reeve.Errorf(reeve.Internal, "the call %q cannot be told in its operation's row", action.ID) // nobody would find it
	}
	text := t.db.append[j.Assumed].record
	args := []any{o.ID, o.WorkspaceID, j.Revision, o.AgentID, action.ID, result.ID, o.ThreadID, o.RunID, o.Tool, o.ToolVersion, o.Policy, string(o.Effect), o.ArgsHash, spentText(o.Spent), reeve.Issued(action.ID),
		trail, reeve.Clean(action.Content), reeve.Clean(string(action.Metadata)), reeve.Clean(result.Content), reeve.Clean(string(result.Metadata))}
	if o.State != reeve.Committed || o.Base != "" || o.Code != "" || o.Message != "" || o.Tries != 1 || o.Undo != nil {
		text = t.db.append[j.Assumed].special
		args = append(args, string(o.State), o.Base, string(o.Code), reeve.Clean(o.Message), o.Tries, undoText(o.Undo))
	}
	return t.execOr(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return Taken{}
		}
		return stale(f)
	}, text, args...)
}
