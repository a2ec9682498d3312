-- +goose Up
-- Everything here is shared between nodes later, so each row says who wrote it last (node, counter) and what they had seen
-- (clock, a JSON object), and what is deleted stays, marked. Rules such as unique names are kept by the code, under the lock
-- that a node's counter is: a unique index would refuse what two nodes wrote apart.
CREATE TABLE nodes (
  id         TEXT PRIMARY KEY,
  counter    BIGINT NOT NULL,
  self       BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX nodes_self ON nodes (self) WHERE self = 1;

CREATE TABLE categories (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  name         TEXT NOT NULL,
  folded       TEXT NOT NULL
);
CREATE INDEX categories_name ON categories (workspace_id, folded);

CREATE TABLE labels (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  name         TEXT NOT NULL,
  folded       TEXT NOT NULL,
  category_id  TEXT NOT NULL
);
CREATE INDEX labels_name ON labels (workspace_id, folded);

CREATE TABLE tasks (
  id               TEXT PRIMARY KEY,
  workspace_id     TEXT NOT NULL,
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL,
  deleted_at       BIGINT NOT NULL,
  node             TEXT NOT NULL,
  counter          BIGINT NOT NULL,
  clock            TEXT NOT NULL,
  category_id      TEXT NOT NULL,
  title            TEXT NOT NULL,
  folded           TEXT NOT NULL,
  description      TEXT NOT NULL,
  status           TEXT NOT NULL,
  priority         TEXT NOT NULL,
  estimate_minutes BIGINT NOT NULL,
  due_date         TEXT NOT NULL,
  language         TEXT NOT NULL,
  closed_at        BIGINT NOT NULL,
  created_by       TEXT NOT NULL
);
CREATE INDEX tasks_workspace ON tasks (workspace_id, created_at, id) WHERE deleted_at = 0;
CREATE INDEX tasks_category ON tasks (category_id, created_at, id) WHERE deleted_at = 0;
CREATE INDEX tasks_recent ON tasks (workspace_id, updated_at, id) WHERE deleted_at = 0;

CREATE TABLE task_labels (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  label_id     TEXT NOT NULL
);
CREATE INDEX task_labels_task ON task_labels (task_id) WHERE deleted_at = 0;
CREATE INDEX task_labels_label ON task_labels (label_id) WHERE deleted_at = 0;

CREATE TABLE checklists (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  title        TEXT NOT NULL,
  position     BIGINT NOT NULL
);
CREATE INDEX checklists_task ON checklists (task_id, position) WHERE deleted_at = 0;

CREATE TABLE checklist_items (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  checklist_id TEXT NOT NULL,
  title        TEXT NOT NULL,
  checked      BIGINT NOT NULL,
  position     BIGINT NOT NULL
);
CREATE INDEX checklist_items_list ON checklist_items (checklist_id, position) WHERE deleted_at = 0;

CREATE TABLE time_entries (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  start_offset BIGINT NOT NULL,
  ended_at     BIGINT NOT NULL,
  end_offset   BIGINT NOT NULL,
  note         TEXT NOT NULL,
  source_id    TEXT NOT NULL
);
CREATE INDEX time_entries_user ON time_entries (workspace_id, user_id, started_at, id) WHERE deleted_at = 0;
CREATE INDEX time_entries_running ON time_entries (workspace_id, user_id) WHERE deleted_at = 0 AND ended_at = 0;
CREATE INDEX time_entries_task ON time_entries (task_id, started_at, id) WHERE deleted_at = 0;

CREATE TABLE day_plans (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  day          TEXT NOT NULL
);

CREATE TABLE plan_blocks (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  plan_id      TEXT NOT NULL,
  category_id  TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  starts_at    BIGINT NOT NULL,
  start_offset BIGINT NOT NULL,
  ends_at      BIGINT NOT NULL,
  end_offset   BIGINT NOT NULL,
  note         TEXT NOT NULL
);
CREATE INDEX plan_blocks_plan ON plan_blocks (plan_id, starts_at) WHERE deleted_at = 0;

CREATE TABLE plan_pins (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  plan_id      TEXT NOT NULL,
  task_id      TEXT NOT NULL,
  position     BIGINT NOT NULL
);
CREATE INDEX plan_pins_plan ON plan_pins (plan_id, position) WHERE deleted_at = 0;

CREATE TABLE ratings (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  target_kind  TEXT NOT NULL,
  target_id    TEXT NOT NULL,
  scores       TEXT NOT NULL,
  note         TEXT NOT NULL
);
CREATE INDEX ratings_user ON ratings (workspace_id, user_id, created_at, id) WHERE deleted_at = 0;

CREATE TABLE links (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  deleted_at   BIGINT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  from_id      TEXT NOT NULL,
  to_id        TEXT NOT NULL,
  relation     TEXT NOT NULL
);
CREATE INDEX links_from ON links (from_id) WHERE deleted_at = 0;
CREATE INDEX links_to ON links (to_id) WHERE deleted_at = 0;

-- +goose Down
DROP TABLE links;
DROP TABLE ratings;
DROP TABLE plan_pins;
DROP TABLE plan_blocks;
DROP TABLE day_plans;
DROP TABLE time_entries;
DROP TABLE checklist_items;
DROP TABLE checklists;
DROP TABLE task_labels;
DROP TABLE tasks;
DROP TABLE labels;
DROP TABLE categories;
DROP TABLE nodes;
