-- +goose Up
-- What agents may only propose. state is what a person, or the agent by proposing it anew, made of it: pending, rejected, accepted
-- or stale. What became of an accepted one is in its operation.
CREATE TABLE proposals (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  set_id       TEXT NOT NULL,
  ordinal      BIGINT NOT NULL,
  round        BIGINT NOT NULL,
  agent_id     TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  call_id      TEXT NOT NULL,
  tool         TEXT NOT NULL,
  args         TEXT NOT NULL,
  args_hash    TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  settings     TEXT NOT NULL,
  base         TEXT NOT NULL,
  preview      TEXT NOT NULL,
  reason       TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  state        TEXT NOT NULL,
  decided_by   TEXT NOT NULL,
  comment      TEXT NOT NULL,
  decided_at   BIGINT NOT NULL,
  reopened_by  TEXT NOT NULL,
  reopened_at  BIGINT NOT NULL,
  operation_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  UNIQUE (set_id, ordinal),
  UNIQUE (agent_id, tool, args_hash, round)
);
CREATE INDEX proposals_workspace ON proposals (workspace_id, id);
CREATE INDEX proposals_pending ON proposals (workspace_id, id) WHERE state = 'pending';
CREATE INDEX proposals_set ON proposals (workspace_id, id) WHERE ordinal = 1;
CREATE INDEX proposals_operation ON proposals (operation_id) WHERE operation_id <> '';

-- +goose Down
DROP TABLE proposals;
