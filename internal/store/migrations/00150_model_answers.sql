-- +goose Up

-- The answers of models that tools asked within a run. A tool that is called again after a crash does not ask, or pay,
-- again.
CREATE TABLE model_answers (
	run_id TEXT NOT NULL,
	hash TEXT NOT NULL,
	workspace_id TEXT NOT NULL,
	answer TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (run_id, hash)
);
CREATE INDEX model_answers_created ON model_answers (created_at);
