-- +goose Up

-- The version of a note that consolidation has compared with the user's other notes. It is 0 for a note that was never
-- compared.
ALTER TABLE notes ADD COLUMN compared BIGINT NOT NULL DEFAULT 0;
CREATE INDEX notes_uncompared ON notes (owner, n) WHERE compared < version AND superseded_by = '' AND deleted_at = 0;

-- Changes of notes that consolidation found and has not yet passed to the gate. The id is the operation id of the call.
CREATE TABLE note_suggestions (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  user_id      TEXT NOT NULL,
  tool         TEXT NOT NULL,
  args         TEXT NOT NULL,
  reason       TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX note_suggestions_user ON note_suggestions (workspace_id, user_id, created_at, id);

-- When the notes of a user were last consolidated by the schedule.
CREATE TABLE note_consolidations (
  owner        TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  user_id      TEXT NOT NULL,
  started_at   BIGINT NOT NULL
);
CREATE INDEX note_consolidations_workspace ON note_consolidations (workspace_id);
