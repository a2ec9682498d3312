-- +goose Up
-- Text, bigint and bytea mean the same to both engines. Times are UTC milliseconds, 0 for none; JSON is text.
CREATE TABLE workspaces (
  id          TEXT PRIMARY KEY,
  name        TEXT NOT NULL,
  revision    BIGINT NOT NULL,
  stopped_at  BIGINT NOT NULL,
  stop_reason TEXT NOT NULL,
  created_at  BIGINT NOT NULL
);

CREATE TABLE processes (
  id           TEXT PRIMARY KEY,
  heartbeat_at BIGINT NOT NULL,
  started_at   BIGINT NOT NULL
);

CREATE TABLE tools (
  workspace_id  TEXT NOT NULL,
  id            TEXT NOT NULL,
  kind          TEXT NOT NULL,
  name          TEXT NOT NULL,
  description   TEXT NOT NULL,
  parameters    TEXT NOT NULL,
  config_schema TEXT NOT NULL,
  handler_key   TEXT NOT NULL,
  category      TEXT NOT NULL,
  pack          TEXT NOT NULL,
  tier          TEXT NOT NULL,
  effect        TEXT NOT NULL,
  capability    TEXT NOT NULL,
  risk          TEXT NOT NULL,
  timeout_ms    BIGINT NOT NULL,
  retry         TEXT NOT NULL,
  identity      TEXT NOT NULL,
  previews      BIGINT NOT NULL,
  cost          TEXT NOT NULL,
  version       BIGINT NOT NULL,
  spec          TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX tools_category ON tools (category);
CREATE INDEX tools_handler ON tools (handler_key);

CREATE TABLE agents (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  lifecycle    TEXT NOT NULL,
  categories   TEXT NOT NULL,
  policy       TEXT NOT NULL,
  config       TEXT NOT NULL,
  stopped_at   BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  UNIQUE (workspace_id, name)
);

CREATE TABLE agent_tools (
  agent_id       TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  tool_id        TEXT NOT NULL,
  tool_workspace TEXT NOT NULL,
  config         TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  PRIMARY KEY (agent_id, tool_id),
  FOREIGN KEY (tool_workspace, tool_id) REFERENCES tools (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_tools_tool ON agent_tools (tool_workspace, tool_id);

CREATE TABLE profiles (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  kind         TEXT NOT NULL,
  capabilities TEXT NOT NULL,
  PRIMARY KEY (workspace_id, kind)
);

CREATE TABLE operations (
  id              TEXT PRIMARY KEY,
  workspace_id    TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  call_id         TEXT NOT NULL,
  result_id       TEXT NOT NULL,
  thread_id       TEXT NOT NULL,
  run_id          TEXT NOT NULL,
  tool            TEXT NOT NULL,
  tool_version    TEXT NOT NULL,
  policy          TEXT NOT NULL,
  effect          TEXT NOT NULL,
  state           TEXT NOT NULL,
  args_hash       TEXT NOT NULL,
  base            TEXT NOT NULL,
  code            TEXT NOT NULL,
  message         TEXT NOT NULL,
  tries           BIGINT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  owner           TEXT NOT NULL,
  resolution      TEXT NOT NULL,
  resolved_by     TEXT NOT NULL,
  undo            TEXT NOT NULL,
  spent           TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL
);
CREATE INDEX operations_workspace ON operations (workspace_id, created_at, id);
CREATE INDEX operations_agent ON operations (agent_id, created_at, id);
CREATE INDEX operations_due ON operations (next_attempt_at) WHERE state IN ('prepared', 'dispatched');
CREATE INDEX operations_inbox ON operations (workspace_id, created_at) WHERE state IN ('parked', 'unknown');
CREATE INDEX operations_run ON operations (run_id, state) WHERE run_id <> '';

CREATE TABLE messages (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  kind         TEXT NOT NULL,
  prev_id      TEXT NOT NULL,
  action_id    TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  content      TEXT NOT NULL,
  metadata     TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX messages_thread ON messages (thread_id, id);
-- An action has at most one result, whoever tries to write a second.
CREATE UNIQUE INDEX messages_result ON messages (action_id) WHERE action_id <> '';

CREATE TABLE events (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  class        TEXT NOT NULL,
  name         TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX events_workspace ON events (workspace_id, id);

CREATE TABLE payloads (
  workspace_id TEXT NOT NULL,
  hash         TEXT NOT NULL,
  size         BIGINT NOT NULL,
  body         BYTEA NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, hash)
);

CREATE TABLE approvals (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  call_id      TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  tool         TEXT NOT NULL,
  args         TEXT NOT NULL,
  args_hash    TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  policy       TEXT NOT NULL,
  why          TEXT NOT NULL,
  reason       TEXT NOT NULL,
  preview      TEXT NOT NULL,
  state        TEXT NOT NULL,
  decided_by   TEXT NOT NULL,
  comment      TEXT NOT NULL,
  decided_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX approvals_workspace ON approvals (workspace_id, id);
CREATE INDEX approvals_operation ON approvals (operation_id);
CREATE INDEX approvals_expiry ON approvals (expires_at) WHERE state = 'pending';

CREATE TABLE budgets (
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  subject         TEXT NOT NULL,
  parent          TEXT NOT NULL,
  on_exceed       TEXT NOT NULL,
  limit_calls     BIGINT NOT NULL,
  limit_tokens    BIGINT NOT NULL,
  limit_micros    BIGINT NOT NULL,
  limit_millis    BIGINT NOT NULL,
  used_calls      BIGINT NOT NULL,
  used_tokens     BIGINT NOT NULL,
  used_micros     BIGINT NOT NULL,
  used_millis     BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, subject)
);

-- What a call under way may still spend. A row is one call's claim on one budget; settling it deletes it, so a crash leaves
-- nothing half counted.
CREATE TABLE reservations (
  workspace_id TEXT NOT NULL,
  subject      TEXT NOT NULL,
  call_id      TEXT NOT NULL,
  calls        BIGINT NOT NULL,
  tokens       BIGINT NOT NULL,
  micros       BIGINT NOT NULL,
  millis       BIGINT NOT NULL,
  owner        TEXT NOT NULL,
  PRIMARY KEY (workspace_id, subject, call_id)
);

CREATE TABLE access_tokens (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  user_name  TEXT NOT NULL,
  role       TEXT NOT NULL,
  hash       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT NOT NULL
);

CREATE TABLE access_token_workspaces (
  token_id     TEXT NOT NULL REFERENCES access_tokens (id) ON DELETE CASCADE,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  PRIMARY KEY (token_id, workspace_id)
);
CREATE INDEX access_token_workspaces_workspace ON access_token_workspaces (workspace_id);

CREATE TABLE secrets (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  sealed       BYTEA NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, name)
);

CREATE TABLE session_files (
  workspace_id TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  path         TEXT NOT NULL,
  size         BIGINT NOT NULL,
  body         BYTEA NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, session_id, path)
);

-- +goose Down
DROP TABLE session_files;
DROP TABLE secrets;
DROP TABLE access_token_workspaces;
DROP TABLE access_tokens;
DROP TABLE reservations;
DROP TABLE budgets;
DROP TABLE approvals;
DROP TABLE payloads;
DROP TABLE events;
DROP TABLE messages;
DROP TABLE operations;
DROP TABLE profiles;
DROP TABLE agent_tools;
DROP TABLE agents;
DROP TABLE tools;
DROP TABLE processes;
DROP TABLE workspaces;
