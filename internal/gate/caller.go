package gate

import (
	"encoding/json"
	"slices"

	"reeve"
)

// caller is the agent that makes a call, and the agents on whose behalf it does. The call may do only what all of them
// may.
type caller struct {
	call      reeve.Call
	view      *agentView        // of the calling agent
	chain     []principal       // the agents on whose behalf the call is made, the first one first
	delegated []reeve.Delegator // those of them that delegated by something an earlier call left behind
}

// principal is an agent on whose behalf a call is made, because a call of its own led to the run.
type principal struct {
	*agentView
	reeve.Ancestor
	delegated bool // not an ancestor of the run: it led to the run by something that an earlier call left behind
}

// withRights returns the view of the agent with rights that it had at an earlier moment, and the tools that it had
// then.
func (v *agentView) withRights(had reeve.Rights) (*agentView, []string) {
	out := &agentView{workspace: v.workspace, ws: v.ws, agent: v.agent, barred: v.barred,
		attached: map[string]json.RawMessage{}}
	out.agent.Kind, out.agent.Categories, out.agent.Policy = had.Kind, had.Categories, had.Policy
	out.profile = reeve.Profile{Kind: had.Kind, Capabilities: had.Capabilities}
	tools := []string{} // not nil: an agent without any tool had none, not the default ones
	for id, config := range had.Tools {
		if string(config) == "null" {
			config = nil
		}
		out.attached[id] = config
		tools = append(tools, id)
	}
	return out, tools
}

// rights returns what the agent may do now. Tools is the list of tools that its call came with, or nil.
func (v *agentView) rights(tools []string) *reeve.Rights {
	had := reeve.Rights{Kind: v.agent.Kind, Capabilities: v.profile.Capabilities, Categories: v.agent.Categories,
		Policy: v.agent.Policy, Tools: map[string]json.RawMessage{}}
	for id := range v.workspace.tools {
		if v.granted(tools, id) != "" {
			had.Tools[id] = v.attached[id]
		}
	}
	return &had
}

// delegators lists the agents on whose behalf something acts that the call leaves behind, such as a schedule: every
// agent whose rights limit the call, with its present rights, and with self the caller too.
func (c *caller) delegators(self bool) []reeve.Delegator {
	list := slices.Clone(c.delegated)
	for _, p := range c.principals() {
		if !p.delegated {
			d := reeve.Delegator{AgentID: p.AgentID, RunID: p.RunID, Tools: p.Tools, Had: p.rights(p.Tools)}
			list = reeve.JoinDelegators(list, []reeve.Delegator{d})
		}
	}
	if self {
		d := reeve.Delegator{AgentID: c.call.Agent, RunID: c.call.Run, Tools: c.call.Tools,
			Had: c.view.rights(c.call.Tools)}
		list = reeve.JoinDelegators(list, []reeve.Delegator{d})
	}
	return list
}

// principals lists the agents whose rights limit the call's. An agent that acts apart, by rights of its own, hides
// those before it.
func (c *caller) principals() []principal {
	for i := len(c.chain) - 1; i >= 0; i-- {
		if c.chain[i].OwnRights {
			return c.chain[i+1:]
		}
	}
	return c.chain
}

// stopped returns an error if the kill switch is on for the agent, or for one on whose behalf it runs.
func (c *caller) stopped() error {
	if err := c.view.stopped(); err != nil {
		return err
	}
	for _, p := range c.chain {
		if err := p.stopped(); err != nil {
			return err
		}
	}
	return nil
}

// inactive returns an error if the agent, or one on whose behalf it runs, must not act: a destroyed agent does nothing,
// and a dormant one changes nothing.
func (c *caller) inactive(mutates bool) error {
	idle := func(l reeve.Lifecycle) bool { return l == reeve.AgentDestroyed || l == reeve.AgentDormant && mutates }
	if a := c.view.agent; idle(a.Lifecycle) {
		return reeve.Errorf(reeve.Denied, "the agent is %s", a.Lifecycle).Hintf("%s", reviveHint(a))
	}
	for _, p := range c.principals() {
		if idle(p.agent.Lifecycle) {
			return reeve.Errorf(reeve.Denied, "%s, on whose behalf this runs, is %s", p.agent.Name, p.agent.Lifecycle).
				Hintf("%s", reviveHint(p.agent))
		}
	}
	return nil
}

// reviveHint says what to do about an agent that must not act.
func reviveHint(a reeve.Agent) string {
	if a.Lifecycle == reeve.AgentDestroyed {
		return "a destroyed agent acts no more; another one must do it"
	}
	return "a member can have it act again: reeve agents update " + a.Name + " --lifecycle active"
}

// granted returns why an agent has a tool. Empty means that it does not have it.
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

// defaults reports whether the agent has the default tools: nothing was ever attached to it.
func (v *agentView) defaults() bool { return len(v.attached) == 0 && !v.agent.OwnTools }

// needsSettings reports whether a tool cannot be called without settings.
func (v *agentView) needsSettings(id string) bool {
	e := v.workspace.tools[id]
	return e != nil && e.needs
}

// lacking returns the name of an agent on whose behalf the call is made and that does not have the tool. Empty means
// that all have it.
func (c *caller) lacking(id string) string {
	for _, p := range c.principals() {
		if id != OutputRead && p.granted(p.Tools, id) == "" {
			return p.agent.Name
		}
	}
	return ""
}

// categories lists the categories that the call may touch: those in the scope of the caller and of all its principals.
func (c *caller) categories() []string {
	have := c.view.agent.Categories
	for _, p := range c.principals() {
		have = slices.DeleteFunc(slices.Clone(have),
			func(cat string) bool { return !slices.Contains(p.agent.Categories, cat) })
	}
	return have
}

// strictness orders the answers of policies. With several agents the strictest answer counts.
var strictness = map[reeve.PolicyAnswer]int{reeve.Allow: 0, reeve.Ask: 1, reeve.Propose: 2, reeve.Deny: 3}

// policyAnswer returns the strictest answer of the policies of the caller and its principals, and why.
func (c *caller) policyAnswer(t *reeve.Tool) (reeve.PolicyAnswer, string) {
	answer, why := c.view.agent.Policy.Answer(t.ID, t.Tier)
	for _, p := range c.principals() {
		if a, reason := p.agent.Policy.Answer(t.ID, t.Tier); strictness[a] > strictness[answer] {
			answer, why = a, "on behalf of "+p.agent.Name+": "+reason
		}
	}
	return answer, why
}

// forbidden returns the refusal of a call that a policy denies. It names the agent whose policy that is.
func (c *caller) forbidden(t *reeve.Tool, why string) error {
	who := c.view.agent
	for _, p := range c.principals() {
		if own, _ := who.Policy.Answer(t.ID, t.Tier); own != reeve.Deny {
			who = p.agent
		}
	}
	return reeve.Errorf(reeve.Denied, "%s", why).
		Hintf("a member can change the policy of %s: reeve agents get shows it, and --policy of reeve agents update "+
			"sets the whole of it", who.Name)
}

// ancestors lists the ancestors of a run that this call starts: those of the call, and its own run.
func (c *caller) ancestors() []reeve.Ancestor {
	out := make([]reeve.Ancestor, 0, len(c.chain)+1)
	for _, p := range c.chain {
		if !p.delegated {
			out = append(out, p.Ancestor)
		}
	}
	return append(out, reeve.Ancestor{RunID: c.call.Run, AgentID: c.call.Agent, Tools: c.call.Tools})
}
