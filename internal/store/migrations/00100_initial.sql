-- +goose Up

-- Workspaces, access tokens, secrets, and the servers that use the database.

CREATE TABLE workspaces (
  id          TEXT PRIMARY KEY,
  name        TEXT NOT NULL,
  revision    BIGINT NOT NULL,
  stopped_at  BIGINT NOT NULL,
  stop_reason TEXT NOT NULL,
  created_at  BIGINT NOT NULL
);

-- A server marks its own token with the column server when it starts. No API sets it.
CREATE TABLE access_tokens (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  user_name  TEXT NOT NULL,
  role       TEXT NOT NULL,
  hash       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT NOT NULL,
  server     BIGINT NOT NULL DEFAULT 0
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

CREATE TABLE processes (
  id           TEXT PRIMARY KEY,
  heartbeat_at BIGINT NOT NULL,
  started_at   BIGINT NOT NULL
);

CREATE TABLE nodes (
  id         TEXT PRIMARY KEY,
  counter    BIGINT NOT NULL,
  self       BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX nodes_self ON nodes (self) WHERE self = 1;

-- One row about the whole database. If the stored identity differs from the actual one, the database was copied or restored from a backup.
-- While the server is held (held_at is not 0), it starts no work.
CREATE TABLE database_state (
  id          INTEGER PRIMARY KEY,
  identity    TEXT NOT NULL,
  held_at     BIGINT NOT NULL,
  hold_reason TEXT NOT NULL,
  as_of       BIGINT NOT NULL
);
INSERT INTO database_state (id, identity, held_at, hold_reason, as_of) VALUES (1, '', 0, '', 0);

CREATE TABLE requests (
  id         TEXT PRIMARY KEY,
  hash       TEXT NOT NULL,
  status     BIGINT NOT NULL,
  body       BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  process    TEXT NOT NULL DEFAULT '',
  claim      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX requests_created ON requests (created_at);

-- Agents and their tools.

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
  async         BIGINT NOT NULL DEFAULT 0,
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
  mode         TEXT NOT NULL DEFAULT 'hybrid',
  throttle_ms  BIGINT NOT NULL DEFAULT 0,
  node         TEXT NOT NULL DEFAULT '',
  counter      BIGINT NOT NULL DEFAULT 0,
  clock        TEXT NOT NULL DEFAULT '',
  own_tools    BIGINT NOT NULL DEFAULT 0,
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
  updated_at BIGINT NOT NULL,
  stamps     TEXT NOT NULL DEFAULT '',
  seen       BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE agent_runtimes (
  agent_id    TEXT PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  failures    BIGINT NOT NULL,
  last_run_at BIGINT NOT NULL
);

CREATE TABLE removals (
  kind         TEXT NOT NULL,
  id           TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  removed_at   BIGINT NOT NULL,
  PRIMARY KEY (kind, id)
);

-- Calls, messages, approvals, proposals and budgets.

-- One row for each call: the request, the gate's decision and, once there is one, the result. Calls and messages of a thread are ordered
-- together by their ids. A call that changes something, or that continues after the response to its caller, is an operation. It has an
-- operation_id and a state. For other calls, operation_id is NULL and state is empty.
CREATE TABLE calls (
  id              TEXT PRIMARY KEY,
  workspace_id    TEXT NOT NULL,
  thread_id       TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  run_id          TEXT NOT NULL,
  operation_id    TEXT UNIQUE,
  tool            TEXT NOT NULL,
  tool_version    TEXT NOT NULL,
  policy          TEXT NOT NULL,
  effect          TEXT NOT NULL,
  args            TEXT NOT NULL, -- as callers are shown them
  args_hash       TEXT NOT NULL,
  request         TEXT NOT NULL, -- who asked, how and why, and the decision trace: reeve.ActionInfo
  base            TEXT NOT NULL,
  state           TEXT NOT NULL,
  code            TEXT NOT NULL,
  message         TEXT NOT NULL,
  tries           BIGINT NOT NULL,
  owner           TEXT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  timeout_at      BIGINT NOT NULL,
  in_flight_until BIGINT NOT NULL,
  deferred        BIGINT NOT NULL,
  resolution      TEXT NOT NULL,
  resolved_by     TEXT NOT NULL,
  undo            TEXT NOT NULL,
  spent           TEXT NOT NULL,
  result_id       TEXT NOT NULL, -- empty until there is a result
  result          TEXT NOT NULL,
  result_info     TEXT NOT NULL, -- reeve.ResultInfo
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL
);
CREATE INDEX calls_thread ON calls (thread_id, id);
CREATE INDEX calls_run ON calls (run_id, id) WHERE run_id <> '';
CREATE INDEX calls_run_open ON calls (run_id, state) WHERE result_id = '';
CREATE INDEX calls_run_later ON calls (run_id) WHERE deferred = 1;
CREATE INDEX calls_workspace ON calls (workspace_id, id) WHERE operation_id IS NOT NULL;
CREATE INDEX calls_agent ON calls (agent_id, id) WHERE operation_id IS NOT NULL;
CREATE INDEX calls_due ON calls (next_attempt_at) WHERE state IN ('prepared', 'dispatched');
CREATE INDEX calls_inbox ON calls (workspace_id, id) WHERE state IN ('parked', 'unknown');

-- Messages of threads, written by people, models and Reeve.
CREATE TABLE messages (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  kind         TEXT NOT NULL,
  content      TEXT NOT NULL,
  metadata     TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX messages_thread ON messages (thread_id, id);
CREATE INDEX messages_run ON messages (run_id, id) WHERE run_id <> '';
CREATE INDEX messages_notice ON messages (thread_id, id) WHERE run_id = '' AND kind = 'observation';

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
CREATE INDEX events_operation ON events (operation_id) WHERE class = 'id';

CREATE TABLE payloads (
  workspace_id TEXT NOT NULL,
  hash         TEXT NOT NULL,
  size         BIGINT NOT NULL,
  body         BYTEA NOT NULL,
  created_at   BIGINT NOT NULL,
  uses         BIGINT NOT NULL DEFAULT 7,
  PRIMARY KEY (workspace_id, hash)
);
CREATE INDEX payloads_age ON payloads (created_at) WHERE uses < 4;

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
CREATE INDEX approvals_pending ON approvals (workspace_id, id) WHERE state = 'pending';

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

CREATE TABLE budgets (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  subject      TEXT NOT NULL,
  parent       TEXT NOT NULL,
  on_exceed    TEXT NOT NULL,
  limit_calls  BIGINT NOT NULL,
  limit_tokens BIGINT NOT NULL,
  limit_micros BIGINT NOT NULL,
  limit_millis BIGINT NOT NULL,
  used_calls   BIGINT NOT NULL,
  used_tokens  BIGINT NOT NULL,
  used_micros  BIGINT NOT NULL,
  used_millis  BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, subject)
);

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

-- Subscriptions, timers, wakes, runs and notifications.

CREATE TABLE subscriptions (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  agent_id     TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
  class        TEXT NOT NULL,
  name         TEXT NOT NULL,
  predicate    TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  node         TEXT NOT NULL DEFAULT '',
  counter      BIGINT NOT NULL DEFAULT 0,
  clock        TEXT NOT NULL DEFAULT '',
  user_id      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX subscriptions_token ON subscriptions (workspace_id, class, name);
CREATE INDEX subscriptions_agent ON subscriptions (agent_id);

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
  updated_at   BIGINT NOT NULL,
  node         TEXT NOT NULL DEFAULT '',
  counter      BIGINT NOT NULL DEFAULT 0,
  clock        TEXT NOT NULL DEFAULT '',
  on_behalf_of TEXT NOT NULL DEFAULT ''
);
CREATE INDEX timers_due ON timers (next_at) WHERE state = 'active';
CREATE INDEX timers_user ON timers (workspace_id, user_id, id);
CREATE INDEX timers_agent ON timers (agent_id);

CREATE TABLE missed (
  timer_id     TEXT NOT NULL REFERENCES timers (id) ON DELETE CASCADE,
  scheduled_at BIGINT NOT NULL,
  run_key      TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (timer_id, scheduled_at)
);

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
  created_at   BIGINT NOT NULL,
  tries        BIGINT NOT NULL DEFAULT 0,
  on_behalf_of TEXT NOT NULL DEFAULT ''
);
CREATE INDEX wakes_agent ON wakes (agent_id, session_id) WHERE state = 'queued';
CREATE INDEX wakes_run ON wakes (run_id) WHERE run_id <> '';
CREATE INDEX wakes_due ON wakes (due_at, created_at, agent_id, session_id) WHERE state = 'queued';
CREATE INDEX wakes_history ON wakes (agent_id, created_at DESC, run_key);
-- only postgres
CREATE INDEX wakes_order ON wakes (agent_id, due_at, created_at, run_key) WHERE state = 'queued';
-- end

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
  finished_at  BIGINT NOT NULL,
  moves        BIGINT NOT NULL DEFAULT 0,
  issues       TEXT NOT NULL DEFAULT '',
  results      BIGINT NOT NULL DEFAULT 0,
  parent_id    TEXT NOT NULL DEFAULT '',
  answers      TEXT NOT NULL DEFAULT '',
  ancestors    TEXT NOT NULL DEFAULT '',
  on_behalf_of TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX runs_key ON runs (run_key);
CREATE INDEX runs_workspace ON runs (workspace_id, id);
CREATE INDEX runs_agent ON runs (agent_id, id);
CREATE INDEX runs_reason ON runs (reason_id, id) WHERE reason_id <> '';
CREATE INDEX runs_session ON runs (session_id, id) WHERE reason = 'user_initiated';
CREATE INDEX runs_answers ON runs (answers) WHERE answers <> '';
-- only postgres
ALTER TABLE runs SET (fillfactor = 50);
ALTER TABLE agent_runtimes SET (fillfactor = 50);
-- end

-- Open runs (running or parked). The table is small, so queries on open runs do not read ended ones, and the end of a run changes no index of runs.
CREATE TABLE open_runs (
  run_id     TEXT PRIMARY KEY,
  agent_id   TEXT NOT NULL,
  session_id TEXT NOT NULL,
  parent_id  TEXT NOT NULL,
  turn       BIGINT NOT NULL,
  lane       TEXT NOT NULL DEFAULT '',
  seen       BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX open_runs_session ON open_runs (session_id) WHERE turn = 1;
CREATE INDEX open_runs_talker ON open_runs (agent_id) WHERE turn = 1;
CREATE INDEX open_runs_children ON open_runs (parent_id) WHERE parent_id <> '';
CREATE UNIQUE INDEX open_runs_lane ON open_runs (agent_id, lane) WHERE turn = 0;

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
CREATE UNIQUE INDEX notifications_run ON notifications (run_id) WHERE run_id <> '';
CREATE INDEX notifications_user ON notifications (workspace_id, user_id, id);
CREATE INDEX notifications_due ON notifications (next_at) WHERE delivered_at = 0 AND next_at > 0;

-- Data of sessions: files, scratchpads, shells.

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

CREATE TABLE scratchpads (
  workspace_id TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  items        TEXT NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, session_id)
);

CREATE TABLE shells (
  workspace_id TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  state        BYTEA NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, thread_id)
);

-- Conversations.

CREATE TABLE conversations (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  agent_id     TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  title        TEXT NOT NULL,
  origin       TEXT NOT NULL,
  state        TEXT NOT NULL,
  turns        BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE INDEX conversations_workspace ON conversations (workspace_id, created_at, id);

CREATE TABLE participants (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  kind            TEXT NOT NULL,
  id              TEXT NOT NULL,
  added_by        TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, kind, id)
);
CREATE INDEX participants_who ON participants (id, conversation_id);

CREATE TABLE frames (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  n               BIGINT NOT NULL,
  frame_key       TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  body            TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, n)
);
CREATE UNIQUE INDEX frames_key ON frames (conversation_id, frame_key);

CREATE TABLE feedback (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  turn_id      TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  score        BIGINT NOT NULL,
  comment      TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX feedback_turn ON feedback (turn_id, id);

CREATE TABLE summaries (
  thread_id       TEXT NOT NULL,
  up_to           TEXT NOT NULL,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  agent_id        TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  state           TEXT NOT NULL,
  message_id      TEXT NOT NULL,
  attempts        BIGINT NOT NULL,
  owner           TEXT NOT NULL,
  due_at          BIGINT NOT NULL,
  code            TEXT NOT NULL,
  message         TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  PRIMARY KEY (thread_id, up_to)
);
CREATE UNIQUE INDEX summaries_open ON summaries (thread_id) WHERE state = 'queued';
CREATE INDEX summaries_due ON summaries (due_at) WHERE state = 'queued';

-- Automations.

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
  script_job_id    TEXT NOT NULL DEFAULT '',
  on_behalf_of TEXT NOT NULL DEFAULT '',
  UNIQUE (agent_id, major, minor)
);

CREATE TABLE automations (
  agent_id     TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  script_id    TEXT NOT NULL,
  paused_at    BIGINT NOT NULL,
  paused_run   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  owner        TEXT NOT NULL DEFAULT ''
);

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
CREATE INDEX script_runs_plan ON script_runs (plan_of) WHERE plan_of <> '';
CREATE INDEX script_runs_version ON script_runs (agent_id, script_id);

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
  attempt_run  TEXT NOT NULL,
  script_id    TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  finished_at  BIGINT NOT NULL,
  entry_id     TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (agent_id, item_id)
) WITHOUT ROWID;
CREATE INDEX items_newest ON items (agent_id, created_at, entry_id, item_id);
CREATE INDEX items_waiting ON items (workspace_id, created_at, entry_id, item_id) WHERE state = 'needs_attention';

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

CREATE TABLE automation_failures (
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
  script_job_id    TEXT NOT NULL,
  updated_at   BIGINT NOT NULL
);

CREATE TABLE script_jobs (
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
CREATE UNIQUE INDEX script_jobs_repair ON script_jobs (agent_id, script_id) WHERE kind = 'repair';
CREATE UNIQUE INDEX script_jobs_run ON script_jobs (run_key);
CREATE INDEX script_jobs_agent ON script_jobs (agent_id, id);
CREATE INDEX script_jobs_asking ON script_jobs (workspace_id, id) WHERE state = 'asking';

-- Branches of repositories.

CREATE TABLE projects (
  id             TEXT PRIMARY KEY,
  workspace_id   TEXT NOT NULL,
  name           TEXT NOT NULL,
  path           TEXT NOT NULL,
  default_branch TEXT NOT NULL,
  created_by     TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  UNIQUE (workspace_id, name)
);

CREATE TABLE branches (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  project_id   TEXT NOT NULL,
  kind         TEXT NOT NULL,
  subject      TEXT NOT NULL,
  name         TEXT NOT NULL,
  base         TEXT NOT NULL,
  head         TEXT NOT NULL,
  state        TEXT NOT NULL,
  merged       TEXT NOT NULL,
  merged_by    TEXT NOT NULL,
  merged_at    BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  UNIQUE (project_id, kind, subject)
);
CREATE INDEX branches_newest ON branches (workspace_id, id);
CREATE INDEX branches_subject ON branches (subject);

-- The journal.

CREATE TABLE categories (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  name         TEXT NOT NULL,
  folded       TEXT NOT NULL
);
CREATE INDEX categories_name ON categories (workspace_id, folded);

CREATE TABLE labels (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  name         TEXT NOT NULL,
  folded       TEXT NOT NULL,
  category_id  TEXT NOT NULL
);
CREATE INDEX labels_name ON labels (workspace_id, folded);

CREATE TABLE tasks (
  id               TEXT PRIMARY KEY,
  workspace_id     TEXT NOT NULL,
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL,
  deleted_at       BIGINT NOT NULL,
  node             TEXT NOT NULL,
  counter          BIGINT NOT NULL,
  clock            TEXT NOT NULL,
  category_id      TEXT NOT NULL,
  title            TEXT NOT NULL,
  folded           TEXT NOT NULL,
  description      TEXT NOT NULL,
  status           TEXT NOT NULL,
  priority         TEXT NOT NULL,
  estimate_minutes BIGINT NOT NULL,
  due_date         TEXT NOT NULL,
  language         TEXT NOT NULL,
  closed_at        BIGINT NOT NULL,
  created_by       TEXT NOT NULL
);
CREATE INDEX tasks_workspace ON tasks (workspace_id, created_at, id) WHERE deleted_at = 0;
CREATE INDEX tasks_category ON tasks (category_id, created_at, id) WHERE deleted_at = 0;
CREATE INDEX tasks_recent ON tasks (workspace_id, updated_at, id) WHERE deleted_at = 0;

CREATE TABLE task_labels (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  label_id     TEXT NOT NULL
);
CREATE INDEX task_labels_task ON task_labels (task_id) WHERE deleted_at = 0;
CREATE INDEX task_labels_label ON task_labels (label_id) WHERE deleted_at = 0;

CREATE TABLE checklists (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  title        TEXT NOT NULL,
  position     BIGINT NOT NULL
);
CREATE INDEX checklists_task ON checklists (task_id, position) WHERE deleted_at = 0;

CREATE TABLE checklist_items (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  checklist_id TEXT NOT NULL,
  title        TEXT NOT NULL,
  checked      BIGINT NOT NULL,
  position     BIGINT NOT NULL
);
CREATE INDEX checklist_items_list ON checklist_items (checklist_id, position) WHERE deleted_at = 0;

CREATE TABLE time_entries (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  start_offset BIGINT NOT NULL,
  ended_at     BIGINT NOT NULL,
  end_offset   BIGINT NOT NULL,
  note         TEXT NOT NULL,
  source_id    TEXT NOT NULL
);
CREATE INDEX time_entries_user ON time_entries (workspace_id, user_id, started_at, id) WHERE deleted_at = 0;
CREATE INDEX time_entries_task ON time_entries (task_id, started_at, id) WHERE deleted_at = 0;
CREATE INDEX time_entries_running ON time_entries (workspace_id, user_id, started_at, id) WHERE deleted_at = 0 AND ended_at = 0;

CREATE TABLE day_plans (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  day          TEXT NOT NULL
);

CREATE TABLE plan_blocks (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  plan_id      TEXT NOT NULL,
  category_id  TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  starts_at    BIGINT NOT NULL,
  start_offset BIGINT NOT NULL,
  ends_at      BIGINT NOT NULL,
  end_offset   BIGINT NOT NULL,
  note         TEXT NOT NULL
);
CREATE INDEX plan_blocks_plan ON plan_blocks (plan_id, starts_at) WHERE deleted_at = 0;

CREATE TABLE plan_pins (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  plan_id      TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  position     BIGINT NOT NULL
);
CREATE INDEX plan_pins_plan ON plan_pins (plan_id, position) WHERE deleted_at = 0;

CREATE TABLE ratings (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  target_kind  TEXT NOT NULL,
  target_id    TEXT NOT NULL,
  scores       TEXT NOT NULL,
  note         TEXT NOT NULL
);
CREATE INDEX ratings_user ON ratings (workspace_id, user_id, created_at, id) WHERE deleted_at = 0;

CREATE TABLE links (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  from_id      TEXT NOT NULL,
  to_id        TEXT NOT NULL,
  relation     TEXT NOT NULL
);
CREATE INDEX links_from ON links (from_id) WHERE deleted_at = 0;
CREATE INDEX links_to ON links (to_id) WHERE deleted_at = 0;

-- Mail. The id of a mail consists of the number of the workspace, 16 bits for the inbox and 28 bits for the mail. The mails of a workspace
-- or an inbox are therefore a range of ids, which the full-text indexes of both engines can restrict at no cost.

CREATE TABLE mail_numbers (
  name TEXT PRIMARY KEY,
  last BIGINT NOT NULL
);
INSERT INTO mail_numbers (name, last) VALUES ('workspace', 0);

CREATE TABLE inboxes (
  id           BIGINT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  name         TEXT NOT NULL,
  last         BIGINT NOT NULL,
  messages     BIGINT NOT NULL,
  user_id      TEXT NOT NULL DEFAULT '',
  UNIQUE (workspace_id, name)
);

CREATE TABLE emails (
  id         INTEGER PRIMARY KEY,
  inbox_id   BIGINT NOT NULL,
  message_id TEXT NOT NULL,
  hash       TEXT NOT NULL,
  sent_at    BIGINT NOT NULL,
  folder     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  sender     TEXT NOT NULL,
  recipients TEXT NOT NULL,
  attached   TEXT NOT NULL,
  detail     TEXT NOT NULL,
  body       TEXT NOT NULL,
  UNIQUE (inbox_id, message_id)
);
CREATE INDEX emails_sent ON emails (inbox_id, sent_at);

CREATE TABLE mail_imports (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  source       TEXT NOT NULL,
  state        TEXT NOT NULL,
  replaces     BIGINT NOT NULL,
  position     TEXT NOT NULL,
  seen         BIGINT NOT NULL,
  added        BIGINT NOT NULL,
  replaced     BIGINT NOT NULL,
  duplicate    BIGINT NOT NULL,
  bad          BIGINT NOT NULL,
  notes        TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  finished_at  BIGINT NOT NULL,
  user_id      TEXT NOT NULL DEFAULT '',
  batch        TEXT NOT NULL DEFAULT ''
);
CREATE INDEX mail_imports_source ON mail_imports (workspace_id, source);

-- Full-text indexes of mails: word stems (emails_words) and words as written (emails_written). Prefix searches and searches for names need
-- words as written, because a stem may differ from the beginning of the word and be the same for different names.
-- only sqlite
CREATE VIRTUAL TABLE emails_words USING fts5 (subject, body, sender, recipients, attached, content='emails', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO emails_words (emails_words, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0, 0.5, 1.0)');
-- +goose StatementBegin
CREATE TRIGGER emails_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached) VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_deleted AFTER DELETE ON emails BEGIN
  INSERT INTO emails_words (emails_words, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_updated AFTER UPDATE ON emails BEGIN
  INSERT INTO emails_words (emails_words, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached) VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
CREATE VIRTUAL TABLE emails_written USING fts5 (subject, body, sender, recipients, attached,
  content='emails', content_rowid='id', tokenize="unicode61 remove_diacritics 2 categories 'L* N* M* Co'");
INSERT INTO emails_written (emails_written, rank) VALUES ('rank', 'bm25(4.0, 1.0, 2.0, 0.5, 1.0)');
-- +goose StatementBegin
CREATE TRIGGER emails_written_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_written (rowid, subject, body, sender, recipients, attached)
    VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_written_deleted AFTER DELETE ON emails BEGIN
  INSERT INTO emails_written (emails_written, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER emails_written_updated AFTER UPDATE ON emails BEGIN
  INSERT INTO emails_written (emails_written, rowid, subject, body, sender, recipients, attached)
    VALUES ('delete', old.id, old.subject, old.body, old.sender, old.recipients, old.attached);
  INSERT INTO emails_written (rowid, subject, body, sender, recipients, attached)
    VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;
-- +goose StatementEnd
-- end

-- only postgres
-- Words are split at every punctuation character, as in SQLite. Addresses, hosts and versions are not kept as one word, and there are no stop words.
-- Non-ASCII symbols are not words, whatever PostgreSQL's locale says: no-break spaces, arrows, currency signs, emoji and the replacement character.
-- +goose StatementBegin
CREATE FUNCTION reeve_plain (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$
  SELECT CASE WHEN octet_length($1) = length($1) THEN translate($1, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                ')
    ELSE translate(regexp_replace($1, '[\u0080-\u00A9\u00AB-\u00B1\u00B4\u00B6-\u00B8\u00BB\u00BF\u00D7\u00F7\u2000-\u206F\u207A-\u207E\u208A-\u208E\u20A0-\u20CF\u2190-\u245F\u249C-\u24E9\u2500-\u2775\u2794-\u2BFF\u2E00-\u2E7F\u3000-\u3004\u3008-\u3020\uFE10-\uFE1F\uFE30-\uFE6F\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\uFFE0-\uFFFD\U0001F000-\U0001F0FF\U0001F110-\U0001FAFF]', ' ', 'g'), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~’‘“”„–—…•·«»¡¿ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿĀāĂăĄąĆćĈĉĊċČčĎďĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭĮįİĴĵĶķĹĺĻļĽľŃńŅņŇňŌōŎŏŐőŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŲųŴŵŶŷŸŹźŻżŽž',
    '                                              AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyyAaAaAaCcCcCcCcDdEeEeEeEeEeGgGgGgGgHhIiIiIiIiIJjKkLlLlLlNnNnNnOoOoOoRrRrRrSsSsSsSsTtTtUuUuUuUuUuUuWwYyYZzZzZz') END
$f$;
-- +goose StatementEnd
CREATE TEXT SEARCH DICTIONARY reeve_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION reeve_mail (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION reeve_mail ALTER MAPPING FOR asciiword, word, numword, asciihword, hword, numhword, hword_asciipart, hword_part, hword_numpart
  WITH reeve_stem;
ALTER TABLE emails ADD COLUMN words tsvector GENERATED ALWAYS AS (
  setweight(to_tsvector('reeve_mail', reeve_plain(subject)), 'A') ||
  setweight(to_tsvector('reeve_mail', reeve_plain(sender)), 'B') ||
  setweight(to_tsvector('reeve_mail', reeve_plain(left(recipients, 131072))), 'C') ||
  setweight(to_tsvector('reeve_mail', reeve_plain(left(attached, 16384) || ' ' || left(body, 262144))), 'D')) STORED;
CREATE INDEX emails_words ON emails USING gin (words);
-- reeve_fold prepares a text for PostgreSQL's parser. It converts to lower case, removes accents from Latin letters, and replaces every
-- character that is not a letter, digit or mark by a space. It puts an accented letter, which cannot occur otherwise, in front of a word
-- that begins with a digit. Otherwise the parser would split 1e5a into the number 1e5 and a word. With the collation C, which all our
-- columns have, lower() knows only a to z, so reeve_lower lists the letters. foldWord in package store folds the words of a query alike.
-- +goose StatementBegin
CREATE FUNCTION reeve_lower (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$
  SELECT CASE WHEN lower('Я' COLLATE "default") = 'я' THEN replace(lower($1 COLLATE "default"), 'ς', 'σ')
    ELSE translate(lower($1 COLLATE "default"),
      'ςÆÐØÞĐĦĲĿŁŊŒŦƁƂƄƆƇƉƊƋƎƏƐƑƓƔƖƗƘƜƝƟƢƤƦƧƩƬƮƱƲƳƵƷƸƼǄǅǇǈǊǋǢǤǮǱǲǶǷǼǾȜȠȢȤȺȻȽȾɁɃɄɅɆɈɊɌɎͰͲͶͿΆΈΉΊΌΎΏΑΒΓΔΕΖΗΘΙΚ'
      'ΛΜΝΞΟΠΡΣΤΥΦΧΨΩΪΫϏϘϚϜϞϠϢϤϦϨϪϬϮϴϷϹϺϽϾϿЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯѠѢѤѦѨѪѬѮѰѲѴѶѸѺѼѾ'
      'ҀҊҌҎҐҒҔҖҘҚҜҞҠҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӀӁӃӅӇӉӋӍӐӒӔӖӘӚӜӞӠӢӤӦӨӪӬӮӰӲӴӶӸӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀ'
      'ՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖ',
      'σæðøþđħĳŀłŋœŧɓƃƅɔƈɖɗƌǝəɛƒɠɣɩɨƙɯɲɵƣƥʀƨʃƭʈʊʋƴƶʒƹƽǆǆǉǉǌǌǣǥǯǳǳƕƿǽǿȝƞȣȥⱥȼƚⱦɂƀʉʌɇɉɋɍɏͱͳͷϳάέήίόύώαβγδεζηθικ'
      'λμνξοπρστυφχψωϊϋϗϙϛϝϟϡϣϥϧϩϫϭϯθϸϲϻͻͼͽѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюяѡѣѥѧѩѫѭѯѱѳѵѷѹѻѽѿ'
      'ҁҋҍҏґғҕҗҙқҝҟҡңҥҧҩҫҭүұҳҵҷҹһҽҿӏӂӄӆӈӊӌӎӑӓӕӗәӛӝӟӡӣӥӧөӫӭӯӱӳӵӷӹӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯաբգդեզէըթժիլխծկհ'
      'ձղճմյնշոչպջռսվտրցւփքօֆ') END
$f$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION reeve_fold (text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $f$
  SELECT regexp_replace(
    CASE WHEN octet_length($1) = length($1) THEN regexp_replace(lower($1), '[^a-z0-9]+', ' ', 'g')
    ELSE regexp_replace(
      reeve_lower(normalize(regexp_replace(normalize($1, NFD), '([A-Za-z])[\u0300-\u036F]+', '\1', 'g'), NFC)),
      '[\u0001-\u002F\u003A-\u0040\u005B-\u0060\u007B-\u00A9\u00AB-\u00B1\u00B4\u00B6-\u00B8\u00BB\u00BF\u00D7\u00F7'
      '\u02C2-\u02C5\u02D2-\u02DF\u02E5-\u02EB\u02ED\u02EF-\u02FF\u0375\u037E\u0384-\u0385\u0387\u03F6\u0482\u055A-\u055F'
      '\u0589-\u058F\u05BE\u05C0\u05C3\u05C6\u05F3-\u060F\u061B-\u061F\u066A-\u066D\u06D4\u06DD-\u06DE'
      '\u06E9\u06FD-\u06FE\u0700-\u070F\u07F6-\u07F9\u07FE-\u07FF\u0830-\u083E\u085E\u0888\u0890-\u0891'
      '\u08E2\u0964-\u0965\u0970\u09F2-\u09F3\u09FA-\u09FB\u09FD\u0A76\u0AF0-\u0AF1\u0B70\u0BF3-\u0BFA'
      '\u0C77\u0C7F\u0C84\u0D4F\u0D79\u0DF4\u0E3F\u0E4F\u0E5A-\u0E5B\u0F01-\u0F17\u0F1A-\u0F1F\u0F34'
      '\u0F36\u0F38\u0F3A-\u0F3D\u0F85\u0FBE-\u0FC5\u0FC7-\u0FDA\u104A-\u104F\u109E-\u109F\u10FB'
      '\u1360-\u1368\u1390-\u1399\u1400\u166D-\u166E\u1680\u169B-\u169C\u16EB-\u16ED\u1735-\u1736'
      '\u17D4-\u17D6\u17D8-\u17DB\u1800-\u180A\u180E\u1940-\u1945\u19DE-\u19FF\u1A1E-\u1A1F'
      '\u1AA0-\u1AA6\u1AA8-\u1AAD\u1B5A-\u1B6A\u1B74-\u1B7E\u1BFC-\u1BFF\u1C3B-\u1C3F\u1C7E-\u1C7F'
      '\u1CC0-\u1CC7\u1CD3\u1FBD\u1FBF-\u1FC1\u1FCD-\u1FCF\u1FDD-\u1FDF\u1FED-\u1FEF\u1FFD-\u206F'
      '\u207A-\u207E\u208A-\u208E\u20A0-\u20C0\u2100-\u2101\u2103-\u2106\u2108-\u2109\u2114'
      '\u2116-\u2118\u211E-\u2123\u2125\u2127\u2129\u212E\u213A-\u213B\u2140-\u2144\u214A-\u214D\u214F'
      '\u218A-\u244A\u249C-\u24E9\u2500-\u2775\u2794-\u2BFF\u2CE5-\u2CEA\u2CF9-\u2CFC\u2CFE-\u2CFF'
      '\u2D70\u2E00-\u2E2E\u2E30-\u3004\u3008-\u3020\u3030\u3036-\u3037\u303D-\u303F\u309B-\u309C\u30A0'
      '\u30FB\u3190-\u3191\u3196-\u319F\u31C0-\u31E3\u3200-\u321E\u322A-\u3247\u3250\u3260-\u327F'
      '\u328A-\u32B0\u32C0-\u33FF\u4DC0-\u4DFF\uA490-\uA4C6\uA4FE-\uA4FF\uA60D-\uA60F\uA673\uA67E'
      '\uA6F2-\uA716\uA720-\uA721\uA789-\uA78A\uA828-\uA82B\uA836-\uA839\uA874-\uA877\uA8CE-\uA8CF'
      '\uA8F8-\uA8FA\uA8FC\uA92E-\uA92F\uA95F\uA9C1-\uA9CD\uA9DE-\uA9DF\uAA5C-\uAA5F\uAA77-\uAA79'
      '\uAADE-\uAADF\uAAF0-\uAAF1\uAB5B\uAB6A-\uAB6B\uABEB\uFB29\uFBB2-\uFBC2\uFD3E-\uFD4F\uFDCF'
      '\uFDFC-\uFDFF\uFE10-\uFE19\uFE30-\uFE6B\uFEFF-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65'
      '\uFFE0-\uFFFF\U0001F000-\U0001F0F5\U0001F10D-\U0001FBCA]+',
      ' ', 'g') END,
    '(^| )(?=[0-9])', '\1ê', 'g')
$f$;
-- +goose StatementEnd
-- PostgreSQL has only four weights, so the words of attachment names have a letter in front instead.
ALTER TABLE emails ADD COLUMN written tsvector GENERATED ALWAYS AS (
  setweight(to_tsvector('simple', reeve_fold(subject)), 'A') ||
  setweight(to_tsvector('simple', reeve_fold(sender)), 'B') ||
  setweight(to_tsvector('simple', reeve_fold(left(recipients, 131072))), 'C') ||
  setweight(to_tsvector('simple', regexp_replace(reeve_fold(left(attached, 16384)), '([^ ]+)', 'ë\1', 'g') ||
    ' ' || reeve_fold(left(body, 262144))), 'D')) STORED;
CREATE INDEX emails_written ON emails USING gin (written);
-- end

-- Notes of agents about users. The owner identifies the agent and the user in one word, so that a search can select their notes.

-- only sqlite
CREATE TABLE notes (
  n               INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  owner           TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  content         TEXT NOT NULL,
  created_at      BIGINT NOT NULL
);
CREATE VIRTUAL TABLE notes_words USING fts5 (owner, content, content='notes', content_rowid='n', tokenize='porter unicode61 remove_diacritics 2');
-- +goose StatementBegin
CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN
  INSERT INTO notes_words (rowid, owner, content) VALUES (new.n, new.owner, new.content);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_deleted AFTER DELETE ON notes BEGIN
  INSERT INTO notes_words (notes_words, rowid, owner, content) VALUES ('delete', old.n, old.owner, old.content);
END;
-- +goose StatementEnd
-- end

-- only postgres
CREATE TABLE notes (
  n               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  owner           TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  content         TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  words           tsvector GENERATED ALWAYS AS (to_tsvector('reeve_mail', reeve_plain(content))) STORED
);
CREATE INDEX notes_words ON notes USING gin (words);
-- end
CREATE INDEX notes_owner ON notes (owner, n);
CREATE INDEX notes_user ON notes (workspace_id, user_id, n);
