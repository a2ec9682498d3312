package gate

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// behalf is an agent on whose behalf a call is made, because a call of its own led to the run. The call passes only what both may:
// whoever is asked by another lends it nothing.
type behalf struct {
	*agentView
	reeve.Ancestor
	later bool // it is no ancestor of the run: it led to it by what an earlier call left behind (see reeve.Delegator)
}

// source is an agent on whose behalf a call is made, before its view is read.
type source struct {
	reeve.Ancestor
	had   *reeve.Rights // what it could do when it delegated; nil means that only what it can do now counts
	later bool
}

// lines remembers who led to which run. That never changes, so nothing of it is ever out of date.
type lines struct {
	mu   sync.RWMutex
	runs map[string]line // by workspace and id
}

type line struct {
	agent     string
	thread    string
	ancestors []reeve.Ancestor
	behalf    []reeve.Delegator
}

func lineOf(r reeve.Run) line {
	return line{r.AgentID, r.ThreadID, r.Ancestors, r.OnBehalfOf}
}

// sources lists on whose behalf a call in the run is made. An ancestor from which the run acts apart is no delegator, so that delegators
// come after all ancestors.
func (l line) sources(more []reeve.Delegator) []source {
	var list []source
	for _, a := range l.ancestors {
		list = append(list, source{Ancestor: a})
	}
	for _, d := range slices.Concat(l.behalf, more) {
		list = append(list, source{reeve.Ancestor{AgentID: d.AgentID, Tools: d.Tools}, d.Had, true})
	}
	return list
}

// of gives who led to a run. One that the store does not know has nobody.
func (l *lines) of(ctx context.Context, db *store.DB, workspace, run string) (line, error) {
	key := workspace + "\x00" + run
	l.mu.RLock()
	found, ok := l.runs[key]
	l.mu.RUnlock()
	if ok {
		return found, nil
	}
	err := db.View(ctx, func(s *store.Snap) error {
		r, err := s.GetRun(ctx, workspace, run)
		found = lineOf(r)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return line{}, nil
	}
	if err != nil {
		return line{}, err
	}
	l.put(key, found)
	return found, nil
}

func (l *lines) put(key string, found line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil || len(l.runs) >= maxViews {
		l.runs = map[string]line{}
	}
	l.runs[key] = found
}

// Meet tells who led to a run that somebody has read, who then need not wait until it is read again.
func (g *Gate) Meet(run reeve.Run) {
	g.lines.put(run.WorkspaceID+"\x00"+run.ID, lineOf(run))
}

// trace finds on whose behalf the call is made, everybody as they are at one revision of the workspace: a call that is proven by it
// is proven for all of them.
func (p *pass) trace(ctx context.Context) error {
	p.behalf, p.home, p.given = nil, "", nil
	var l line
	if p.call.Run != "" {
		var err error
		if l, err = p.g.lines.of(ctx, p.g.DB, p.call.Workspace, p.call.Run); err != nil {
			return err
		}
		if p.call.Via.Brain() && l.agent == p.call.Agent { // in a conversation that another agent leads it is that one's
			p.home = l.thread
		}
		if p.call.Via == reeve.ViaScript && l.agent == "" { // a script that is only tried has no run
			p.home = reeve.RunThread(p.call.Agent, p.call.Run)
		}
	}
	p.given = slices.Concat(l.behalf, p.call.OnBehalfOf)
	list := l.sources(p.call.OnBehalfOf)
	for range rejudge {
		same, err := p.meet(ctx, list)
		if same || err != nil {
			return err
		}
		p.g.views.forget(p.call.Workspace)
		if p.view, err = p.g.views.agent(ctx, p.g, p.call.Workspace, p.call.Agent); err != nil {
			return err
		}
	}
	return reeve.Errorf(reeve.Unavailable, "the workspace keeps changing").Hintf("try again")
}

// meet reads everybody on whose behalf the call is made. False means that one of them is at another revision than the caller.
func (p *pass) meet(ctx context.Context, list []source) (same bool, err error) {
	p.behalf = p.behalf[:0]
	for _, a := range list {
		v, err := p.g.views.agent(ctx, p.g, p.call.Workspace, a.AgentID)
		if reeve.CodeOf(err) == reeve.NotFound {
			return false, reeve.Errorf(reeve.Denied, "the agent on whose behalf this runs is gone").
				Hintf("what was begun for it neither goes on nor is undone; an agent that is there must do it anew")
		}
		if err != nil {
			return false, err
		}
		if v.ws.Revision != p.view.ws.Revision {
			return false, nil
		}
		p.behalf = append(p.behalf, behalf{v, a.Ancestor, a.later})
		if a.had != nil {
			was, tools := v.as(*a.had)
			p.behalf = append(p.behalf, behalf{was, reeve.Ancestor{AgentID: a.AgentID, Tools: tools}, true})
		}
	}
	return true, nil
}

// as is the view of the agent with the rights that it had at an earlier moment, and the tools that it had.
func (v *agentView) as(had reeve.Rights) (*agentView, []string) {
	out := &agentView{workspace: v.workspace, ws: v.ws, agent: v.agent, barred: v.barred, attached: map[string]json.RawMessage{}}
	out.agent.Kind, out.agent.Categories, out.agent.Policy = had.Kind, had.Categories, had.Policy
	out.profile = reeve.Profile{Kind: had.Kind, Capabilities: had.Capabilities}
	tools := []string{} // not nil: without any tool it had none, and not the default ones
	for id, config := range had.Tools {
		if string(config) == "null" {
			config = nil
		}
		out.attached[id] = config
		tools = append(tools, id)
	}
	return out, tools
}

// rights is what the agent can do now. Tools is the list of tools that its call came with; nil means none.
func (v *agentView) rights(tools []string) *reeve.Rights {
	had := reeve.Rights{Kind: v.agent.Kind, Capabilities: v.profile.Capabilities, Categories: v.agent.Categories, Policy: v.agent.Policy,
		Tools: map[string]json.RawMessage{}}
	for id := range v.workspace.tools {
		if v.granted(tools, id) != "" {
			had.Tools[id] = v.attached[id]
		}
	}
	return &had
}

// delegators is on whose behalf that acts which the call leaves behind: everybody whose rights limit the call, with the rights they have
// now, and with self the caller too.
func (p *pass) delegators(self bool) []reeve.Delegator {
	list := slices.Clone(p.given)
	for _, b := range p.lenders() {
		if !b.later {
			d := reeve.Delegator{AgentID: b.AgentID, RunID: b.RunID, Tools: b.Tools, Had: b.rights(b.Tools)}
			list = reeve.JoinDelegators(list, []reeve.Delegator{d})
		}
	}
	if self {
		d := reeve.Delegator{AgentID: p.call.Agent, RunID: p.call.Run, Tools: p.call.Tools, Had: p.view.rights(p.call.Tools)}
		list = reeve.JoinDelegators(list, []reeve.Delegator{d})
	}
	return list
}

// lenders lists those whose rights bound the call's. Where one acts apart, by rights of its own, those before it do not count.
func (p *pass) lenders() []behalf {
	for i := len(p.behalf) - 1; i >= 0; i-- {
		if p.behalf[i].Apart {
			return p.behalf[i+1:]
		}
	}
	return p.behalf
}

// stopped says so when the kill switch is on for the agent, or for one on whose behalf it runs.
func (p *pass) stopped() error {
	if err := p.view.stopped(); err != nil {
		return err
	}
	for _, b := range p.behalf {
		if err := b.stopped(); err != nil {
			return err
		}
	}
	return nil
}

// resting says so when the agent, or one on whose behalf it runs, is not to act: one that is dormant changes nothing, by nobody's hand.
func (p *pass) resting(mutates bool) error {
	rests := func(l reeve.Lifecycle) bool { return l == reeve.AgentDestroyed || l == reeve.AgentDormant && mutates }
	if a := p.view.agent; rests(a.Lifecycle) {
		return reeve.Errorf(reeve.Denied, "the agent is %s", a.Lifecycle).Hintf("%s", revive(a))
	}
	for _, b := range p.lenders() {
		if rests(b.agent.Lifecycle) {
			return reeve.Errorf(reeve.Denied, "%s, on whose behalf this runs, is %s", b.agent.Name, b.agent.Lifecycle).Hintf("%s", revive(b.agent))
		}
	}
	return nil
}

// revive says what to do about an agent that is not to act.
func revive(a reeve.Agent) string {
	if a.Lifecycle == reeve.AgentDestroyed {
		return "a destroyed agent acts no more; another one must do it"
	}
	return "a member can have it act again: reeve agents update " + a.Name + " --lifecycle active"
}

// granted says by what an agent has a tool; empty means that it has it not.
func (v *agentView) granted(list []string, id string) string {
	_, attached := v.attached[id]
	switch {
	case v.barred[id] != "" || !attached && v.needsSettings(id):
	case list != nil:
		if slices.Contains(list, id) {
			return "in the call's own list of tools"
		}
	case attached:
		return "attached to the agent"
	case v.defaults() && isDefault(id):
		return "in the default set, as nothing was ever attached to the agent"
	case id == OutputRead:
		return "comes with every agent"
	}
	return ""
}

// defaults tells whether the agent has the default tools: nothing was ever attached to it.
func (v *agentView) defaults() bool { return len(v.attached) == 0 && !v.agent.OwnTools }

// needsSettings tells whether a tool cannot be called without settings.
func (v *agentView) needsSettings(id string) bool {
	e := v.workspace.tools[id]
	return e != nil && e.needs
}

// lacking names an agent on whose behalf the call is made and that does not have the tool; empty means that all have it.
func (p *pass) lacking(id string) string {
	for _, b := range p.lenders() {
		if id != OutputRead && b.granted(b.Tools, id) == "" {
			return b.agent.Name
		}
	}
	return ""
}

// categories is what the call may touch: what is in the scope of everybody.
func (p *pass) categories() []string {
	have := p.view.agent.Categories
	for _, b := range p.lenders() {
		have = slices.DeleteFunc(slices.Clone(have), func(c string) bool { return !slices.Contains(b.agent.Categories, c) })
	}
	return have
}

// strictness is the order of policy's answers, when several agents' count.
var strictness = map[reeve.Answer]int{reeve.Allow: 0, reeve.Ask: 1, reeve.Propose: 2, reeve.Deny: 3}

// answer is what policy says of the call: the strictest of what everybody's says.
func (p *pass) answer() (reeve.Answer, string) {
	answer, why := p.view.agent.Policy.Answer(p.tool().ID, p.tool().Tier)
	for _, b := range p.lenders() {
		if a, said := b.agent.Policy.Answer(p.tool().ID, p.tool().Tier); strictness[a] > strictness[answer] {
			answer, why = a, "on behalf of "+b.agent.Name+": "+said
		}
	}
	return answer, why
}

// forbidden refuses what policy denies, and says whose policy that is.
func (p *pass) forbidden(why string) error {
	who := p.view.agent
	for _, b := range p.lenders() {
		if own, _ := who.Policy.Answer(p.tool().ID, p.tool().Tier); own != reeve.Deny {
			who = b.agent
		}
	}
	return reeve.Errorf(reeve.Denied, "%s", why).Hintf("a member can change the policy of %s: reeve agents get shows it, and --policy of reeve agents update sets the whole of it", who.Name)
}

// ancestors is who leads to a run that this call begins: those who led to the call, and its own run.
func (p *pass) ancestors() []reeve.Ancestor {
	out := make([]reeve.Ancestor, 0, len(p.behalf)+1)
	for _, b := range p.behalf {
		if !b.later {
			out = append(out, b.Ancestor)
		}
	}
	return append(out, reeve.Ancestor{RunID: p.call.Run, AgentID: p.call.Agent, Tools: p.call.Tools})
}
