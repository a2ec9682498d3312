-- +goose Up
-- A POST that came with an Idempotency-Key, and its answer. Status is 0 until it was answered.
CREATE TABLE requests (
  id         TEXT PRIMARY KEY,
  hash       TEXT NOT NULL,
  status     BIGINT NOT NULL,
  body       BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX requests_created ON requests (created_at);

-- +goose Down
DROP TABLE requests;
