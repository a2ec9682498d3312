-- +goose Up

-- The file that a note was imported from, such as import:MEMORY.md.
ALTER TABLE notes ADD COLUMN source TEXT NOT NULL DEFAULT '';
CREATE INDEX notes_superseded ON notes (owner, superseded_by) WHERE superseded_by <> '';

-- What was imported, so that a repeated import adds nothing. The key is a hash of the source and the text, or the id of a
-- note in an export that equals a note of the user. Rows stay when the note is changed, deleted or forgotten.
CREATE TABLE note_imports (
  owner        TEXT NOT NULL,
  key          TEXT NOT NULL,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  note_id      TEXT NOT NULL,
  PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX note_imports_workspace ON note_imports (workspace_id);
