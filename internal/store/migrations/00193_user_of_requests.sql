-- +goose Up

-- Forgetting a note erases its text in the stored responses of its user only.
ALTER TABLE requests ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

-- An earlier version of a note keeps since when it was true. 0 is not known.
ALTER TABLE note_versions ADD COLUMN valid_from BIGINT NOT NULL DEFAULT 0;
