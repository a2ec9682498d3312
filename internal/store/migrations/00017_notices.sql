-- +goose Up
-- What an agent was told between its turns. There is little of it, and looking for it must not read the turns.
CREATE INDEX messages_notice ON messages (thread_id, id) WHERE run_id = '' AND kind = 'observation';

-- +goose Down
DROP INDEX messages_notice;
