-- +goose Up
-- A session has one run at a time; see store.ScheduleLane.
CREATE UNIQUE INDEX runs_lane ON runs (agent_id, session_id) WHERE state IN ('running', 'parked');
CREATE INDEX wakes_workspace ON wakes (workspace_id) WHERE state = 'queued';

-- +goose Down
DROP INDEX wakes_workspace;
DROP INDEX runs_lane;
