-- +goose Up

-- Summaries of the runs of an agent for a user belong to no conversation.
-- only postgres
ALTER TABLE summaries ALTER COLUMN conversation_id DROP NOT NULL;
-- end
-- only sqlite
CREATE TABLE new_summaries (
  thread_id       TEXT NOT NULL,
  up_to           TEXT NOT NULL,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  agent_id        TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE,
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
INSERT INTO new_summaries SELECT thread_id, up_to, workspace_id, agent_id, user_id, conversation_id, state, message_id,
  attempts, owner, due_at, code, message, created_at FROM summaries;
DROP TABLE summaries;
ALTER TABLE new_summaries RENAME TO summaries;
CREATE UNIQUE INDEX summaries_open ON summaries (thread_id) WHERE state = 'queued';
CREATE INDEX summaries_due ON summaries (due_at) WHERE state = 'queued';
-- end
CREATE INDEX summaries_agent ON summaries (agent_id, up_to);
CREATE INDEX summaries_failed ON summaries (workspace_id) WHERE state = 'failed';

-- The runs that an agent remembers: those that are neither turns nor repairs.
CREATE INDEX runs_memory ON runs (agent_id, user_id, id)
  WHERE reason IN ('subscription', 'timer', 'recovery_catchup', 'manual');
