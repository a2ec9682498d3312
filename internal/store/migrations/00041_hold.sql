-- +goose Up
-- One row about the database as a whole. Identity is that of the database as the last server found it: a server that finds
-- another one has a copy before it that was restored. While it is held (held_at is not 0) nothing goes on by itself.
CREATE TABLE database_state (
  id          INTEGER PRIMARY KEY,
  identity    TEXT NOT NULL,
  held_at     BIGINT NOT NULL,
  hold_reason TEXT NOT NULL,
  as_of       BIGINT NOT NULL
);
INSERT INTO database_state (id, identity, held_at, hold_reason, as_of) VALUES (1, '', 0, '', 0);

-- +goose Down
DROP TABLE database_state;
