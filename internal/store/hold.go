package store

import (
	"context"
	"math"
	"slices"

	"reeve"
)

// selectHeld returns a row while the server is held.
const selectHeld = `SELECT held_at FROM database_state WHERE id = 1 AND held_at <> 0`

// CheckPresent returns an error if the database's files were removed, replaced or truncated; see [Identified].
func (db *DB) CheckPresent() error {
	if e, ok := db.engine.(Identified); ok {
		return UserError(e.CheckPresent())
	}
	return nil
}

// AdoptIdentity compares the database's identity with the stored one before the server starts work; see
// [SystemTx.AdoptIdentity]. It returns the hold, or nil if the server is not held.
func (db *DB) AdoptIdentity(ctx context.Context, reason string) (hold *reeve.Hold, err error) {
	identity := ""
	if e, ok := db.engine.(Identified); ok {
		if identity, err = e.Identity(ctx); err != nil {
			return nil, UserError(err)
		}
	}
	err = db.Update(ctx, func(tx *Tx) error {
		if err := tx.System().AdoptIdentity(ctx, identity, reason); err != nil {
			return err
		}
		hold, err = tx.System().Hold(ctx)
		return err
	})
	return hold, err
}

// AdoptIdentity stores the identity of the database. If it differs from the stored identity, the database was restored
// or copied. Then, or if a reason is given, AdoptIdentity holds the server and creates a new node, so that its counters
// never collide with those of the original.
func (t SystemTx) AdoptIdentity(ctx context.Context, identity, reason string) error {
	scan := func(r scanner) (was string, err error) { return was, r.Scan(&was) }
	was, _, err := queryOne(ctx, t.Snap, scan,
		`UPDATE database_state SET identity = identity WHERE id = 1 RETURNING identity`)
	if err != nil {
		return err
	}
	// On PostgreSQL a database without an identity is new or was upgraded. On SQLite only copies have an identity.
	if copied := was != identity && (was != "" || t.db.engine.SingleProcess()); copied && reason == "" {
		reason = "its database was restored from a backup or copied, and lacks what happened since"
	}
	if reason == "" {
		if was == identity {
			return nil
		}
		return t.tx.exec(ctx, `UPDATE database_state SET identity = $1 WHERE id = 1`, identity)
	}
	if err := t.tx.exec(ctx, `UPDATE database_state SET identity = $1, held_at = $2, hold_reason = $3,
			as_of = COALESCE((SELECT max(heartbeat_at) FROM processes), 0) WHERE id = 1`, identity, reeve.Millis(t.now),
		reason); err != nil {
		return err
	}
	if err := t.tx.exec(ctx, `UPDATE nodes SET self = 0 WHERE self = 1`); err != nil {
		return err
	}
	if err := t.tx.lockNode(ctx); err != nil {
		return err
	}
	return t.tx.IncrementAllRevisions(ctx)
}

// ReleaseHold ends the hold.
func (t SystemTx) ReleaseHold(ctx context.Context) error {
	t.tx.Announce("", TopicControl, "", "")
	if err := t.tx.exec(ctx, `UPDATE database_state SET held_at = 0, hold_reason = '', as_of = 0
		WHERE id = 1`); err != nil {
		return err
	}
	return t.tx.IncrementAllRevisions(ctx)
}

// IsHeld reports whether the server is held.
func (s System) IsHeld(ctx context.Context) (bool, error) {
	_, held, err := queryOne(ctx, s.Snap, scanValue[int64], selectHeld)
	return held, err
}

// Hold returns the reason and time of the hold, or nil if the server is not held.
func (s System) Hold(ctx context.Context) (*reeve.Hold, error) {
	h, held, err := queryOne(ctx, s.Snap, func(r scanner) (h reeve.Hold, err error) {
		var at, asOf int64
		err = r.Scan(&at, &h.Reason, &asOf)
		h.HeldAt, h.AsOf = reeve.FromMillis(at), timeOrNil(asOf)
		return h, err
	}, `SELECT held_at, hold_reason, as_of FROM database_state WHERE id = 1 AND held_at <> 0`)
	if err != nil || !held {
		return nil, err
	}
	return &h, nil
}

// Node returns this node's id. It is empty before the node has written a shared row.
func (s System) Node(ctx context.Context) (string, error) {
	id, _, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT id FROM nodes WHERE self = 1`)
	return id, err
}

// HeldItem is work that a held server would continue. [reeve.HeldWork].What is visible to everyone in the workspace.
// Text is visible only to those who may see the user's data and, for a turn, the session.
type HeldItem struct {
	reeve.HeldWork
	UserID    string // the user on whose behalf it is; empty means none
	SessionID string // the conversation, if it is a turn
	Text      string // an input, a goal or arguments
}

// heldQuery selects the work of one kind in a workspace, with the columns id, agent, what, text, user, session, at. Its
// parameters are the workspace ($1) and the limit ($2).
type heldQuery struct {
	kind        reeve.HeldKind
	from, order string
	columns     string
	then        string
}

const (
	agentName   = `COALESCE((SELECT name FROM agents WHERE agents.id = x.agent_id), '')`
	turnSession = `CASE WHEN x.reason = 'user_initiated' THEN x.session_id ELSE '' END`
)

var heldQueries = []heldQuery{
	{reeve.HeldRun, `open_runs o JOIN runs x ON x.id = o.run_id WHERE x.workspace_id || '' = $1`, `x.id`,
		`x.id, ` + agentName + `, x.state || ': ' || x.reason, x.input, x.user_id, ` + turnSession + `, x.started_at`,
		"continues where the backup left it; calls that it made since the backup are made again"},
	{reeve.HeldWake, `wakes x WHERE x.state = 'queued' AND x.workspace_id = $1`,
		`x.due_at, x.created_at, x.agent_id, x.session_id`,
		`x.run_key, ` + agentName + `, x.reason, x.input, x.user_id, ` + turnSession + `, x.due_at`,
		"starts a run, although a run may have served it since the backup"},
	{reeve.HeldSchedule, `timers x WHERE x.state = 'active' AND x.next_at > 0 AND x.workspace_id || '' = $1`,
		`x.next_at, x.id`,
		`x.id, ` + agentName + `, '', x.name || ' ' || x.goal, x.user_id, '', x.next_at`,
		"fires at its time; an overdue firing happens at once or counts as missed, according to the schedule"},
	{reeve.HeldApproval, `approvals x WHERE x.state = 'pending' AND x.workspace_id = $1`, `x.id`,
		`x.id, ` + agentName + `, x.tool, x.args, x.private_to, '', x.created_at`,
		"still waits for a person, who may have decided since the backup; check whether the call was made before you " +
			"approve it"},
	{reeve.HeldAutomation, `automations x WHERE x.workspace_id = $1 AND x.paused_at = 0`, `x.agent_id`,
		`x.agent_id, ` + agentName + `, 'automation', '', '', '', 0`,
		"runs when it is woken; items that it processed since the backup are processed again"},
	{reeve.HeldScriptJob, `script_jobs x WHERE x.workspace_id = $1 AND x.closed_at = 0`, `x.id`,
		`x.id, ` + agentName + `, x.kind || ' (' || x.state || ')', x.request, x.user_id, '', x.created_at`,
		"continues, although its script may have been written since the backup"},
	{reeve.HeldNotification, `notifications x WHERE x.delivered_at = 0 AND x.next_at > 0 AND x.workspace_id || '' = $1`,
		`x.next_at`,
		`x.id, '', '', x.title, x.user_id, '', x.next_at`,
		"is sent to the webhook, which may have received the same id since the backup"},
}

// dueKinds are the kinds of held work that have a due time.
var dueKinds = []reeve.HeldKind{reeve.HeldWake, reeve.HeldSchedule, reeve.HeldNotification}

// HeldWork returns up to limit items of each kind that a workspace would continue after the hold, and the total number
// of each kind.
func (s System) HeldWork(ctx context.Context, workspace string,
	limit int) (work []HeldItem, counts map[reeve.HeldKind]int, err error) {
	counts = map[reeve.HeldKind]int{}
	for _, q := range heldQueries {
		list, err := queryAll(ctx, s.Snap, func(r scanner) (w HeldItem, err error) {
			var at int64
			err = r.Scan(&w.ID, &w.Agent, &w.Description, &w.Text, &w.UserID, &w.SessionID, &at)
			w.Kind, w.WorkspaceID, w.OnResume, w.At = q.kind, workspace, q.then, timeOrNil(at)
			w.Overdue = q.kind == reeve.HeldRun || slices.Contains(dueKinds, q.kind) && at <= reeve.Millis(s.now)
			return w, err
		}, `SELECT `+q.columns+` FROM `+q.from+` ORDER BY `+q.order+` LIMIT $2`, workspace, limit)
		if err != nil {
			return nil, nil, err
		}
		n := int64(len(list))
		if len(list) == limit {
			if n, _, err = queryOne(ctx, s.Snap, scanValue[int64], `SELECT count(*) FROM `+q.from, workspace); err != nil {
				return nil, nil, err
			}
		}
		work = append(work, list...)
		if n > 0 {
			counts[q.kind] = int(n)
		}
	}
	ops, err := s.OperationsInProgress(ctx, workspace)
	if err != nil || len(ops) == 0 {
		return work, counts, err
	}
	counts[reeve.HeldOperation] = len(ops)
	names, err := s.agentNames(ctx, workspace)
	if err != nil {
		return nil, nil, err
	}
	for _, op := range ops[:min(len(ops), limit)] {
		at := op.CreatedAt
		w := reeve.HeldWork{Kind: reeve.HeldOperation, ID: op.ID, WorkspaceID: workspace, Agent: names[op.AgentID],
			At: &at, Overdue: true,
			Description: string(op.State) + ", " + string(op.Effect) + ": " + op.Tool, OnResume: "is resumed"}
		if op.IsUncertainAfterRestore() {
			w.OnResume = "becomes unknown; a person must say whether it happened since the backup"
		}
		work = append(work, HeldItem{HeldWork: w})
	}
	return work, counts, nil
}

// agentNames returns the names of a workspace's agents by id.
func (s System) agentNames(ctx context.Context, workspace string) (map[string]string, error) {
	names := map[string]string{}
	_, err := queryAll(ctx, s.Snap, func(r scanner) (id string, err error) {
		var name string
		err = r.Scan(&id, &name)
		names[id] = name
		return id, err
	}, `SELECT id, name FROM agents WHERE workspace_id = $1`, workspace)
	return names, err
}

// OperationsInProgress returns a workspace's operations that are approved and not begun, or sent and without an
// outcome. Corrupt rows are skipped, so that a person can still decide on the others.
func (s System) OperationsInProgress(ctx context.Context, workspace string) ([]reeve.Operation, error) {
	return queryAll(ctx, s.Snap, skipCorrupt(s.Snap, scanOperation, nil), `SELECT `+operationColumns+` FROM calls
		WHERE state IN ('prepared', 'dispatched') AND workspace_id || '' = $1 ORDER BY next_attempt_at, id LIMIT $2`,
		workspace, math.MaxInt32)
}
