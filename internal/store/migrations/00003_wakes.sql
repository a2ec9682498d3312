-- +goose Up
ALTER TABLE agents ADD COLUMN mode TEXT NOT NULL DEFAULT 'hybrid';
ALTER TABLE agents ADD COLUMN throttle_ms BIGINT NOT NULL DEFAULT 0;

-- What an agent remembers of itself, the same on every node.
CREATE TABLE agent_states (
  agent_id   TEXT PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  revision   BIGINT NOT NULL,
  slots      TEXT NOT NULL,
  head       TEXT NOT NULL,
  summary    TEXT NOT NULL,
  processed  TEXT NOT NULL,
  node       TEXT NOT NULL,
  counter    BIGINT NOT NULL,
  clock      TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- How an agent is on this node. Setting active_run where it is empty is what makes one run at a time.
CREATE TABLE agent_runtimes (
  agent_id    TEXT PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  active_run  TEXT NOT NULL,
  failures    BIGINT NOT NULL,
  last_run_at BIGINT NOT NULL
);

CREATE TABLE subscriptions (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  agent_id     TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  class        TEXT NOT NULL,
  name         TEXT NOT NULL,
  predicate    TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX subscriptions_token ON subscriptions (workspace_id, class, name);
CREATE INDEX subscriptions_agent ON subscriptions (agent_id);

-- The queue, and the log of run keys: a key that is here is never queued again.
CREATE TABLE wakes (
  run_key      TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  reason       TEXT NOT NULL,
  reason_id    TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  input        TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  class        TEXT NOT NULL,
  name         TEXT NOT NULL,
  origins      TEXT NOT NULL,
  scheduled_at BIGINT NOT NULL,
  due_at       BIGINT NOT NULL,
  state        TEXT NOT NULL,
  why          TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX wakes_due ON wakes (due_at) WHERE state = 'queued';
CREATE INDEX wakes_agent ON wakes (agent_id, session_id) WHERE state = 'queued';
CREATE INDEX wakes_run ON wakes (run_id) WHERE run_id <> '';

CREATE TABLE runs (
  id           TEXT PRIMARY KEY,
  run_key      TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  reason       TEXT NOT NULL,
  reason_id    TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  input        TEXT NOT NULL,
  origins      TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  state        TEXT NOT NULL,
  output       TEXT NOT NULL,
  code         TEXT NOT NULL,
  message      TEXT NOT NULL,
  wakes        BIGINT NOT NULL,
  attempts     BIGINT NOT NULL,
  spent        TEXT NOT NULL,
  owner        TEXT NOT NULL,
  scheduled_at BIGINT NOT NULL,
  started_at   BIGINT NOT NULL,
  finished_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX runs_key ON runs (run_key);
CREATE INDEX runs_workspace ON runs (workspace_id, id);
CREATE INDEX runs_agent ON runs (agent_id, id);
CREATE INDEX runs_reason ON runs (reason_id, id) WHERE reason_id <> '';
CREATE INDEX runs_open ON runs (state) WHERE state IN ('running', 'parked');

CREATE TABLE timers (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  agent_id     TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  user_id      TEXT NOT NULL,
  name         TEXT NOT NULL,
  goal         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  value        TEXT NOT NULL,
  zone         TEXT NOT NULL,
  misfire      TEXT NOT NULL,
  notify       TEXT NOT NULL,
  origin       TEXT NOT NULL,
  state        TEXT NOT NULL,
  next_at      BIGINT NOT NULL,
  last_at      BIGINT NOT NULL,
  failures     BIGINT NOT NULL,
  missed       BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE INDEX timers_due ON timers (next_at) WHERE state = 'active';
CREATE INDEX timers_user ON timers (workspace_id, user_id, id);
CREATE INDEX timers_agent ON timers (agent_id);

-- Firings that nobody was there for, for people to see.
CREATE TABLE missed (
  timer_id     TEXT NOT NULL REFERENCES timers (id) ON DELETE CASCADE,
  scheduled_at BIGINT NOT NULL,
  run_key      TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (timer_id, scheduled_at)
);

CREATE TABLE notifications (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  user_id      TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  timer_id     TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  session      TEXT NOT NULL,
  title        TEXT NOT NULL,
  body         TEXT NOT NULL,
  read_at      BIGINT NOT NULL,
  delivered_at BIGINT NOT NULL,
  tries        BIGINT NOT NULL,
  next_at      BIGINT NOT NULL,
  created_at   BIGINT NOT NULL
);
-- A run tells its person at most once.
CREATE UNIQUE INDEX notifications_run ON notifications (run_id) WHERE run_id <> '';
CREATE INDEX notifications_user ON notifications (workspace_id, user_id, id);
CREATE INDEX notifications_due ON notifications (next_at) WHERE delivered_at = 0 AND next_at > 0;

-- +goose Down
DROP TABLE notifications;
DROP TABLE missed;
DROP TABLE timers;
DROP TABLE runs;
DROP TABLE wakes;
DROP TABLE subscriptions;
DROP TABLE agent_runtimes;
DROP TABLE agent_states;
ALTER TABLE agents DROP COLUMN throttle_ms;
ALTER TABLE agents DROP COLUMN mode;
