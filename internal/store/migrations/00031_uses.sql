-- +goose Up
-- What kept bytes may be read as, see Use. What was kept before this was asked may be read as anything, as it could be till then.
ALTER TABLE payloads ADD COLUMN uses BIGINT NOT NULL DEFAULT 7;

-- +goose Down
ALTER TABLE payloads DROP COLUMN uses;
