-- +goose Up
-- Which run has applied a plan: a plan is applied once, whoever asks.
CREATE INDEX script_runs_plan ON script_runs (plan_of) WHERE plan_of <> '';

-- +goose Down
DROP INDEX script_runs_plan;
