-- +goose Up
-- Scripts never change: a version is written once, and automations point to one.
CREATE TABLE scripts (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  major        BIGINT NOT NULL,
  minor        BIGINT NOT NULL,
  source       TEXT NOT NULL,
  language     TEXT NOT NULL,
  comment      TEXT NOT NULL,
  created_by   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  UNIQUE (agent_id, major, minor)
);
-- An agent with a row here has a script for a brain.
CREATE TABLE automations (
  agent_id     TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  script_id    TEXT NOT NULL,
  paused_at    BIGINT NOT NULL,
  paused_run   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
-- What the brain of a run notes of it; there before the run is, if somebody asked for a certain version or type.
CREATE TABLE script_runs (
  run_key      TEXT PRIMARY KEY,
  run_id       TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  script_id    TEXT NOT NULL,
  type         TEXT NOT NULL,
  plan_of      TEXT NOT NULL,
  class        TEXT NOT NULL,
  progress     TEXT NOT NULL,
  log          TEXT NOT NULL
);
CREATE INDEX script_runs_run ON script_runs (run_id);
CREATE TABLE items (
  agent_id     TEXT NOT NULL,
  item_id      TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  title        TEXT NOT NULL,
  state        TEXT NOT NULL,
  attempt      BIGINT NOT NULL,
  created_by   TEXT NOT NULL,
  first_run    TEXT NOT NULL,
  last_run     TEXT NOT NULL,
  code         TEXT NOT NULL,
  message      TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (agent_id, item_id)
);
CREATE INDEX items_newest ON items (agent_id, created_at, item_id);
CREATE TABLE item_attempts (
  agent_id    TEXT NOT NULL,
  item_id     TEXT NOT NULL,
  attempt     BIGINT NOT NULL,
  state       TEXT NOT NULL,
  first_run   TEXT NOT NULL,
  last_run    TEXT NOT NULL,
  script_id   TEXT NOT NULL,
  code        TEXT NOT NULL,
  message     TEXT NOT NULL,
  started_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  PRIMARY KEY (agent_id, item_id, attempt)
);
-- What dry runs would have done.
CREATE TABLE planned_calls (
  run_id       TEXT NOT NULL,
  ordinal      BIGINT NOT NULL,
  workspace_id TEXT NOT NULL,
  item_id      TEXT NOT NULL,
  title        TEXT NOT NULL,
  attempt      BIGINT NOT NULL,
  tool         TEXT NOT NULL,
  args         TEXT NOT NULL,
  preview      TEXT NOT NULL,
  base         TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  PRIMARY KEY (run_id, ordinal)
);
-- A run of many calls is asked before each whether one of them waits.
CREATE INDEX operations_run_waits ON operations (run_id) WHERE state IN ('parked', 'unknown');

-- +goose Down
DROP INDEX operations_run_waits;
DROP TABLE planned_calls;
DROP TABLE item_attempts;
DROP TABLE items;
DROP TABLE script_runs;
DROP TABLE automations;
DROP TABLE scripts;
