-- +goose Up
-- Whose an inbox and an import are: who brought them in. What is nobody's is the owners' business.
ALTER TABLE inboxes ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE mail_imports ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
-- What the last batch said: the same again changes nothing, something else under the same position is refused.
ALTER TABLE mail_imports ADD COLUMN batch TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE mail_imports DROP COLUMN batch;
ALTER TABLE mail_imports DROP COLUMN user_id;
ALTER TABLE inboxes DROP COLUMN user_id;
