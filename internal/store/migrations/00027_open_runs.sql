-- +goose Up
-- The runs that are under way, apart: they are few, and what has ended must cost nothing. A run that ends changes nothing that an index of runs looks at,
-- which lets PostgreSQL write it where it is instead of into every index again.
CREATE TABLE open_runs (
  run_id     TEXT PRIMARY KEY,
  agent_id   TEXT NOT NULL,
  session_id TEXT NOT NULL,
  parent_id  TEXT NOT NULL,
  turn       BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO open_runs (run_id, agent_id, session_id, parent_id, turn)
  SELECT id, agent_id, session_id, parent_id, CASE WHEN reason = 'user_initiated' THEN 1 ELSE 0 END FROM runs WHERE state IN ('running', 'parked');
-- A session has one run at a time, but for turns; see store.ScheduleLane.
CREATE UNIQUE INDEX open_runs_lane ON open_runs (agent_id, session_id) WHERE turn = 0;
CREATE INDEX open_runs_session ON open_runs (session_id) WHERE turn = 1;
CREATE INDEX open_runs_talker ON open_runs (agent_id) WHERE turn = 1;
CREATE INDEX open_runs_children ON open_runs (parent_id) WHERE parent_id <> '';
DROP INDEX runs_open;
DROP INDEX runs_lane;
DROP INDEX runs_talking;
DROP INDEX runs_children;
-- Every agent has its row from the beginning.
INSERT INTO agent_runtimes (agent_id, active_run, failures, last_run_at) SELECT id, '', 0, 0 FROM agents WHERE id NOT IN (SELECT agent_id FROM agent_runtimes);
-- only postgres
ALTER TABLE runs SET (fillfactor = 50);
ALTER TABLE agent_runtimes SET (fillfactor = 50);
-- end

-- +goose Down
-- only postgres
ALTER TABLE agent_runtimes RESET (fillfactor);
ALTER TABLE runs RESET (fillfactor);
-- end
CREATE INDEX runs_children ON runs (parent_id) WHERE parent_id <> '' AND state IN ('running', 'parked');
CREATE INDEX runs_talking ON runs (session_id, id) WHERE reason = 'user_initiated' AND state IN ('running', 'parked');
CREATE UNIQUE INDEX runs_lane ON runs (agent_id, session_id) WHERE state IN ('running', 'parked') AND reason <> 'user_initiated';
CREATE INDEX runs_open ON runs (state) WHERE state IN ('running', 'parked');
DROP TABLE open_runs;
