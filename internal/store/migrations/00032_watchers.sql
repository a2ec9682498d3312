-- +goose Up
-- Who had an agent watch something: what is a user's own is shown to predicates of that user's subscriptions alone. Of those that were there before nobody knows.
ALTER TABLE subscriptions ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE subscriptions DROP COLUMN user_id;
