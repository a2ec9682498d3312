-- +goose Up
ALTER TABLE automations ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE scripts ADD COLUMN errand_id TEXT NOT NULL DEFAULT '';
-- What an automation's failures have led to. The row is written with the end of the run that failed, and gone when one succeeds.
CREATE TABLE troubles (
  agent_id     TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  class        TEXT NOT NULL,
  code         TEXT NOT NULL,
  message      TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  root_id      TEXT NOT NULL,
  tries        BIGINT NOT NULL,
  fixes        BIGINT NOT NULL,
  retry_at     BIGINT NOT NULL,
  retry_key    TEXT NOT NULL,
  stopped_at   BIGINT NOT NULL,
  errand_id      TEXT NOT NULL,
  updated_at   BIGINT NOT NULL
);
-- What the planner and the maintainer are to do.
CREATE TABLE errands (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  kind         TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  worker_id    TEXT NOT NULL,
  script_id    TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  run_key      TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  request      TEXT NOT NULL,
  state        TEXT NOT NULL,
  question     TEXT NOT NULL,
  talk         TEXT NOT NULL,
  result_id    TEXT NOT NULL,
  timer_id     TEXT NOT NULL,
  message      TEXT NOT NULL,
  tries        BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  closed_at    BIGINT NOT NULL
);
-- A version is repaired once.
CREATE UNIQUE INDEX errands_repair ON errands (agent_id, script_id) WHERE kind = 'repair';
CREATE UNIQUE INDEX errands_run ON errands (run_key);
CREATE INDEX errands_agent ON errands (agent_id, id);

-- +goose Down
DROP TABLE errands;
DROP TABLE troubles;
ALTER TABLE scripts DROP COLUMN errand_id;
ALTER TABLE automations DROP COLUMN owner;
