-- +goose Up
-- A call that is over when it is recorded is one row: its operation's, which also has what was asked, what was answered, and what the gate said. It was three, and took twice as
-- long to write. The answer's id (result_id) is the next after the call's, so that both have one order. What the gate says of many calls alike is kept once.
CREATE TABLE trails (
  id    TEXT PRIMARY KEY,
  steps TEXT NOT NULL
);
ALTER TABLE operations ADD COLUMN trail TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN asked TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN asked_info TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN answer TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN answer_info TEXT NOT NULL DEFAULT '';
CREATE INDEX operations_thread ON operations (thread_id, call_id) WHERE asked_info <> '';
CREATE INDEX operations_turn ON operations (run_id, call_id) WHERE asked_info <> '' AND run_id <> '';

-- +goose Down
INSERT INTO messages (id, workspace_id, thread_id, agent_id, kind, prev_id, action_id, operation_id, content, metadata, created_at, run_id)
  SELECT call_id, workspace_id, thread_id, agent_id, 'action', '', '', id, asked, CASE WHEN trail = '' THEN asked_info
    ELSE substr(asked_info, 1, length(asked_info) - 1) || ',"trail":' || (SELECT steps FROM trails WHERE trails.id = operations.trail) || '}' END, created_at, run_id
  FROM operations WHERE asked_info <> ''
  UNION ALL SELECT result_id, workspace_id, thread_id, agent_id, 'tool_result', call_id, call_id, id, answer, answer_info, created_at, run_id FROM operations WHERE asked_info <> '';
UPDATE messages SET prev_id = COALESCE((SELECT max(m.id) FROM messages m WHERE m.thread_id = messages.thread_id AND m.id < messages.id), '') WHERE kind = 'action' AND prev_id = '';
DROP INDEX operations_turn;
DROP INDEX operations_thread;
ALTER TABLE operations DROP COLUMN answer_info;
ALTER TABLE operations DROP COLUMN answer;
ALTER TABLE operations DROP COLUMN asked_info;
ALTER TABLE operations DROP COLUMN asked;
ALTER TABLE operations DROP COLUMN trail;
DROP TABLE trails;
