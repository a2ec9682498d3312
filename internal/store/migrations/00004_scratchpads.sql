-- +goose Up
CREATE TABLE scratchpads (
  workspace_id TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  items        TEXT NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, session_id)
);

-- +goose Down
DROP TABLE scratchpads;
