package store

import (
	"context"
	"slices"
	"time"

	"reeve"
)

const workspaceColumns = `id, name, revision, stopped_at, stop_reason, created_at, ` +
	`COALESCE((SELECT held_at FROM database_state WHERE id = 1), 0), COALESCE((SELECT hold_reason FROM database_state
		WHERE id = 1), '')`

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
	w.StoppedAt, w.CreatedAt = timeOrNil(stopped), reeve.FromMillis(created)
	return w, nil
}

// InsertWorkspace inserts a workspace. It fails if the id exists.
func (t AgentsTx) InsertWorkspace(ctx context.Context, id, name string) (reeve.Workspace, error) {
	w := reeve.Workspace{ID: id, Name: name, Revision: 1, CreatedAt: t.now}
	n, err := t.tx.execCount(ctx,
		`INSERT INTO workspaces (id, name, revision, stopped_at, stop_reason, created_at) VALUES ($1, $2, $3, 0, '', $4)
			ON CONFLICT (id) DO NOTHING`,
		id, name, w.Revision, reeve.Millis(t.now))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.AlreadyExists, "workspace %q already exists", id)
	}
	return w, err
}

// GetWorkspace returns a workspace.
func (s Agents) GetWorkspace(ctx context.Context, id string) (reeve.Workspace, error) {
	w, ok, err := queryOne(ctx, s.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces WHERE id = $1`, id)
	if err == nil && !ok {
		err = notFound("workspace", id)
	}
	return w, err
}

// ListWorkspaces returns all workspaces.
func (s Agents) ListWorkspaces(ctx context.Context) ([]reeve.Workspace, error) {
	return queryAll(ctx, s.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces ORDER BY id`)
}

// WorkspaceIDs returns the ids of all workspaces.
func (s Agents) WorkspaceIDs(ctx context.Context) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string], `SELECT id FROM workspaces ORDER BY id`)
}

// IncrementRevision increments a workspace's revision, once in a transaction. Every change that can affect a decision
// of the gate must increment the revision in the same transaction: changes of tools, agents, attachments, profiles,
// budgets, subscriptions, secrets and the kill switch, and the cancellation of a run. A call that the gate has decided
// on before the change can then not be recorded after it.
func (t *Tx) IncrementRevision(ctx context.Context, workspace string) error {
	if slices.Contains(t.touched, workspace) {
		return nil
	}
	t.touched = append(t.touched, workspace)
	for _, topic := range []Topic{TopicAgents, TopicTools, TopicProfiles, TopicSubscriptions, TopicControl} {
		t.Announce(workspace, topic, "", "")
	}
	return t.exec(ctx, `UPDATE workspaces SET revision = revision + 1 WHERE id = $1`, workspace)
}

// BeginRevision begins a change that depends on current data and can affect a decision of the gate, such as a change of
// an agent's settings. It serializes such changes within a workspace, so that each reads what the previous one wrote.
// Otherwise a concurrent change could write back old settings and undo a stop. It locks the node before the workspace,
// like a call that writes to the journal. Agents and their rows come after the workspace.
func (t *Tx) BeginRevision(ctx context.Context, workspace string) error {
	if err := t.lockNode(ctx); err != nil {
		return err
	}
	return t.IncrementRevision(ctx, workspace)
}

// IncrementAllRevisions increments the revision of every workspace.
func (t *Tx) IncrementAllRevisions(ctx context.Context) error {
	return t.exec(ctx, `UPDATE workspaces SET revision = revision + 1`)
}

// StopWorkspace turns the kill switch on or, if at is zero, off. Turning it on skips queued wakes; see skipWakes.
func (t AgentsTx) StopWorkspace(ctx context.Context, id string, at time.Time, reason string) error {
	if err := t.tx.IncrementRevision(ctx, id); err != nil {
		return err
	}
	if err := t.tx.exec(ctx, `UPDATE workspaces SET stopped_at = $2, stop_reason = $3 WHERE id = $1`, id,
		reeve.Millis(at), reason); err != nil || at.IsZero() {
		return err
	}
	return t.tx.Queue().skipWakes(ctx, id, "", "everything in the workspace is stopped")
}

// timeOrNil converts milliseconds to a time, or 0 to nil.
func timeOrNil(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := reeve.FromMillis(ms)
	return &t
}

// millisOrZero converts a time to milliseconds, or nil to 0.
func millisOrZero(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return reeve.Millis(*t)
}
