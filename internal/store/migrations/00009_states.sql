-- +goose Up
-- Who wrote each slot last, and the number of this node that the agent has seen.
ALTER TABLE agent_states ADD COLUMN stamps TEXT NOT NULL DEFAULT '';
ALTER TABLE agent_states ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
-- This node's number when the active run began: all that came before it, the run could see.
ALTER TABLE agent_runtimes ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN counter BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN clock TEXT NOT NULL DEFAULT '';
-- How often a wake could not be judged.
ALTER TABLE wakes ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE wakes DROP COLUMN tries;
ALTER TABLE agents DROP COLUMN clock;
ALTER TABLE agents DROP COLUMN counter;
ALTER TABLE agents DROP COLUMN node;
ALTER TABLE agent_runtimes DROP COLUMN seen;
ALTER TABLE agent_states DROP COLUMN seen;
ALTER TABLE agent_states DROP COLUMN stamps;
