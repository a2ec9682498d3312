package store

import (
	"context"
	"slices"
	"time"

	"reeve"
)

const workspaceColumns = `id, name, revision, stopped_at, stop_reason, created_at, ` +
	`COALESCE((SELECT held_at FROM database_state WHERE id = 1), 0), COALESCE((SELECT hold_reason FROM database_state WHERE id = 1), '')`

func scanWorkspace(r scanner) (w reeve.Workspace, err error) {
	defer wrapCorrupt("workspaces", &w.ID, &err)
	var stopped, created, held int64
	var reason string
	if err := r.Scan(&w.ID, &w.Name, &w.Revision, &stopped, &w.StopReason, &created, &held, &reason); err != nil {
		return w, err
	}
	if held != 0 {
		w.Hold = &reeve.Hold{HeldAt: reeve.FromMillis(held), Reason: reason}
	}
	w.StoppedAt, w.CreatedAt = optional(stopped), reeve.FromMillis(created)
	return w, nil
}

// InsertWorkspace adds a workspace.
func (t AgentsTx) InsertWorkspace(ctx context.Context, id, name string) (reeve.Workspace, error) {
	w := reeve.Workspace{ID: id, Name: name, Revision: 1, CreatedAt: t.now}
	n, err := t.tx.affect(ctx,
		`INSERT INTO workspaces (id, name, revision, stopped_at, stop_reason, created_at) VALUES ($1, $2, $3, 0, '', $4) ON CONFLICT (id) DO NOTHING`,
		id, name, w.Revision, reeve.Millis(t.now))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.AlreadyExists, "workspace %q is there already", id)
	}
	return w, err
}

// GetWorkspace reads a workspace.
func (s Agents) GetWorkspace(ctx context.Context, id string) (reeve.Workspace, error) {
	w, ok, err := one(ctx, s.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces WHERE id = $1`, id)
	if err == nil && !ok {
		err = notFound("workspace", id)
	}
	return w, err
}

// ListWorkspaces reads every workspace.
func (s Agents) ListWorkspaces(ctx context.Context) ([]reeve.Workspace, error) {
	return all(ctx, s.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces ORDER BY id`)
}

// WorkspaceIDs reads the id of every workspace.
func (s Agents) WorkspaceIDs(ctx context.Context) ([]string, error) {
	return all(ctx, s.Snap, value[string], `SELECT id FROM workspaces ORDER BY id`)
}

// Touch counts a change to what calls are judged by, once in a transaction. Every change to tools, agents, attachments,
// profiles, budgets, subscriptions, secrets and the kill switch, and the end of a run that somebody cancels, touches
// its workspace in the same transaction, so that a call judged before it cannot be recorded after it.
func (t *Tx) Touch(ctx context.Context, workspace string) error {
	if slices.Contains(t.touched, workspace) {
		return nil
	}
	t.touched = append(t.touched, workspace)
	return t.exec(ctx, `UPDATE workspaces SET revision = revision + 1 WHERE id = $1`, workspace)
}

// Revise begins a change to what calls are judged by that is made of what is there, such as one of an agent's settings.
// A workspace's are made one after another, and each reads what the one before has left: where transactions overlap, it
// would otherwise write back what it read before that, and a stop would be gone. The node comes before the workspace,
// as in a call that writes to the journal, and the workspace before its agents and what is theirs: one order of locks.
func (t *Tx) Revise(ctx context.Context, workspace string) error {
	if err := t.lockNode(ctx); err != nil {
		return err
	}
	return t.Touch(ctx, workspace)
}

// TouchAll is Touch for every workspace.
func (t *Tx) TouchAll(ctx context.Context) error {
	return t.exec(ctx, `UPDATE workspaces SET revision = revision + 1`)
}

// StopWorkspace turns the kill switch on (a time) or off (the zero time). What is queued then is skipped, see
// skipWakes.
func (t AgentsTx) StopWorkspace(ctx context.Context, id string, at time.Time, reason string) error {
	if err := t.tx.Touch(ctx, id); err != nil {
		return err
	}
	if err := t.tx.exec(ctx, `UPDATE workspaces SET stopped_at = $2, stop_reason = $3 WHERE id = $1`, id,
		reeve.Millis(at), reason); err != nil || at.IsZero() {
		return err
	}
	return t.tx.Queue().skipWakes(ctx, id, "", "everything in the workspace is stopped")
}

// optional is a time that may be missing.
func optional(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := reeve.FromMillis(ms)
	return &t
}

// orZero is the inverse of optional.
func orZero(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return reeve.Millis(*t)
}
