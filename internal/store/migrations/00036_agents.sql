-- +goose Up
-- An agent's operations are picked out of its workspace's, whose index names the agent: a fifth of a second among a million. One of their own was some 5 µs of every call.
DROP INDEX operations_agent;
DROP INDEX operations_workspace;
CREATE INDEX operations_workspace ON operations (workspace_id, created_at, id, agent_id);

-- +goose Down
DROP INDEX operations_workspace;
CREATE INDEX operations_workspace ON operations (workspace_id, created_at, id);
CREATE INDEX operations_agent ON operations (agent_id, created_at, id);
