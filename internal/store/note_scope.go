package store

import (
	"strconv"
	"strings"

	"reeve"
)

// quoteQuery builds a query for rows that quote a note. $1 is the workspace.
type quoteQuery struct {
	Notes
	user string // to whom the note belongs
	args []any
}

func (s Notes) newQuoteQuery(workspace, user string) *quoteQuery {
	return &quoteQuery{Notes: s, user: user, args: []any{workspace}}
}

// bind adds an argument and returns its placeholder.
func (q *quoteQuery) bind(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// anyContains returns the condition that one of the columns contains one of the texts.
func (q *quoteQuery) anyContains(texts []string, isBytes bool, columns ...string) string {
	var list []string
	for _, text := range texts {
		p := q.bind(text)
		for _, column := range columns {
			list = append(list, q.contains(column, p, isBytes))
		}
	}
	return "(" + strings.Join(list, " OR ") + ")"
}

// A quoteScope returns the condition of the rows that may quote a note because they belong to its user: to the user's
// calls, runs, conversations and sessions. A note is shown only there. Rows of other users are left alone, so that
// nobody can change or search them with a note of the same text.
type quoteScope func(q *quoteQuery) string

// ofWorkspace selects the rows that all members of the workspace see and change.
func ofWorkspace(*quoteQuery) string { return "workspace_id = $1" }

// ofUser selects the rows of the user.
func ofUser(q *quoteQuery) string { return "workspace_id = $1 AND user_id = " + q.bind(q.user) }

// ofPrivateUser selects the rows that are private to the user.
func ofPrivateUser(q *quoteQuery) string {
	return "workspace_id = $1 AND private_to = " + q.bind(q.user)
}

// ofConversations selects the rows of the user's conversations.
func ofConversations(q *quoteQuery) string {
	return "conversation_id IN (" + q.conversations("id") + ")"
}

// ofRuns selects the rows whose columns name a run that acted for the user, or that belongs to one of the user's
// conversations.
func ofRuns(columns ...string) quoteScope {
	return func(q *quoteQuery) string {
		var list []string
		for _, column := range columns {
			list = append(list, column+" IN ("+q.runs("id")+")")
		}
		return strings.Join(list, " OR ")
	}
}

// ofCalls selects the rows whose column names one of the user's calls.
func ofCalls(column string) quoteScope {
	return func(q *quoteQuery) string { return column + " IN (SELECT id FROM calls WHERE " + q.calls() + ")" }
}

// ofSessions selects the rows whose column names a session of the user, or one that members share.
func ofSessions(column string) quoteScope {
	return func(q *quoteQuery) string {
		own := []string{
			column + " IN (" + q.runs("thread_id") + ")",
			column + " IN (" + q.conversations("agent_id || ':session:' || id") + ")",
			column + " IN (SELECT id || " + q.bind(reeve.SessionThread("", reeve.DefaultSession(q.user))) +
				" FROM agents WHERE workspace_id = $1)",
		}
		for _, name := range []string{reeve.PrivateSessionPrefix(q.user), reeve.SharedSessionPrefix,
			reeve.AutomationSession} {
			own = append(own, q.contains(column, q.bind(reeve.SessionThread("", name)), false))
		}
		return "workspace_id = $1 AND (" + strings.Join(own, " OR ") + ")"
	}
}

// anyOf selects the rows that one of the scopes selects.
func anyOf(scopes ...quoteScope) quoteScope {
	return func(q *quoteQuery) string {
		var list []string
		for _, s := range scopes {
			list = append(list, "("+s(q)+")")
		}
		return strings.Join(list, " OR ")
	}
}

// allOf selects the rows that both scopes select.
func allOf(a, b quoteScope) quoteScope {
	return func(q *quoteQuery) string { return "(" + a(q) + ") AND (" + b(q) + ")" }
}

// where selects the rows that a condition without arguments selects.
func where(condition string) quoteScope { return func(*quoteQuery) string { return condition } }

// visibleToUser selects the rows that are private to nobody else.
func visibleToUser(q *quoteQuery) string { return "private_to IN ('', " + q.bind(q.user) + ")" }

// conversations returns a query for a column of the user's conversations.
func (q *quoteQuery) conversations(column string) string {
	return "SELECT " + column + " FROM conversations WHERE " + ofUser(q)
}

// runs returns a query for a column of the runs that acted for the user or belong to the user's conversations.
func (q *quoteQuery) runs(column string) string {
	return "SELECT " + column + " FROM runs WHERE workspace_id = $1 AND (user_id = " + q.bind(q.user) +
		" OR session_id IN (" + q.conversations("id") + "))"
}

// calls returns the condition of the user's calls. A call's request names its user.
func (q *quoteQuery) calls() string {
	called := q.contains("request", q.bind(`"user":`+encodeJSON(q.user)), false)
	return allOf(visibleToUser, anyOf(ofPrivateUser, ofRuns("run_id"), where(called)))(q) + " AND workspace_id = $1"
}
