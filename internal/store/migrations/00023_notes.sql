-- +goose Up
-- What an agent remembers of a user. The owner is the two of them in one word, so that a search finds theirs alone, however many others there are.
-- only sqlite
CREATE TABLE notes (
  n               INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  owner           TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  content         TEXT NOT NULL,
  created_at      BIGINT NOT NULL
);
CREATE VIRTUAL TABLE notes_words USING fts5 (owner, content, content='notes', content_rowid='n', tokenize='porter unicode61 remove_diacritics 2');
-- +goose StatementBegin
CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN
  INSERT INTO notes_words (rowid, owner, content) VALUES (new.n, new.owner, new.content);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_deleted AFTER DELETE ON notes BEGIN
  INSERT INTO notes_words (notes_words, rowid, owner, content) VALUES ('delete', old.n, old.owner, old.content);
END;
-- +goose StatementEnd
-- end

-- only postgres
CREATE TABLE notes (
  n               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  workspace_id    TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  owner           TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn_id         TEXT NOT NULL,
  content         TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  words           tsvector GENERATED ALWAYS AS (to_tsvector('reeve_mail', reeve_plain(content))) STORED
);
CREATE INDEX notes_words ON notes USING gin (words);
-- end
CREATE INDEX notes_owner ON notes (owner, n);
CREATE INDEX notes_user ON notes (workspace_id, user_id, n);

-- +goose Down
-- only sqlite
DROP TABLE notes_words;
-- end
DROP TABLE notes;
