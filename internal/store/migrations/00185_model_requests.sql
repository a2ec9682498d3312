-- +goose Up

-- What the model was asked at the beginning of a run, and again after an interruption. The requests of later steps
-- follow from it and from the run's messages. untrusted is 1 if it shows notes from an untrusted source.
CREATE TABLE model_requests (
	run_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	request TEXT NOT NULL,
	left_out TEXT NOT NULL,
	untrusted BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (run_id, number)
);
CREATE INDEX model_requests_created ON model_requests (created_at);
