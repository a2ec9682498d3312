-- +goose Up
-- The attempt that an item is at is part of the item's row: most items have one, and it is written with each step of the item.
-- item_attempts keeps those before it. Rows are found by the primary key only, so SQLite need not keep them twice.
CREATE TABLE items_now (
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
  PRIMARY KEY (agent_id, item_id)
) WITHOUT ROWID;
INSERT INTO items_now SELECT i.agent_id, i.item_id, i.workspace_id, i.title, i.state, i.attempt, i.created_by, i.first_run, i.last_run, i.code, i.message, i.created_at, i.updated_at,
    COALESCE(t.first_run, ''), COALESCE(t.script_id, ''), COALESCE(t.started_at, 0), COALESCE(t.finished_at, 0)
  FROM items i LEFT JOIN item_attempts t ON t.agent_id = i.agent_id AND t.item_id = i.item_id AND t.attempt = i.attempt;
DELETE FROM item_attempts WHERE EXISTS (SELECT 1 FROM items i WHERE i.agent_id = item_attempts.agent_id AND i.item_id = item_attempts.item_id
  AND i.attempt = item_attempts.attempt);
DROP TABLE items;
ALTER TABLE items_now RENAME TO items;
CREATE INDEX items_newest ON items (agent_id, created_at, item_id);
-- Of a run's operations, those are looked for whose outcome is open, and those that were left to run by themselves. The others, which
-- are most, need no entry.
DROP INDEX operations_run_waits;
DROP INDEX operations_run;
CREATE INDEX operations_run ON operations (run_id, state) WHERE result_id = '';
CREATE INDEX operations_run_later ON operations (run_id) WHERE deferred = 1;

-- +goose Down
DROP INDEX operations_run_later;
DROP INDEX operations_run;
CREATE INDEX operations_run ON operations (run_id, state) WHERE run_id <> '';
CREATE INDEX operations_run_waits ON operations (run_id) WHERE state IN ('parked', 'unknown');
INSERT INTO item_attempts (agent_id, item_id, attempt, state, first_run, last_run, script_id, code, message, started_at, finished_at)
  SELECT agent_id, item_id, attempt, state, attempt_run, last_run, script_id, code, message, started_at, finished_at FROM items;
ALTER TABLE items DROP COLUMN finished_at;
ALTER TABLE items DROP COLUMN started_at;
ALTER TABLE items DROP COLUMN script_id;
ALTER TABLE items DROP COLUMN attempt_run;
