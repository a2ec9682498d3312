-- +goose Up

-- Every change of a user's vectors gives their set a new revision, so that servers can keep the sign bits in memory. No
-- revision is used twice.
ALTER TABLE note_vector_sets ADD COLUMN revision TEXT NOT NULL DEFAULT '';
