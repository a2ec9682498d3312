-- +goose Up
-- The queue is read in this order, a few at a time: what waits behind them must cost nothing.
DROP INDEX wakes_due;
CREATE INDEX wakes_due ON wakes (due_at, created_at, agent_id, session_id) WHERE state = 'queued';
-- A timer's session is its own, so that it alone finds the firings that wait.
CREATE INDEX wakes_timed ON wakes (session_id) WHERE state = 'queued' AND reason IN ('timer', 'recovery_catchup');

-- +goose Down
DROP INDEX wakes_timed;
DROP INDEX wakes_due;
CREATE INDEX wakes_due ON wakes (due_at) WHERE state = 'queued';
