-- +goose Up
-- The attempt that an item is at is part of the item's row: most items have one, and it is written with each step of the item.
-- item_attempts keeps those before it.
ALTER TABLE items ADD COLUMN attempt_run TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN script_id TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN started_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE items ADD COLUMN finished_at BIGINT NOT NULL DEFAULT 0;
UPDATE items SET attempt_run = t.first_run, script_id = t.script_id, started_at = t.started_at, finished_at = t.finished_at
  FROM item_attempts t WHERE t.agent_id = items.agent_id AND t.item_id = items.item_id AND t.attempt = items.attempt;
DELETE FROM item_attempts WHERE EXISTS (SELECT 1 FROM items i WHERE i.agent_id = item_attempts.agent_id AND i.item_id = item_attempts.item_id
  AND i.attempt = item_attempts.attempt);

-- +goose Down
INSERT INTO item_attempts (agent_id, item_id, attempt, state, first_run, last_run, script_id, code, message, started_at, finished_at)
  SELECT agent_id, item_id, attempt, state, attempt_run, last_run, script_id, code, message, started_at, finished_at FROM items;
ALTER TABLE items DROP COLUMN finished_at;
ALTER TABLE items DROP COLUMN started_at;
ALTER TABLE items DROP COLUMN script_id;
ALTER TABLE items DROP COLUMN attempt_run;
