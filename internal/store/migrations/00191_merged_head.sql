-- +goose Up

-- The head of a branch at its last merge. A branch is merged while it is its head. Older merges do not have it.
ALTER TABLE branches ADD COLUMN merged_head TEXT NOT NULL DEFAULT '';
