-- +goose Up
-- Whether another wake of an agent goes before one is looked up where servers share the queue.
-- only postgres
CREATE INDEX wakes_order ON wakes (agent_id, due_at, created_at, run_key) WHERE state = 'queued';
-- end
SELECT 1;

-- +goose Down
-- only postgres
DROP INDEX wakes_order;
-- end
SELECT 1;
