-- +goose Up

-- The agent that writes scripts has a kind of its own. The kind planner stays with agents that plan a person's day.
UPDATE agents SET kind = 'script_planner'
WHERE kind = 'planner' AND id IN (SELECT agent_id FROM agent_tools WHERE tool_id = 'scripts_save');

-- Its capabilities, where a workspace has set those of the kind planner.
INSERT INTO profiles (workspace_id, kind, capabilities)
SELECT p.workspace_id, 'script_planner', p.capabilities FROM profiles p
WHERE p.kind = 'planner' AND EXISTS (SELECT 1 FROM agents a WHERE a.workspace_id = p.workspace_id
  AND a.kind = 'script_planner')
ON CONFLICT (workspace_id, kind) DO NOTHING;

-- A profile that only the script planner's agent needed no longer hides the built-in one.
DELETE FROM profiles WHERE kind = 'planner'
AND capabilities IN ('["scripts.see","scripts.plan"]', '["scripts.plan","scripts.see"]')
AND EXISTS (SELECT 1 FROM profiles o WHERE o.workspace_id = profiles.workspace_id AND o.kind = 'script_planner');
