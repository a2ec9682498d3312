-- +goose Up

-- Notes belong to a user and are no longer kept apart by agent. The owner is one word for workspace and user, so that a
-- search can select the notes of a user.
DROP INDEX notes_owner;
-- only sqlite
DROP TRIGGER notes_inserted;
DROP TRIGGER notes_deleted;
DROP TABLE notes_words;
UPDATE notes SET owner = 'u' || lower(hex(workspace_id || '/' || user_id));
-- end
-- only postgres
DROP INDEX notes_words;
ALTER TABLE notes DROP COLUMN words;
UPDATE notes SET owner = 'u' || encode(convert_to(workspace_id || '/' || user_id, 'UTF8'), 'hex');
-- end
ALTER TABLE notes ADD COLUMN operation_id TEXT NOT NULL DEFAULT '';
ALTER TABLE notes ADD COLUMN origin TEXT NOT NULL DEFAULT 'agent';
ALTER TABLE notes ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE notes ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE notes ADD COLUMN valid_from BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN superseded_by TEXT NOT NULL DEFAULT '';
ALTER TABLE notes ADD COLUMN superseded_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN deleted_at BIGINT NOT NULL DEFAULT 0;
-- The hash of content and tags finds exact duplicates. It is empty for notes of schema version 100.
ALTER TABLE notes ADD COLUMN hash TEXT NOT NULL DEFAULT '';
-- The embedding model of the note's vector. It is empty until the vector is computed.
ALTER TABLE notes ADD COLUMN vector_model TEXT NOT NULL DEFAULT '';
UPDATE notes SET valid_from = created_at, updated_at = created_at;
CREATE INDEX notes_owner ON notes (owner, n);
CREATE INDEX notes_pinned ON notes (owner, n) WHERE pinned = 1;
CREATE INDEX notes_hash ON notes (owner, hash);
CREATE INDEX notes_without_vector ON notes (vector_model, n) WHERE superseded_by = '' AND deleted_at = 0;

-- only sqlite
CREATE VIRTUAL TABLE notes_words USING fts5 (owner, content, content='notes', content_rowid='n', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO notes_words (notes_words) VALUES ('rebuild');
-- +goose StatementBegin
CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN
  INSERT INTO notes_words (rowid, owner, content) VALUES (new.n, new.owner, new.content);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER notes_updated AFTER UPDATE OF content ON notes BEGIN
  INSERT INTO notes_words (notes_words, rowid, owner, content) VALUES ('delete', old.n, old.owner, old.content);
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
ALTER TABLE notes ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('reeve_mail', owner) || to_tsvector('reeve_mail', reeve_plain(content))) STORED;
CREATE INDEX notes_words ON notes USING gin (words);
-- end

-- The tags of notes, for searches.
CREATE TABLE note_tags (
  owner   TEXT NOT NULL,
  tag     TEXT NOT NULL,
  note_id TEXT NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
  PRIMARY KEY (owner, tag, note_id)
) WITHOUT ROWID;
CREATE INDEX note_tags_note ON note_tags (note_id);

-- What notes said before they were updated.
CREATE TABLE note_versions (
  note_id      TEXT NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
  version      BIGINT NOT NULL,
  content      TEXT NOT NULL,
  tags         TEXT NOT NULL,
  origin       TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (note_id, version)
);

-- What remains of a forgotten note: no text.
CREATE TABLE note_tombstones (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  user_id      TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  forgotten_at BIGINT NOT NULL
);
CREATE INDEX note_tombstones_user ON note_tombstones (workspace_id, user_id);

-- The vectors of notes. The vectors of one owner and model have the slots 0, 1, 2 and so on without gaps. The sign bits of
-- 256 consecutive slots are also in one block, so that a search reads few rows.
CREATE TABLE note_vectors (
  note_id TEXT PRIMARY KEY REFERENCES notes (id) ON DELETE CASCADE,
  owner   TEXT NOT NULL,
  model   TEXT NOT NULL,
  slot    BIGINT NOT NULL,
  vector  BYTEA NOT NULL
);
CREATE UNIQUE INDEX note_vectors_slot ON note_vectors (owner, model, slot);

CREATE TABLE note_vector_sets (
  owner        TEXT NOT NULL,
  model        TEXT NOT NULL,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  vectors      BIGINT NOT NULL,
  PRIMARY KEY (owner, model)
);

CREATE TABLE note_vector_blocks (
  owner  TEXT NOT NULL,
  model  TEXT NOT NULL,
  block  BIGINT NOT NULL,
  codes  BYTEA NOT NULL,
  PRIMARY KEY (owner, model, block),
  FOREIGN KEY (owner, model) REFERENCES note_vector_sets (owner, model) ON DELETE CASCADE
);
-- only postgres
ALTER TABLE note_vector_blocks ALTER COLUMN codes SET STORAGE EXTERNAL;
ALTER TABLE note_vectors ALTER COLUMN vector SET STORAGE PLAIN;
-- end
