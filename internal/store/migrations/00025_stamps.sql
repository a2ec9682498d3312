-- +goose Up
-- Who changed it last and what they had seen, as in agents. A firing is no change: each node's clock brings its own.
ALTER TABLE subscriptions ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE subscriptions ADD COLUMN counter BIGINT NOT NULL DEFAULT 0;
ALTER TABLE subscriptions ADD COLUMN clock TEXT NOT NULL DEFAULT '';
ALTER TABLE timers ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE timers ADD COLUMN counter BIGINT NOT NULL DEFAULT 0;
ALTER TABLE timers ADD COLUMN clock TEXT NOT NULL DEFAULT '';
-- What was removed, so that a node that still has it can be told.
CREATE TABLE removals (
  kind         TEXT NOT NULL,
  id           TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  node         TEXT NOT NULL,
  counter      BIGINT NOT NULL,
  clock        TEXT NOT NULL,
  removed_at   BIGINT NOT NULL,
  PRIMARY KEY (kind, id)
);

-- +goose Down
DROP TABLE removals;
ALTER TABLE timers DROP COLUMN clock;
ALTER TABLE timers DROP COLUMN counter;
ALTER TABLE timers DROP COLUMN node;
ALTER TABLE subscriptions DROP COLUMN clock;
ALTER TABLE subscriptions DROP COLUMN counter;
ALTER TABLE subscriptions DROP COLUMN node;
