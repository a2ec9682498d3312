package store

import (
	"context"
	"time"

	"reeve"
)

// SummaryState is the state of the work on a summary.
type SummaryState string

// The states of a summary.
const (
	SummaryQueued SummaryState = "queued"
	SummaryDone   SummaryState = "done"
	SummaryFailed SummaryState = "failed" // all attempts failed; the turns stay unsummarized
)

// Summary is the work of summarizing a thread's turns, or the runs of an agent for a user, up to one of them.
type Summary struct {
	ThreadID       string // the conversation's thread, or RunMemory
	UpTo           string // the last turn or run that it covers
	WorkspaceID    string
	AgentID        string // the agent that pays for it
	UserID         string
	ConversationID string // empty for a summary of runs
	State          SummaryState
	MessageID      string // the message with the summary
	Attempts       int
	DueAt          time.Time
	CreatedAt      time.Time
	Code           reeve.Code // why the last attempt failed
	Message        string
	Untrusted      bool // it covers a turn or run with text from outside
}

const insertedSummaryColumns = `thread_id, up_to, workspace_id, agent_id, user_id, conversation_id, state, message_id,
	attempts, due_at`

const summaryColumns = `thread_id, up_to, workspace_id, agent_id, user_id, COALESCE(conversation_id, ''), state,
	message_id, attempts, due_at, created_at, code, message`

func scanSummary(r scanner) (s Summary, err error) {
	defer wrapCorrupt("summaries", &s.ThreadID, &err)
	var due, created int64
	err = r.Scan(&s.ThreadID, &s.UpTo, &s.WorkspaceID, &s.AgentID, &s.UserID, &s.ConversationID, &s.State, &s.MessageID,
		&s.Attempts, &due, &created, &s.Code, &s.Message)
	s.DueAt, s.CreatedAt = reeve.FromMillis(due), reeve.FromMillis(created)
	return s, err
}

// QueueSummary queues a summary. It does nothing if the thread has a queued summary, or had one up to the same turn.
func (t ChatTx) QueueSummary(ctx context.Context, s Summary) error {
	return t.tx.exec(ctx, `INSERT INTO summaries (`+insertedSummaryColumns+
		`, owner, code, message, created_at) VALUES ($1, $2, $3, $4, $5, NULLIF($6, ''), 'queued', '', 0, $7, '', '', '', $7)
			ON CONFLICT DO NOTHING`,
		s.ThreadID, s.UpTo, s.WorkspaceID, s.AgentID, s.UserID, s.ConversationID, reeve.Millis(t.now))
}

// isUnclaimed is the condition that no other process works on a summary. The process $1 works on one summary at a time,
// so a summary that it owns is left over from a failed write or an uncertain commit.
const isUnclaimed = `state = 'queued' AND (owner = '' OR owner = $1 OR NOT EXISTS (SELECT 1 FROM processes p
	WHERE p.id = owner))`

// ClaimSummary leases a due summary for a process that works on none. It returns false if none is due. A summary whose
// row is corrupt becomes failed, so that it does not block the others.
func (t ChatTx) ClaimSummary(ctx context.Context, process string) (v Summary, ok bool, err error) {
	var skipped []string
	v, ok, err = queryOne(ctx, t.Snap, skipCorrupt(t.Snap, scanSummary, &skipped), `WITH due AS MATERIALIZED (
			SELECT thread_id, up_to FROM summaries WHERE `+isUnclaimed+` AND due_at <= $2
			ORDER BY due_at LIMIT 1`+t.db.engine.LockClause()+`)
		UPDATE summaries SET attempts = attempts + 1, owner = $1 WHERE (thread_id, up_to) IN (SELECT thread_id, up_to
		FROM due) RETURNING `+summaryColumns,
		process, reeve.Millis(t.now))
	for _, thread := range skipped {
		err = firstError(err, t.tx.exec(ctx,
			`UPDATE summaries SET state = 'failed', owner = '' WHERE thread_id = $1 AND state = 'queued'`, thread))
	}
	return v, ok, err
}

// NextSummary returns the time at which the next summary that the process can claim is due. It returns false if there
// is none.
func (s Chat) NextSummary(ctx context.Context, process string) (time.Time, bool, error) {
	at, ok, err := queryOne(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("summaries"), nil),
		`SELECT thread_id, due_at FROM summaries WHERE `+isUnclaimed+` ORDER BY due_at LIMIT 1`, process)
	return reeve.FromMillis(at), ok, err
}

// EndSummary stores the message of a finished summary. It returns a Conflict, and stores nothing, if another process
// has claimed the summary since.
func (t ChatTx) EndSummary(ctx context.Context, s Summary, m reeve.Message) error {
	n, err := t.tx.execCount(ctx,
		`UPDATE summaries SET state = $5, owner = '', message_id = $4, code = '', message = '', untrusted = $6
			WHERE thread_id = $1 AND up_to = $2 AND state = 'queued' AND attempts = $3`,
		s.ThreadID, s.UpTo, s.Attempts, m.ID, string(SummaryDone), boolToInt(s.Untrusted))
	if err != nil {
		return err
	}
	if n == 0 {
		return reeve.Errorf(reeve.Conflict, "another process has claimed the summary")
	}
	if s.ConversationID == "" { // the pointer moves only with the message
		if err := t.tx.exec(ctx, `UPDATE agent_states SET summary = $2 WHERE agent_id = $1 AND summary < $2`, s.AgentID,
			m.ID); err != nil {
			return err
		}
	}
	return t.tx.Ledger().AppendMessage(ctx, m)
}

// RetrySummary queues a failed summary of an agent again. It returns a Conflict if the summary has not failed, or if
// another one of the same thread is queued.
func (t ChatTx) RetrySummary(ctx context.Context, s Summary) error {
	n, err := t.tx.execCount(ctx, `UPDATE summaries SET state = 'queued', attempts = 0, owner = '', due_at = $3
		WHERE thread_id = $1 AND up_to = $2 AND state = 'failed'
		AND NOT EXISTS (SELECT 1 FROM summaries o WHERE o.thread_id = $1 AND o.state = 'queued')`, s.ThreadID, s.UpTo,
		reeve.Millis(t.now))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.Conflict, "the summary cannot be retried").
			Hintf("only a failed summary can be retried, while no other summary of the same turns or runs is queued")
	}
	return err
}

// ListSummaries returns a page of an agent's summaries, those of the latest turns and runs first. If user is not empty,
// only summaries for this user and those for none are listed. If only is not empty, only the one up to that run is.
func (s Chat) ListSummaries(ctx context.Context, agent, user, only, before string, limit int) ([]Summary, error) {
	return queryAll(ctx, s.Snap, scanSummary, `SELECT `+summaryColumns+` FROM summaries WHERE agent_id = $1
		AND ($2 = '' OR user_id = '' OR user_id = $2) AND ($3 = '' OR up_to = $3) AND ($4 = '' OR up_to < $4)
		ORDER BY up_to DESC LIMIT $5`, agent, user, only, before, limit)
}

// CountFailedSummaries returns the number of failed summaries of all workspaces.
func (s Chat) CountFailedSummaries(ctx context.Context) (int, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT count(*) FROM summaries WHERE state = 'failed'`)
	return int(n), err
}

// DelaySummary stores why a summary failed. It is tried again at the time again, or never if that is zero.
func (t ChatTx) DelaySummary(ctx context.Context, s Summary, again time.Time, why *reeve.Error) error {
	state := SummaryQueued
	if again.IsZero() {
		state = SummaryFailed
	}
	return t.tx.exec(ctx, `UPDATE summaries SET state = $4, owner = '', due_at = $5, code = $6, message = $7
		WHERE thread_id = $1 AND up_to = $2 AND state = 'queued' AND attempts = $3`,
		s.ThreadID, s.UpTo, s.Attempts, string(state), reeve.Millis(again), string(why.Code),
		reeve.SanitizeText(why.Message))
}

// LastSummary returns the finished summary of a thread that covers most turns, with its text, and the last turn for
// which any summary was queued. All are empty if there is none.
func (s Chat) LastSummary(ctx context.Context, thread string) (done Summary, content, queuedUpTo string, err error) {
	type row struct {
		Summary
		content string
	}
	r, _, err := queryOne(ctx, s.Snap, func(r scanner) (v row, err error) {
		var untrusted int64
		err = r.Scan(&v.UpTo, &v.MessageID, &v.content, &untrusted)
		v.Untrusted = untrusted != 0
		return v, err
	}, `SELECT v.up_to, v.message_id, m.content, v.untrusted FROM summaries v JOIN messages m ON m.id = v.message_id
		WHERE v.thread_id = $1 AND v.state = 'done' ORDER BY v.up_to DESC LIMIT 1`, thread)
	if err != nil {
		return done, "", "", err
	}
	queuedUpTo, _, err = queryOne(ctx, s.Snap, scanValue[string],
		`SELECT up_to FROM summaries WHERE thread_id = $1 ORDER BY up_to DESC LIMIT 1`, thread)
	return r.Summary, r.content, queuedUpTo, err
}

// TurnsBetween returns the last ended turns of a conversation after one turn and up to another, oldest first. Only ID,
// AgentID, ParentID, State, Input and Output are set.
func (s Chat) TurnsBetween(ctx context.Context, conversation, after, upTo string, limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v reeve.Run, err error) {
		return v, r.Scan(&v.ID, &v.AgentID, &v.ParentID, &v.State, &v.Input, &v.Output)
	},
		`SELECT id, agent_id, parent_id, state, input, output FROM (SELECT id, agent_id, parent_id, state, input, output
			FROM runs WHERE session_id = $1 AND reason = 'user_initiated'
			AND id > $2 AND id <= $3 AND state NOT IN ('running', 'parked') ORDER BY id DESC LIMIT $4) t ORDER BY id`,
		conversation, after, upTo, limit)
}
