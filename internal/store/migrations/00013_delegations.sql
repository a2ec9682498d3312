-- +goose Up
-- A run may be begun by a call of another, and is what that call comes to. Who led to it is written down once, with the run.
ALTER TABLE runs ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN answers TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN ancestors TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_children ON runs (parent_id) WHERE parent_id <> '' AND state IN ('running', 'parked');
CREATE INDEX runs_answers ON runs (answers) WHERE answers <> '';

-- +goose Down
DROP INDEX runs_answers;
DROP INDEX runs_children;
ALTER TABLE runs DROP COLUMN ancestors;
ALTER TABLE runs DROP COLUMN answers;
ALTER TABLE runs DROP COLUMN parent_id;
