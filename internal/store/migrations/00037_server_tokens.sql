-- +goose Up
-- Server tokens are those that servers keep in their data directories. They are valid in every workspace. No API sets the column: a server
-- marks its own token when it starts. Names never decided it safely, because anyone who makes a token chooses its name.
ALTER TABLE access_tokens ADD COLUMN server BIGINT NOT NULL DEFAULT 0;
-- Tokens called owner were let into workspaces that were made after them. A genuine server token gets all workspaces back at the start.
DELETE FROM access_token_workspaces WHERE EXISTS (SELECT 1 FROM access_tokens t, workspaces w
  WHERE t.id = token_id AND w.id = workspace_id AND t.name = 'owner' AND t.user_name = 'owner' AND t.role = 'owner' AND w.created_at > t.created_at);

-- 1 from the first attached tool on: the agent has the tools attached to it and no default ones, also when none is left.
ALTER TABLE agents ADD COLUMN own_tools BIGINT NOT NULL DEFAULT 0;
UPDATE agents SET own_tools = 1 WHERE id IN (SELECT agent_id FROM agent_tools);

-- +goose Down
ALTER TABLE agents DROP COLUMN own_tools;
INSERT INTO access_token_workspaces (token_id, workspace_id)
  SELECT t.id, w.id FROM access_tokens t, workspaces w WHERE t.server = 1 ON CONFLICT DO NOTHING;
ALTER TABLE access_tokens DROP COLUMN server;
