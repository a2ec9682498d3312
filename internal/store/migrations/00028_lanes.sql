-- +goose Up
-- One rule for every lane: the runs that take turns are those of one lane of one agent, and a lane has one open run. A schedule's lane is its session, all else of an agent is in the
-- lane that has no name. What an agent has seen when its run starts is beside the run.
ALTER TABLE open_runs ADD COLUMN lane TEXT NOT NULL DEFAULT '';
ALTER TABLE open_runs ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
UPDATE open_runs SET lane = session_id WHERE substr(session_id, 1, 9) = 'schedule:' OR substr(session_id, 1, 5) = 'step:';
UPDATE open_runs SET seen = COALESCE((SELECT r.seen FROM agent_runtimes r WHERE r.agent_id = open_runs.agent_id AND r.active_run = open_runs.run_id), 0);
DROP INDEX open_runs_lane;
CREATE UNIQUE INDEX open_runs_lane ON open_runs (agent_id, lane) WHERE turn = 0;
ALTER TABLE agent_runtimes DROP COLUMN active_run;
ALTER TABLE agent_runtimes DROP COLUMN seen;

-- +goose Down
ALTER TABLE agent_runtimes ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agent_runtimes ADD COLUMN active_run TEXT NOT NULL DEFAULT '';
UPDATE agent_runtimes SET active_run = COALESCE((SELECT o.run_id FROM open_runs o WHERE o.agent_id = agent_runtimes.agent_id AND o.turn = 0 AND o.lane = ''), ''),
  seen = COALESCE((SELECT o.seen FROM open_runs o WHERE o.agent_id = agent_runtimes.agent_id AND o.turn = 0 AND o.lane = ''), 0);
DROP INDEX open_runs_lane;
CREATE UNIQUE INDEX open_runs_lane ON open_runs (agent_id, session_id) WHERE turn = 0;
ALTER TABLE open_runs DROP COLUMN seen;
ALTER TABLE open_runs DROP COLUMN lane;
