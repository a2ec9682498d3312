-- +goose Up

-- What a tool returns, and which steps of a plan use the result of an earlier step.
ALTER TABLE tools ADD COLUMN output_schema TEXT NOT NULL DEFAULT '';
ALTER TABLE planned_calls ADD COLUMN depends_on TEXT NOT NULL DEFAULT '[]';
