-- +goose Up
-- Stretches of a thread's turns that are put into a few words, so that a model can be told of more than it can be shown. A row is the work to do and, once it
-- is done, names the message that has the words.
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
-- One at a time: each goes on from the one before.
CREATE UNIQUE INDEX summaries_open ON summaries (thread_id) WHERE state = 'queued';
CREATE INDEX summaries_due ON summaries (due_at) WHERE state = 'queued';

-- +goose Down
DROP TABLE summaries;
