package store

import (
	"context"

	"reeve"
)

const automationItemColumns = `agent_id, item_id, workspace_id, title, state, attempt, created_by, first_run, last_run,
	code, message, created_at, updated_at`

func scanAutomationItem(r scanner) (v reeve.Item, err error) {
	defer wrapCorrupt("items", &v.ID, &err)
	var created, updated int64
	err = r.Scan(&v.AgentID, &v.ID, &v.WorkspaceID, &v.Title, &v.State, &v.Attempt, &v.CreatedBy, &v.FirstRun,
		&v.LastRun, &v.Code, &v.Message, &created, &updated)
	v.CreatedAt, v.UpdatedAt = reeve.FromMillis(created), reeve.FromMillis(updated)
	return v, err
}

// StartItem starts or continues an attempt at an item. It is idempotent. It returns a Conflict if the item is settled,
// is at another attempt, or another run works on it.
func (t AutomationsTx) StartItem(ctx context.Context, v reeve.Item, script string) error {
	t.tx.announceInbox(v.WorkspaceID, TopicItems, "", v.LastRun)
	n, err := t.tx.execCount(ctx, `INSERT INTO items (`+automationItemColumns+`, attempt_run, script_id, started_at,
		finished_at, entry_id)
			VALUES ($1, $2, $3, $4, 'processing', $5, $6, $7, $7, '', '', $8, $8, $7, $9, $8, 0, $10)
		ON CONFLICT (agent_id, item_id) DO UPDATE SET title = $4, state = 'processing', first_run = CASE
		WHEN items.first_run = '' THEN $7 ELSE items.first_run END,
			last_run = $7, code = '', message = '', updated_at = $8, attempt_run = CASE WHEN items.attempt_run = ''
			THEN $7 ELSE items.attempt_run END,
			script_id = $9, finished_at = 0
		WHERE items.state IN ('processing', 'failed') AND items.attempt = $5 AND (items.last_run = $7
		OR items.state = 'failed'
			OR NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = items.last_run AND r.state IN ('running', 'parked')))`,
		v.AgentID, v.ID, v.WorkspaceID, v.Title, v.Attempt, v.CreatedBy, v.LastRun, reeve.Millis(t.now), script,
		t.NewID(reeve.PrefixEntry))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.Conflict, "item %q was settled meanwhile, or another run works on it", v.ID)
	}
	return err
}

// FinishItem stores the state in which a run leaves an item: done, failed or needs_attention. It is idempotent and does
// nothing if the item is no longer processing, for example because a person has settled it.
func (t AutomationsTx) FinishItem(ctx context.Context, v reeve.Item) error {
	t.tx.announceInbox(v.WorkspaceID, TopicItems, "", v.LastRun)
	if err := reeve.ItemProcessing.CheckTransition(v.State); err != nil {
		return err
	}
	return t.tx.exec(ctx, `UPDATE items SET state = $4, code = $5, message = $6, updated_at = $7, finished_at = $7
		WHERE agent_id = $1 AND item_id = $2 AND attempt = $3 AND state = 'processing'`,
		v.AgentID, v.ID, v.Attempt, string(v.State), string(v.Code), reeve.SanitizeText(v.Message), reeve.Millis(t.now))
}

// ResolveItem applies a person's decision on an item. If to is processing, it starts another attempt and stores the
// previous one in item_attempts. It returns a Conflict if the item has changed since it was read.
func (t AutomationsTx) ResolveItem(ctx context.Context, was reeve.Item, to reeve.ItemState,
	why string) (reeve.Item, error) {
	t.tx.announceInbox(was.WorkspaceID, TopicItems, "", was.LastRun)
	if err := was.State.CheckTransition(to); err != nil {
		return was, err
	}
	is := was
	is.State, is.Code, is.Message, is.UpdatedAt = to, "", why, t.now
	set := `finished_at = $8`
	if to == reeve.ItemProcessing {
		is.Attempt++
		set = `attempt_run = '', script_id = '', started_at = $8, finished_at = 0`
		if err := t.tx.exec(ctx, `INSERT INTO item_attempts (agent_id, item_id, attempt, state, first_run, last_run,
			script_id, code, message, started_at, finished_at)
			SELECT agent_id, item_id, attempt, state, attempt_run, last_run, script_id, code, message, started_at,
			finished_at
			FROM items WHERE agent_id = $1 AND item_id = $2 AND state = $3 AND attempt = $4`, was.AgentID, was.ID,
			string(was.State), was.Attempt); err != nil {
			return was, err
		}
	}
	n, err := t.tx.execCount(ctx, `UPDATE items SET state = $5, attempt = $6, code = '', message = $7,
		updated_at = $8, `+
		set+` WHERE agent_id = $1 AND item_id = $2 AND state = $3 AND attempt = $4`,
		was.AgentID, was.ID, string(was.State), was.Attempt, string(is.State), is.Attempt, reeve.SanitizeText(why),
		reeve.Millis(t.now))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.Conflict, "item %q has changed since it was read",
			was.ID).Hintf("read the item again, then decide")
	}
	if err != nil {
		return was, err
	}
	return is, nil
}

// GetItem returns an item of an automation.
func (s Automations) GetItem(ctx context.Context, agent, id string) (reeve.Item, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanAutomationItem, `SELECT `+automationItemColumns+
		` FROM items WHERE agent_id = $1 AND item_id = $2`, agent, id)
	if err == nil && !ok {
		err = notFound("item", id)
	}
	return v, err
}

// WaitingItems returns a workspace's items that need attention, newest first.
func (s Automations) WaitingItems(ctx context.Context, workspace string, limit int) ([]reeve.WaitingItem, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v reeve.WaitingItem, err error) {
		defer wrapCorrupt("items", &v.ID, &err)
		var created, updated int64
		err = r.Scan(&v.AgentID, &v.ID, &v.WorkspaceID, &v.Title, &v.State, &v.Attempt, &v.CreatedBy, &v.FirstRun,
			&v.LastRun, &v.Code, &v.Message,
			&created, &updated, &v.Automation)
		v.CreatedAt, v.UpdatedAt = reeve.FromMillis(created), reeve.FromMillis(updated)
		return v, err
	}, `SELECT i.agent_id, i.item_id, i.workspace_id, i.title, i.state, i.attempt, i.created_by, i.first_run,
		i.last_run, i.code, i.message,
			i.created_at, i.updated_at, a.name
		FROM items i JOIN agents a ON a.id = i.agent_id WHERE i.workspace_id = $1 AND i.state = 'needs_attention'
		ORDER BY i.created_at DESC, i.entry_id DESC, i.item_id DESC LIMIT $2`, workspace, limit)
}

// ListItems returns a page of an automation's items, newest first, and the total number that match. Among items that
// were created at the same time, the one inserted last comes first.
func (s Automations) ListItems(ctx context.Context, agent string, f reeve.ItemFilter) (l reeve.ItemList, err error) {
	const where = ` FROM items WHERE agent_id = $1 AND ($2 = '' OR state = $2) AND ($3 = '' OR item_id = $3)`
	if l.Items, err = queryAll(ctx, s.Snap, scanAutomationItem, `SELECT `+automationItemColumns+where+
		` ORDER BY created_at DESC, entry_id DESC, item_id DESC LIMIT $4 OFFSET $5`,
		agent, string(f.State), f.ID, f.Limit, f.Offset); err != nil {
		return l, err
	}
	l.Total, _, err = queryOne(ctx, s.Snap, scanValue[int], `SELECT count(*)`+where, agent, string(f.State), f.ID)
	l.HasMore = f.Offset+len(l.Items) < l.Total
	return l, err
}

// ListAttempts returns all attempts at an item, oldest first.
func (s Automations) ListAttempts(ctx context.Context, agent, id string) ([]reeve.ItemAttempt, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v reeve.ItemAttempt, err error) {
		var script string
		var version reeve.ScriptVersion
		var started, finished int64
		err = r.Scan(&v.Attempt, &v.State, &v.FirstRun, &v.LastRun, &script, &version.Major, &version.Minor, &v.Code,
			&v.Message, &started, &finished)
		if script != "" {
			v.Version = version.Version()
		}
		v.StartedAt, v.FinishedAt = reeve.FromMillis(started), timeOrNil(finished)
		return v, err
	}, `SELECT i.attempt, i.state, i.first_run, i.last_run, i.script_id, COALESCE(s.major, 0), COALESCE(s.minor, 0),
		i.code, i.message, i.started_at, i.finished_at
		FROM (SELECT attempt, state, first_run, last_run, script_id, code, message, started_at, finished_at
		FROM item_attempts WHERE agent_id = $1 AND item_id = $2
			UNION ALL SELECT attempt, state, attempt_run, CASE WHEN attempt_run = '' THEN '' ELSE last_run END,
			script_id, code, message, started_at, finished_at
				FROM items WHERE agent_id = $1 AND item_id = $2) i
		LEFT JOIN scripts s ON s.id = i.script_id ORDER BY i.attempt`, agent, id)
}
