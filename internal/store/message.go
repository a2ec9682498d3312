package store

import (
	"cmp"
	"context"
	"slices"

	"reeve"
)

const (
	messageColumns = `id, workspace_id, thread_id, agent_id, kind, action_id, operation_id, content, metadata, created_at, run_id`
	newMessage     = `INSERT INTO messages (prev_id, ` + messageColumns + `) VALUES ('', ` // which message came before is worked out; see Link
)

// scanMessage reads a row of messages. What a message of damaged metadata was about nobody can tell.
func scanMessage(r scanner) (m reeve.Message, err error) {
	var meta string
	var created int64
	if err := r.Scan(&m.ID, &m.WorkspaceID, &m.ThreadID, &m.AgentID, &m.Kind, &m.ActionID, &m.OperationID, &m.Content, &meta, &created, &m.RunID); err != nil {
		return m, err
	}
	if m.Kind == noPair {
		return m, unpaired{m.OperationID}
	}
	var d damage
	m.Metadata, m.CreatedAt = d.whole("metadata", meta), reeve.FromMillis(created)
	return m, d.err()
}

// Stale is what AppendAction says when the workspace has changed since the call was judged: judge again.
type Stale struct{}

func (Stale) Error() string { return "the workspace has changed since the call was judged" }

// AppendAction writes the action message of a call that was judged at a revision of its workspace. The row cannot be written
// at any other: the sub-select finds nothing, and a message without a workspace is refused. So a call is judged from a cached
// view without a read, and still never slips past a change: where transactions overlap, the workspace stays as it was read
// until this one has ended.
func (t *Tx) AppendAction(ctx context.Context, m reeve.Message, j Judged) error {
	return t.execOr(ctx, stale, t.db.append[j.Assumed].action, m.ID, m.WorkspaceID, j.Revision, m.ThreadID, m.AgentID, string(m.Kind), m.OperationID, reeve.Clean(m.Content), reeve.Clean(string(m.Metadata)), reeve.Millis(t.now), m.RunID)
}

// Judged is what a call was judged by.
type Judged struct {
	Revision int64 // of its workspace
	Assumed  bool  // that its run goes on was not looked up: the row cannot be written if the run has ended, waits for a person, or its automation is paused
}

// appending are the texts that AppendAction, AppendCall and RecordCall run.
type appending struct{ action, call, record, special string }

func newAppending(e Engine) map[bool]appending {
	m := map[bool]appending{}
	for _, assumed := range []bool{false, true} {
		standing := func(run, agent string) string {
			if !assumed {
				return e.Share()
			}
			return ` AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = ` + run + ` AND r.state NOT IN ('running', 'parked'))
				AND NOT EXISTS (SELECT 1 FROM automations m WHERE m.agent_id = ` + agent + ` AND m.paused_at > 0)
				AND NOT EXISTS (SELECT 1 FROM operations WHERE run_id = ` + run + ` AND ` + awaitsPerson + `)` + e.Share()
		}
		action := newMessage + `$1, (SELECT id FROM workspaces WHERE id = $2 AND revision = $3` + standing("$11", "$5") + `), $4, $5, $6, '', $7, $8, $9, $10, $11)`
		// The result's row beside the action's: same thread, agent, run and operation.
		m[assumed] = appending{action, action + `, ('', $12, $2, $4, $5, $13, $1, $7, $14, $15, $10, $11)`, newRecord(standing("$8", "$4"), false), newRecord(standing("$8", "$4"), true)}
	}
	return m
}

func stale(f Fault) error {
	if f.Kind == FaultNotNull {
		return Stale{}
	}
	return nil
}

// AppendCall is AppendAction and AppendResult in one statement, for a call that is over when it is recorded and leaves no operation.
func (t *Tx) AppendCall(ctx context.Context, action, result reeve.Message, j Judged) error {
	return t.execOr(ctx, stale, t.db.append[j.Assumed].call, action.ID, action.WorkspaceID, j.Revision, action.ThreadID, action.AgentID, string(action.Kind), action.OperationID,
		reeve.Clean(action.Content), reeve.Clean(string(action.Metadata)), reeve.Millis(t.now), action.RunID,
		result.ID, string(result.Kind), reeve.Clean(result.Content), reeve.Clean(string(result.Metadata)))
}

// AppendResult writes the one result of an action. A second is refused.
func (t *Tx) AppendResult(ctx context.Context, m reeve.Message) error {
	return t.appendMessage(ctx, m, func(f Fault) error {
		if f.Kind == FaultUnique {
			return reeve.Errorf(reeve.Conflict, "the call has its result already")
		}
		return nil
	})
}

// AppendThought writes a message that is neither action nor result: a thought, an observation, what a person said.
func (t *Tx) AppendThought(ctx context.Context, m reeve.Message) error {
	return t.appendMessage(ctx, m, nil)
}

func (t *Tx) appendMessage(ctx context.Context, m reeve.Message, refused func(Fault) error) error {
	return t.execOr(ctx, refused, newMessage+`$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		m.ID, m.WorkspaceID, m.ThreadID, m.AgentID, string(m.Kind), m.ActionID, m.OperationID, reeve.Clean(m.Content), reeve.Clean(string(m.Metadata)), reeve.Millis(t.now), m.RunID)
}

// GetMessage reads a message of a workspace.
func (s *Snap) GetMessage(ctx context.Context, workspace, id string) (reeve.Message, error) {
	m, ok, err := one(ctx, s, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE id = $2 AND workspace_id = $1
		UNION ALL SELECT `+askedColumns+` FROM operations WHERE `+isCall+`
		UNION ALL SELECT `+answerColumns+` FROM operations WHERE result_id = $2 AND `+toldAt, workspace, id, reeve.Issued(id))
	if err == nil && !ok {
		err = notFound("message", id)
	}
	return m, err
}

// GetResult reads the result of an action; false means there is none yet.
func (s *Snap) GetResult(ctx context.Context, workspace, action string) (reeve.Message, bool, error) {
	return one(ctx, s, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE action_id = $2 AND action_id <> '' AND workspace_id = $1
		UNION ALL SELECT `+answerColumns+` FROM operations WHERE `+isCall, workspace, action, reeve.Issued(action))
}

// ListMessages reads a page of a thread as it is shown, oldest first, after a message.
func (s *Snap) ListMessages(ctx context.Context, workspace, thread, after string, limit int) ([]reeve.Message, error) {
	return s.linked(ctx, threadPage, workspace, thread, after, limit)
}

// ListRunMessages reads a page of what was written in a run as it is shown, oldest first, after a message.
func (s *Snap) ListRunMessages(ctx context.Context, workspace, run, after string, limit int) ([]reeve.Message, error) {
	return s.linked(ctx, runPage, workspace, run, after, limit)
}

func (s *Snap) linked(ctx context.Context, query, workspace, of, after string, limit int) ([]reeve.Message, error) {
	list, err := page(ctx, s, "messages", scanMessage, 4, query, workspace, of, after, limit)
	if err != nil {
		return list, err
	}
	return list, s.Link(ctx, list)
}

// RunMessages reads what was written in a run, oldest first, after a message.
func (s *Snap) RunMessages(ctx context.Context, workspace, run, after string, limit int) ([]reeve.Message, error) {
	return all(ctx, s, scanMessage, runPage, workspace, run, after, limit)
}

// WholeRun reads all that was written in a run, oldest first.
func (s *Snap) WholeRun(ctx context.Context, workspace, run string) ([]reeve.Message, error) {
	var list []reeve.Message
	for last := ""; ; {
		page, err := s.RunMessages(ctx, workspace, run, last, somePage)
		if list = append(list, page...); err != nil || len(page) < somePage {
			return list, err
		}
		last = page[somePage-1].ID
	}
}

// somePage is how many messages are read at once.
const somePage = 1000

// TurnMessages reads the last messages of some runs, oldest first. The order is said so that no index is taken for it: that of all ids has it, and every message that there ever was.
func (s *Snap) TurnMessages(ctx context.Context, workspace string, runs []string, limit int) ([]reeve.Message, error) {
	list, err := among(ctx, s, scanMessage, `SELECT * FROM (SELECT `+messageColumns+` FROM messages WHERE run_id IN (?) AND run_id <> ''
		UNION ALL SELECT `+askedColumns+` FROM operations WHERE run_id IN (?) AND run_id <> '' AND `+isTold+`
		UNION ALL SELECT `+answerColumns+` FROM operations WHERE run_id IN (?) AND run_id <> '' AND `+isTold+`) AS told ORDER BY id || '' DESC LIMIT $1`, runs, limit)
	slices.SortFunc(list, func(a, b reeve.Message) int { return cmp.Compare(a.ID, b.ID) })
	list = list[max(0, len(list)-limit):]
	return slices.DeleteFunc(list, func(m reeve.Message) bool { return m.WorkspaceID != workspace }), err
}

// Notices reads the last things that an agent was told between its turns, from one message on and before another, oldest first.
func (s *Snap) Notices(ctx context.Context, workspace, thread, from, before string, limit int) ([]reeve.Message, error) {
	list, err := all(ctx, s, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE thread_id = $2 AND run_id = '' AND kind = 'observation' AND workspace_id = $1
		AND id >= $3 AND id < $4 ORDER BY id DESC LIMIT $5`, workspace, thread, from, before, limit)
	slices.Reverse(list)
	return list, err
}

// InsertEvents writes what a change notifies about.
func (t *Tx) InsertEvents(ctx context.Context, workspace, agent, operation string, tokens []reeve.Token) error {
	rows := make([][]any, len(tokens))
	for i, k := range tokens {
		if err := k.Check(); err != nil {
			return err
		}
		rows[i] = []any{t.NewID(reeve.PrefixEvent), workspace, string(k.Class), k.Name, agent, operation, reeve.Millis(t.now)}
	}
	return t.insert(`INSERT INTO events (id, workspace_id, class, name, agent_id, operation_id, created_at) VALUES (?)`, rows, t.unheard(ctx))
}
