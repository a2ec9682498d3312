-- +goose Up
-- What is asked for is found, however much there is beside it.
CREATE INDEX events_operation ON events (operation_id) WHERE class = 'id';
CREATE INDEX wakes_history ON wakes (agent_id, created_at DESC, run_key);
CREATE INDEX script_runs_version ON script_runs (agent_id, script_id);
CREATE INDEX approvals_pending ON approvals (workspace_id, id) WHERE state = 'pending';
-- These have the order in which they are read, or an index of all there is would be read for it.
DROP INDEX operations_inbox;
CREATE INDEX operations_inbox ON operations (workspace_id, created_at, id) WHERE state IN ('parked', 'unknown');
DROP INDEX time_entries_running;
CREATE INDEX time_entries_running ON time_entries (workspace_id, user_id, started_at, id) WHERE deleted_at = 0 AND ended_at = 0;

-- +goose Down
DROP INDEX time_entries_running;
CREATE INDEX time_entries_running ON time_entries (workspace_id, user_id) WHERE deleted_at = 0 AND ended_at = 0;
DROP INDEX operations_inbox;
CREATE INDEX operations_inbox ON operations (workspace_id, created_at) WHERE state IN ('parked', 'unknown');
DROP INDEX approvals_pending;
DROP INDEX script_runs_version;
DROP INDEX wakes_history;
DROP INDEX events_operation;
