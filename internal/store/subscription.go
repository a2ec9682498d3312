package store

import (
	"context"

	"reeve"
)

const subscriptionColumns = `id, workspace_id, agent_id, user_id, class, name, predicate, created_at`

func scanSubscription(r scanner) (v reeve.Subscription, err error) {
	defer wrapCorrupt("subscriptions", &v.ID, &err)
	var created int64
	err = r.Scan(&v.ID, &v.WorkspaceID, &v.AgentID, &v.UserID, &v.Token.Class, &v.Token.Name, &v.Predicate, &created)
	v.CreatedAt = reeve.FromMillis(created)
	return v, err
}

// InsertSubscription inserts a subscription and stamps it. It fails if the agent is destroyed.
func (t QueueTx) InsertSubscription(ctx context.Context, v reeve.Subscription) error {
	t.tx.Announce(v.WorkspaceID, TopicSubscriptions, v.ID, "")
	// the gate caches whether the workspace has subscriptions
	if err := t.tx.BeginRevision(ctx, v.WorkspaceID); err != nil {
		return err
	}
	if err := t.lockLiveAgent(ctx, v.WorkspaceID, v.AgentID); err != nil {
		return err
	}
	if err := t.tx.exec(ctx, `INSERT INTO subscriptions (`+subscriptionColumns+
		`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		v.ID, v.WorkspaceID, v.AgentID, v.UserID, string(v.Token.Class), v.Token.Name, v.Predicate,
		reeve.Millis(t.now)); err != nil {
		return err
	}
	return t.tx.stamp(ctx, SharedSubscriptions, v.ID)
}

// GetSubscription returns a subscription of a workspace.
func (s Queue) GetSubscription(ctx context.Context, workspace, id string) (reeve.Subscription, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanSubscription, `SELECT `+subscriptionColumns+
		` FROM subscriptions WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && !ok {
		err = notFound("subscription", id)
	}
	return v, err
}

// ListSubscriptions returns an agent's subscriptions.
func (s Queue) ListSubscriptions(ctx context.Context, workspace, agent string) ([]reeve.Subscription, error) {
	return queryAll(ctx, s.Snap, scanSubscription, `SELECT `+subscriptionColumns+
		` FROM subscriptions WHERE workspace_id = $1 AND agent_id = $2 ORDER BY id`, workspace, agent)
}

// ListWorkspaceSubscriptions returns subscriptions of a workspace, up to a limit.
func (s Queue) ListWorkspaceSubscriptions(ctx context.Context, workspace string,
	limit int) ([]reeve.Subscription, error) {
	return queryAll(ctx, s.Snap, scanSubscription, `SELECT `+subscriptionColumns+
		` FROM subscriptions WHERE workspace_id = $1 ORDER BY class, name LIMIT $2`, workspace, limit)
}

// DeleteSubscription deletes a subscription.
func (t QueueTx) DeleteSubscription(ctx context.Context, workspace, id string) error {
	t.tx.Announce(workspace, TopicSubscriptions, id, "")
	if err := t.tx.BeginRevision(ctx, workspace); err != nil {
		return err
	}
	if err := t.tx.recordRemoval(ctx, SharedSubscriptions, workspace, id); err != nil {
		return err
	}
	n, err := t.tx.execCount(ctx, `DELETE FROM subscriptions WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && n == 0 {
		return notFound("subscription", id)
	}
	return err
}

// maxEventsSearched is the number of newest events in which ListChangesOf looks for a token.
const maxEventsSearched = 5000

// ListChangesOf returns the ids of the newest changes that announced a token, newest first. It finds only those among
// the newest events of the workspace.
func (s Queue) ListChangesOf(ctx context.Context, workspace string, t reeve.Token, limit int) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string], `SELECT operation_id FROM (SELECT id, class, name, operation_id
		FROM events WHERE workspace_id = $1 ORDER BY id DESC LIMIT $2) AS newest
		WHERE class = $3 AND name = $4 GROUP BY operation_id ORDER BY MAX(id) DESC LIMIT $5`,
		workspace, maxEventsSearched, string(t.Class), t.Name, limit)
}

// ChangedIDs returns the ids of the entities in an operation's events.
func (s Queue) ChangedIDs(ctx context.Context, workspace, operation string) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string],
		`SELECT DISTINCT name FROM events WHERE workspace_id = $1 AND operation_id = $2 AND class = 'id' ORDER BY name`,
		workspace, operation)
}

// HasSubscriptions reports whether a workspace has subscriptions.
func (s Queue) HasSubscriptions(ctx context.Context, workspace string) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT id FROM subscriptions
		WHERE workspace_id = $1 LIMIT 1`,
		workspace)
	return ok, err
}
