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

// viewCache caches what calls are judged by. It may be out of date: the write that records a call finds out.
type viewCache struct {
	mu         sync.RWMutex
	workspaces map[string]*workspaceView
	agents     map[string]*agentView // by workspace and id or name
}

func newViewCache() viewCache {
	return viewCache{workspaces: map[string]*workspaceView{}, agents: map[string]*agentView{}}
}

// maxViews bounds the cache; past it everything is forgotten and read again.
const maxViews = 10_000

// workspaceView is a workspace's catalogue at one revision.
type workspaceView struct {
	ws               reeve.Workspace
	tools            map[string]*entry
	hasBudgets       bool             // whether any budget is set
	hasNestedBudgets bool             // whether one of them has a parent
	isWatched        bool             // whether any agent subscribes to anything
	secrets          []string         // the values of the stored secrets and configured keys
	redactor         *redact.Redactor // removes them
}

// agentView is an agent at one revision of its workspace.
type agentView struct {
	workspace     *workspaceView
	ws            reeve.Workspace
	agent         reeve.Agent
	profile       reeve.Profile              // of its kind
	attached      map[string]json.RawMessage // tool to settings
	disabledTools map[string]string          // of them those that the agent cannot call though others can, and why
}

// forget drops all that is known of a workspace.
func (v *viewCache) invalidate(workspace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.workspaces, workspace)
	v.deleteAgents(workspace)
}

// forgetAll drops all that is known of every workspace.
func (v *viewCache) invalidateAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.workspaces)
	clear(v.agents)
}

// doubt has it looked up whether what is known of a workspace still holds, the next time that it is needed. Its
// catalogue stays if it does: to read it takes a tenth of a second.
func (v *viewCache) invalidateAgents(workspace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deleteAgents(workspace)
}

// drop drops the views of a workspace's agents. The caller holds v.mu.
func (v *viewCache) deleteAgents(workspace string) {
	for k, a := range v.agents {
		if a.ws.ID == workspace {
			delete(v.agents, k)
		}
	}
}

// agent gives the view of an agent, by id or name, reading it when it is not cached.
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

// current gives the view of an agent as it is now, for a call whose handler runs before anything is written that would
// find out. The agent is looked up as the caller names it: a name may be another's by now.
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

// runsBeforeWrite tells whether something is done for a caller before a write that would find out that the view is old: all
// of a tool that reads, a tool's preview, and a question to a model, which is no tool's.
func (v *agentView) runsBeforeWrite(c reeve.Call) bool {
	e, ok := v.workspace.tools[c.Tool]
	return c.Tool == "" || ok && (e.tool.Effect == reeve.Read || e.tool.Preview != nil &&
		(c.PreviewOnly || c.Base != "" || e.tool.Effect.IsExternal()))
}

func (v *viewCache) loadAgent(ctx context.Context, g *Gate, s *store.Snap, workspace, agent string) (*agentView, error) {
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

// workspace gives the view of a workspace at the snapshot's revision, reusing the cached one when it is the same.
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
				w.tools[t.ID] = old // its schema is compiled already
				continue
			}
		}
		w.tools[t.ID] = g.Catalogue.newEntry(t)
	}
	if w.hasBudgets, w.hasNestedBudgets, err = s.Ledger().HasBudgets(ctx, id); err != nil {
		return nil, err
	}
	if w.isWatched, err = s.Queue().Watched(ctx, id); err != nil {
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

// checkNotStopped says so when the server is held or the kill switch is on.
func (v *agentView) checkNotStopped() error {
	if v.ws.Hold != nil {
		return v.ws.Hold.Err()
	}
	if v.ws.StoppedAt != nil {
		what := "everything in this workspace is stopped"
		if v.ws.StopReason != "" {
			what += ": " + v.ws.StopReason
		}
		return reeve.Errorf(reeve.Stopped, "%s", what).Hintf("a member can resume it")
	}
	if v.agent.StoppedAt != nil {
		return reeve.Errorf(reeve.Stopped, "the agent %s is stopped", v.agent.Name).Hintf("a member can resume it")
	}
	return nil
}

// BuiltinProfiles is what agents of the built-in kinds may do, until a workspace sets a profile of its own.
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

// getProfile gives what agents of a kind may do: the workspace's profile, else the built-in one, else nothing.
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
