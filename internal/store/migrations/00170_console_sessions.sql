-- +goose Up

-- A token is a bearer token, a session of the console, or a link that signs in once. A session or link ends with the
-- token that it derives from, its parent.
ALTER TABLE access_tokens ADD COLUMN kind TEXT NOT NULL DEFAULT 'token';
ALTER TABLE access_tokens ADD COLUMN parent_id TEXT NOT NULL DEFAULT '';
CREATE INDEX access_tokens_parent ON access_tokens (parent_id) WHERE parent_id <> '';
CREATE INDEX access_tokens_expired ON access_tokens (expires_at) WHERE parent_id <> '';
