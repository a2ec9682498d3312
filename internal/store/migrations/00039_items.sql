-- +goose Up
-- Items that one transaction enters have one time. Their entry ids say in which order they came.
ALTER TABLE items ADD COLUMN entry_id TEXT NOT NULL DEFAULT '';
DROP INDEX items_newest;
CREATE INDEX items_newest ON items (agent_id, created_at, entry_id, item_id);

-- What the inbox shows.
CREATE INDEX items_waiting ON items (workspace_id, created_at, entry_id, item_id) WHERE state = 'needs_attention';
CREATE INDEX errands_asking ON errands (workspace_id, id) WHERE state = 'asking';

-- The runs of an automation share one session. Of the files that each run kept for itself, the session gets the last of each path.
INSERT INTO session_files (workspace_id, session_id, path, size, body, created_at, updated_at)
  SELECT f.workspace_id, r.agent_id || ':session:automation', f.path, f.size, f.body, f.created_at, f.updated_at
  FROM session_files f JOIN runs r ON r.thread_id = f.session_id AND r.workspace_id = f.workspace_id JOIN automations m ON m.agent_id = r.agent_id
  WHERE r.thread_id = r.agent_id || ':run:' || r.id AND NOT EXISTS (SELECT 1 FROM session_files g JOIN runs n ON n.thread_id = g.session_id
    WHERE g.workspace_id = f.workspace_id AND g.path = f.path AND n.agent_id = r.agent_id AND n.id > r.id AND n.thread_id = n.agent_id || ':run:' || n.id)
  ON CONFLICT DO NOTHING;

-- +goose Down
DROP INDEX errands_asking;
DROP INDEX items_waiting;
DROP INDEX items_newest;
CREATE INDEX items_newest ON items (agent_id, created_at, item_id);
ALTER TABLE items DROP COLUMN entry_id;
