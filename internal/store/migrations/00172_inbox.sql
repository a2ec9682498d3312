-- +goose Up

CREATE INDEX timers_failed ON timers (workspace_id, id) WHERE state = 'disabled';
