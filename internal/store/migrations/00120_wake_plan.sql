-- +goose Up

-- Until when an agent sleeps, and the timer of its planned wake.
ALTER TABLE agent_states ADD COLUMN sleep_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agent_states ADD COLUMN wake_timer TEXT NOT NULL DEFAULT '';
