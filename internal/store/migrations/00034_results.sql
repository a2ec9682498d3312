-- +goose Up
-- How many results of calls that are answered later a parked run knows of. It was the moment up to which it knew of all, but what is written before a moment may be committed after it.
ALTER TABLE runs RENAME COLUMN seen_at TO results;
UPDATE runs SET results = 0 WHERE id IN (SELECT run_id FROM open_runs);

-- +goose Down
ALTER TABLE runs RENAME COLUMN results TO seen_at;
UPDATE runs SET seen_at = 0 WHERE id IN (SELECT run_id FROM open_runs);
