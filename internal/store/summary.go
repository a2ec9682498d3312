package store

import (
	"context"
	"time"

	"reeve"
)

// SummaryState is where the work on a summary stands.
type SummaryState string

// The states of a summary.
const (
	SummaryQueued SummaryState = "queued"
	SummaryDone   SummaryState = "done"
	SummaryFailed SummaryState = "failed" // it was tried often enough; the turns are as they were
)

// Summary is the work of putting a thread's turns, up to one of them, into a few words.
type Summary struct {
	ThreadID       string
	UpTo           string // the last turn that it covers
	WorkspaceID    string
	AgentID        string // who pays for it
	UserID         string
	ConversationID string
	State          SummaryState
	MessageID      string // what came of it
	Attempts       int
	DueAt          time.Time
}

const summaryColumns = `thread_id, up_to, workspace_id, agent_id, user_id, conversation_id, state, message_id, attempts, due_at`

func scanSummary(r scanner) (s Summary, err error) {
	defer wrapCorrupt("summaries", &s.ThreadID, &err)
	var due int64
	err = r.Scan(&s.ThreadID, &s.UpTo, &s.WorkspaceID, &s.AgentID, &s.UserID, &s.ConversationID, &s.State, &s.MessageID,
		&s.Attempts, &due)
	s.DueAt = reeve.FromMillis(due)
	return s, err
}

// QueueSummary asks for a summary, unless its thread has one to do, or had this one.
func (t ChatTx) QueueSummary(ctx context.Context, s Summary) error {
	return t.tx.exec(ctx, `INSERT INTO summaries (`+summaryColumns+
		`, owner, code, message, created_at) VALUES ($1, $2, $3, $4, $5, $6, 'queued', '', 0, $7, '', '', '', $7) ON CONFLICT DO NOTHING`,
		s.ThreadID, s.UpTo, s.WorkspaceID, s.AgentID, s.UserID, s.ConversationID, reeve.Millis(t.now))
}

// free is a summary that nobody works on: who did may be gone, or be the one who asks, who works on one at a time, and
// could not write what came of it, or was not told that it was theirs.
const free = `state = 'queued' AND (owner = '' OR owner = $1 OR NOT EXISTS (SELECT 1 FROM processes p WHERE p.id = owner))`

// ClaimSummary takes a summary that is due for a process that works on none; false means that none is. When that
// process is gone, another may take it. One whose row cannot be read is failed, so that the next one is not behind it.
func (t ChatTx) ClaimSummary(ctx context.Context, process string) (v Summary, ok bool, err error) {
	var skipped []string
	v, ok, err = one(ctx, t.Snap, skipCorrupt(t.Snap, scanSummary, &skipped), `WITH due AS MATERIALIZED (
			SELECT thread_id, up_to FROM summaries WHERE `+free+` AND due_at <= $2 ORDER BY due_at LIMIT 1`+t.db.engine.LockClause()+`)
		UPDATE summaries SET attempts = attempts + 1, owner = $1 WHERE (thread_id, up_to) IN (SELECT thread_id, up_to FROM due) RETURNING `+summaryColumns,
		process, reeve.Millis(t.now))
	for _, thread := range skipped {
		err = first(err, t.tx.exec(ctx,
			`UPDATE summaries SET state = 'failed', owner = '' WHERE thread_id = $1 AND state = 'queued'`, thread))
	}
	return v, ok, err
}

// NextSummary is when the next summary is due that a process which works on none can take; false means that there is
// none to do.
func (s Chat) NextSummary(ctx context.Context, process string) (time.Time, bool, error) {
	at, ok, err := one(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("summaries"), nil),
		`SELECT thread_id, due_at FROM summaries WHERE `+free+` ORDER BY due_at LIMIT 1`, process)
	return reeve.FromMillis(at), ok, err
}

// EndSummary writes what a summary came to, with its message. One that somebody else has taken up since is a conflict,
// and nothing is written.
func (t ChatTx) EndSummary(ctx context.Context, s Summary, m reeve.Message) error {
	n, err := t.tx.affect(ctx,
		`UPDATE summaries SET state = $5, owner = '', message_id = $4, code = '', message = '' WHERE thread_id = $1 AND up_to = $2 AND state = 'queued' AND attempts = $3`,
		s.ThreadID, s.UpTo, s.Attempts, m.ID, string(SummaryDone))
	if err != nil {
		return err
	}
	if n == 0 {
		return reeve.Errorf(reeve.Conflict, "somebody else has taken the summary up")
	}
	return t.tx.Ledger().AppendMessage(ctx, m)
}

// DelaySummary writes why a summary could not be made: it is tried again at a time, or, if that is zero, never.
func (t ChatTx) DelaySummary(ctx context.Context, s Summary, again time.Time, why *reeve.Error) error {
	state := SummaryQueued
	if again.IsZero() {
		state = SummaryFailed
	}
	return t.tx.exec(ctx, `UPDATE summaries SET state = $4, owner = '', due_at = $5, code = $6, message = $7 WHERE thread_id = $1 AND up_to = $2 AND state = 'queued' AND attempts = $3`,
		s.ThreadID, s.UpTo, s.Attempts, string(state), reeve.Millis(again), string(why.Code),
		reeve.SanitizeText(why.Message))
}

// LastSummary gives the summary of a thread that goes furthest, with its words, and up to where one was asked for,
// whatever came of that. A thread that has none gives nothing.
func (s Chat) LastSummary(ctx context.Context, thread string) (done Summary, words, asked string, err error) {
	type row struct {
		Summary
		words string
	}
	r, _, err := one(ctx, s.Snap, func(r scanner) (v row, err error) {
		return v, r.Scan(&v.UpTo, &v.MessageID, &v.words)
	}, `SELECT v.up_to, v.message_id, m.content FROM summaries v JOIN messages m ON m.id = v.message_id WHERE v.thread_id = $1 AND v.state = 'done' ORDER BY v.up_to DESC LIMIT 1`, thread)
	if err != nil {
		return done, "", "", err
	}
	asked, _, err = one(ctx, s.Snap, value[string],
		`SELECT up_to FROM summaries WHERE thread_id = $1 ORDER BY up_to DESC LIMIT 1`, thread)
	return r.Summary, r.words, asked, err
}

// TurnsBetween reads the last turns of a conversation that ended, after one and up to another, oldest first: of each
// what was said and answered.
func (s Chat) TurnsBetween(ctx context.Context, conversation, after, upTo string, limit int) ([]reeve.Run, error) {
	return all(ctx, s.Snap, func(r scanner) (v reeve.Run, err error) {
		return v, r.Scan(&v.ID, &v.AgentID, &v.ParentID, &v.State, &v.Input, &v.Output)
	},
		`SELECT id, agent_id, parent_id, state, input, output FROM (SELECT id, agent_id, parent_id, state, input, output FROM runs WHERE session_id = $1 AND reason = 'user_initiated'
			AND id > $2 AND id <= $3 AND state NOT IN ('running', 'parked') ORDER BY id DESC LIMIT $4) t ORDER BY id`, conversation, after, upTo, limit)
}
