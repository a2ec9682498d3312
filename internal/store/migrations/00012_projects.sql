-- +goose Up
CREATE TABLE projects (
  id             TEXT PRIMARY KEY,
  workspace_id   TEXT NOT NULL,
  name           TEXT NOT NULL,
  path           TEXT NOT NULL,
  default_branch TEXT NOT NULL,
  created_by     TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  UNIQUE (workspace_id, name)
);
-- One branch for each conversation, automation or agent that works on a project.
CREATE TABLE branches (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  project_id   TEXT NOT NULL,
  kind         TEXT NOT NULL,
  subject      TEXT NOT NULL,
  name         TEXT NOT NULL,
  base         TEXT NOT NULL,
  head         TEXT NOT NULL,
  state        TEXT NOT NULL,
  merged       TEXT NOT NULL,
  merged_by    TEXT NOT NULL,
  merged_at    BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  UNIQUE (project_id, kind, subject)
);
CREATE INDEX branches_newest ON branches (workspace_id, id);
CREATE INDEX branches_subject ON branches (subject);
-- What the shell of a thread had when its last command ended.
CREATE TABLE shells (
  workspace_id TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  state        BYTEA NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, thread_id)
);

-- +goose Down
DROP TABLE shells;
DROP TABLE branches;
DROP TABLE projects;
