-- +goose Up

-- What a change did to an entity. change_id is the operation, or the derived id of a change that a person or the
-- scheduler made. For an operation, the row in calls has the tool, the run and the reason. owner is the user to whom a
-- private entity belongs. counter is that of the node's stamp; it is the order of the changes, and 0 for signals.
CREATE TABLE changes (
  change_id    TEXT NOT NULL,
  entity_id    TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  kind         TEXT NOT NULL,
  title        TEXT NOT NULL,
  category_id  TEXT NOT NULL,
  owner        TEXT NOT NULL,
  action       TEXT NOT NULL,
  fields       TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (change_id, entity_id)
);
CREATE INDEX changes_workspace ON changes (workspace_id, created_at, counter, change_id);
CREATE INDEX changes_entity ON changes (workspace_id, entity_id, created_at, counter, change_id);
CREATE INDEX changes_age ON changes (created_at);
