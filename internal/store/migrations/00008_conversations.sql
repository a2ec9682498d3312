-- +goose Up
-- A message knows the run it was written in: turns of one conversation share a thread.
ALTER TABLE messages ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
CREATE INDEX messages_run ON messages (run_id, id) WHERE run_id <> '';

ALTER TABLE runs ADD COLUMN moves BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN issues TEXT NOT NULL DEFAULT '';
-- Up to when a parked run has seen what its calls came to.
ALTER TABLE runs ADD COLUMN seen_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX runs_session ON runs (session_id, id) WHERE reason = 'user_initiated';
CREATE INDEX runs_talking ON runs (session_id, id) WHERE reason = 'user_initiated' AND state IN ('running', 'parked');
-- Turns wait for nobody: a conversation may have several under way.
DROP INDEX runs_lane;
CREATE UNIQUE INDEX runs_lane ON runs (agent_id, session_id) WHERE state IN ('running', 'parked') AND reason <> 'user_initiated';

ALTER TABLE tools ADD COLUMN async BIGINT NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN deferred BIGINT NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN timeout_at BIGINT NOT NULL DEFAULT 0;

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

-- What clients are told, in order. Its key keeps a turn that is taken up again from telling it twice.
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

-- +goose Down
DROP TABLE feedback;
DROP TABLE frames;
DROP TABLE participants;
DROP TABLE conversations;
ALTER TABLE operations DROP COLUMN timeout_at;
ALTER TABLE operations DROP COLUMN deferred;
ALTER TABLE tools DROP COLUMN async;
DROP INDEX runs_lane;
CREATE UNIQUE INDEX runs_lane ON runs (agent_id, session_id) WHERE state IN ('running', 'parked');
DROP INDEX runs_talking;
DROP INDEX runs_session;
ALTER TABLE runs DROP COLUMN seen_at;
ALTER TABLE runs DROP COLUMN issues;
ALTER TABLE runs DROP COLUMN moves;
DROP INDEX messages_run;
ALTER TABLE messages DROP COLUMN run_id;
