package gate

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"reeve"
	"reeve/internal/redact"
	"reeve/internal/store"
)

// viewCache caches the data by which the gate decides on calls. An entry may be out of date. The write that records a
// call detects that by the revision of the workspace.
type viewCache struct {
	mu         sync.RWMutex
	workspaces map[string]*workspaceView
	agents     map[string]*agentView // keyed by workspace and agent id or name
}

func newViewCache() viewCache {
	return viewCache{workspaces: map[string]*workspaceView{}, agents: map[string]*agentView{}}
}

// maxViews limits the size of the cache. A full cache is emptied.
const maxViews = 10_000

// workspaceView is the catalogue and the secrets of a workspace at one revision.
type workspaceView struct {
	ws               reeve.Workspace
	tools            map[string]*entry
	hasBudgets       bool             // a budget is set
	hasNestedBudgets bool             // a budget has a parent
	isWatched        bool             // an agent has a subscription
	secrets          []string         // the values of stored secrets and configured keys
	redactor         *redact.Redactor // removes the secrets from texts
}

// agentView is an agent at one revision of its workspace.
type agentView struct {
	workspace     *workspaceView
	ws            reeve.Workspace
	agent         reeve.Agent
	profile       reeve.Profile              // the profile of the agent's kind
	attached      map[string]json.RawMessage // settings by tool id
	disabledTools map[string]string          // reasons why this agent cannot call attached tools, by tool id
}

// invalidate removes everything about a workspace from the cache.
func (v *viewCache) invalidate(workspace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.workspaces, workspace)
	v.deleteAgents(workspace)
}

// invalidateAll empties the cache.
func (v *viewCache) invalidateAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.workspaces)
	clear(v.agents)
}

// invalidateAgents removes the agents of a workspace, so that the next use compares revisions. The view of the
// workspace itself is reused if its revision is still current, because loading it takes a tenth of a second.
func (v *viewCache) invalidateAgents(workspace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deleteAgents(workspace)
}

// deleteAgents removes the agents of a workspace. The caller holds v.mu.
func (v *viewCache) deleteAgents(workspace string) {
	for k, a := range v.agents {
		if a.ws.ID == workspace {
			delete(v.agents, k)
		}
	}
}

// getAgent returns the view of an agent, given its id or name. It loads the view if it is not cached.
func (v *viewCache) getAgent(ctx context.Context, g *Gate, workspace, agent string) (*agentView, error) {
	key := workspace + "\x00" + agent
	v.mu.RLock()
	a, ok := v.agents[key]
	v.mu.RUnlock()
	if ok {
		return a, nil
	}
	var loaded *agentView
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		loaded, err = v.loadAgent(ctx, g, s, workspace, agent)
		return err
	})
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.agents) >= maxViews {
		clear(v.agents)
		clear(v.workspaces)
	}
	v.workspaces[workspace], v.agents[key] = loaded.workspace, loaded
	return loaded, nil
}

// refreshAgent returns a view of the agent at the current revision. It is used for calls whose handler runs before a
// write checks the revision. The agent is looked up by the caller's name for it, which may denote another agent by now.
func (v *viewCache) refreshAgent(ctx context.Context, g *Gate, was *agentView, agent string) (*agentView, error) {
	var now reeve.Workspace
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		now, err = s.Agents().GetWorkspace(ctx, was.ws.ID)
		return err
	})
	if err != nil || now.Revision == was.ws.Revision {
		return was, err
	}
	v.invalidateAgents(was.ws.ID)
	return v.getAgent(ctx, g, was.ws.ID, agent)
}

// runsBeforeWrite reports whether the call runs code before a write that would detect an outdated view. This is so for
// reads, for previews and for questions to a model, which have no tool.
func (v *agentView) runsBeforeWrite(c reeve.Call) bool {
	e, ok := v.workspace.tools[c.Tool]
	return c.Tool == "" || ok && (e.tool.Effect == reeve.Read || e.tool.Preview != nil &&
		(c.PreviewOnly || c.Base != "" || e.tool.Effect.IsExternal()))
}

func (v *viewCache) loadAgent(ctx context.Context, g *Gate, s *store.Snap,
	workspace, agent string) (*agentView, error) {
	w, err := v.getWorkspace(ctx, g, s, workspace)
	if err != nil {
		return nil, err
	}
	a, err := s.Agents().GetAgent(ctx, workspace, agent)
	if err != nil {
		return nil, err
	}
	out := &agentView{workspace: w, ws: w.ws, agent: a, attached: map[string]json.RawMessage{},
		disabledTools: map[string]string{}}
	if out.profile, err = getProfile(ctx, s, workspace, a.Kind); err != nil {
		return nil, err
	}
	list, err := s.Agents().AgentTools(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	for _, at := range list {
		out.attached[at.ToolID] = at.Config
		if e := w.tools[at.ToolID]; e != nil && e.tool.WorkspaceID != at.ToolWorkspace {
			out.disabledTools[at.ToolID] = idTakenReason
		} else if e != nil {
			if why := e.whyNotCallable(at.Config); why != "" {
				out.disabledTools[at.ToolID] = why
			}
		}
	}
	return out, nil
}

// getWorkspace returns the view of a workspace at the revision of the snapshot. It reuses the cached view, or the
// compiled tools of an older one.
func (v *viewCache) getWorkspace(ctx context.Context, g *Gate, s *store.Snap, id string) (*workspaceView, error) {
	ws, err := s.Agents().GetWorkspace(ctx, id)
	if err != nil {
		return nil, err
	}
	v.mu.RLock()
	cached := v.workspaces[id]
	v.mu.RUnlock()
	if cached != nil && cached.ws.Revision == ws.Revision {
		return cached, nil
	}
	w := &workspaceView{ws: ws, tools: map[string]*entry{}}
	tools, err := s.Agents().Catalogue(ctx, id)
	if err != nil {
		return nil, err
	}
	shared := map[string]bool{}
	for _, t := range tools {
		if t.WorkspaceID == "" {
			shared[t.ID] = true
		}
	}
	for _, t := range tools {
		if t.WorkspaceID != "" && shared[t.ID] {
			continue
		}
		if cached != nil {
			if old := cached.tools[t.ID]; old != nil && old.rowHash == rowHash(t) {
				w.tools[t.ID] = old // the schema is already compiled
				continue
			}
		}
		w.tools[t.ID] = g.Catalogue.newEntry(t)
	}
	if w.hasBudgets, w.hasNestedBudgets, err = s.Ledger().HasBudgets(ctx, id); err != nil {
		return nil, err
	}
	if w.isWatched, err = s.Queue().HasSubscriptions(ctx, id); err != nil {
		return nil, err
	}
	stored, err := s.Agents().SecretValues(ctx, id)
	if err != nil {
		return nil, err
	}
	w.secrets = slices.Concat(g.secrets(), stored)
	if cached != nil && slices.Equal(cached.secrets, w.secrets) {
		w.redactor = cached.redactor
	} else {
		w.redactor = redact.New(w.secrets)
	}
	return w, nil
}

// BuiltinProfiles returns the profiles of the built-in kinds. A workspace can replace them.
func BuiltinProfiles() []reeve.Profile {
	return []reeve.Profile{
		{Kind: "assistant", Capabilities: []string{"files.read", "files.write"}},
		{Kind: "engineer", Capabilities: []string{"files.read", "files.write", "shell"}},
		{Kind: "reader", Capabilities: []string{"files.read"}},
		{Kind: "planner", Capabilities: []string{"category.read", "task.read", "task.write", "checklist.write",
			"time.read", "time.write", "dayplan.read", "dayplan.write",
			"rating.read", "rating.write"}},
		{Kind: "coach", Capabilities: []string{"category.read", "task.read", "time.read", "dayplan.read",
			"rating.read"}},
	}
}

// getProfile returns the profile of a kind: the workspace's own, else the built-in one, else an empty one.
func getProfile(ctx context.Context, s *store.Snap, workspace, kind string) (reeve.Profile, error) {
	p, ok, err := s.Agents().GetProfile(ctx, workspace, kind)
	if err != nil || ok {
		return p, err
	}
	for _, p := range BuiltinProfiles() {
		if p.Kind == kind {
			return p, nil
		}
	}
	return p, nil
}
