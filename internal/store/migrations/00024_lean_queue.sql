-- +goose Up
-- Every wake is written into these and taken out again, and others find the same: a timer's wakes are found by its agent and session, and those of
-- a workspace, which are looked for when it is stopped, among all that are queued.
DROP INDEX wakes_timed;
DROP INDEX wakes_workspace;

-- +goose Down
CREATE INDEX wakes_workspace ON wakes (workspace_id) WHERE state = 'queued';
CREATE INDEX wakes_timed ON wakes (session_id) WHERE state = 'queued' AND reason IN ('timer', 'recovery_catchup');
