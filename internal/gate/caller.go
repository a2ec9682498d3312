package gate

import (
	"encoding/json"
	"slices"

	"reeve"
)

// caller is the agent that makes a call, together with its principals. The call may do only what all of them may do.
type caller struct {
	call     reeve.Call
	view     *agentView        // the calling agent
	chain    []principal       // the agents on whose behalf the call is made, the original one first
	creators []reeve.Delegator // principals whose earlier call created what started the run, such as a schedule
}

// principal is an agent on whose behalf a call is made, because one of its own calls led to the run.
type principal struct {
	*agentView
	reeve.Ancestor
	isCreator bool // the agent created what started the run, such as a schedule; otherwise it is an ancestor of the run
}

// withRights returns the view of the agent with the rights that it had at an earlier time, and the ids of its tools at
// that time.
func (v *agentView) withRights(had reeve.Rights) (*agentView, []string) {
	out := &agentView{workspace: v.workspace, ws: v.ws, agent: v.agent, disabledTools: v.disabledTools,
		attached: map[string]json.RawMessage{}}
	out.agent.Kind, out.agent.Categories, out.agent.Policy = had.Kind, had.Categories, had.Policy
	out.profile = reeve.Profile{Kind: had.Kind, Capabilities: had.Capabilities}
	tools := []string{} // not nil, which would stand for the default tools
	for id, config := range had.Tools {
		if string(config) == "null" {
			config = nil
		}
		out.attached[id] = config
		tools = append(tools, id)
	}
	return out, tools
}

// currentRights returns the present rights of the agent. The argument is the list of tools of its call, or nil.
func (v *agentView) currentRights(tools []string) *reeve.Rights {
	had := reeve.Rights{Kind: v.agent.Kind, Capabilities: v.profile.Capabilities, Categories: v.agent.Categories,
		Policy: v.agent.Policy, Tools: map[string]json.RawMessage{}}
	for id := range v.workspace.tools {
		if v.grantReason(tools, id) != "" {
			had.Tools[id] = v.attached[id]
		}
	}
	return &had
}

// delegators lists the agents on whose behalf something acts that the call creates, such as a schedule. These are all
// agents whose rights limit the call, with their present rights. The caller is included if includeCaller is set.
func (c *caller) delegators(includeCaller bool) []reeve.Delegator {
	list := slices.Clone(c.creators)
	for _, p := range c.principals() {
		if !p.isCreator {
			d := reeve.Delegator{AgentID: p.AgentID, RunID: p.RunID, Tools: p.Tools, Rights: p.currentRights(p.Tools)}
			list = reeve.JoinDelegators(list, []reeve.Delegator{d})
		}
	}
	if includeCaller {
		d := reeve.Delegator{AgentID: c.call.Agent, RunID: c.call.Run, Tools: c.call.Tools,
			Rights: c.view.currentRights(c.call.Tools)}
		list = reeve.JoinDelegators(list, []reeve.Delegator{d})
	}
	return list
}

// principals lists the agents whose rights limit the call. If an operator gave an agent in the chain
// its own rights (OwnRights), the agents before it do not limit the call.
func (c *caller) principals() []principal {
	for i := len(c.chain) - 1; i >= 0; i-- {
		if c.chain[i].OwnRights {
			return c.chain[i+1:]
		}
	}
	return c.chain
}

// checkLifecycle returns an error if the lifecycle of the caller or of a principal forbids the call. A destroyed agent
// may do nothing. A dormant agent may change nothing.
func (c *caller) checkLifecycle(mutates bool) error {
	forbids := func(l reeve.Lifecycle) bool { return l == reeve.AgentDestroyed || l == reeve.AgentDormant && mutates }
	if a := c.view.agent; forbids(a.Lifecycle) {
		return reeve.Errorf(reeve.Denied, "the agent is %s", a.Lifecycle).Hintf("%s", reviveHint(a))
	}
	for _, p := range c.principals() {
		if forbids(p.agent.Lifecycle) {
			return reeve.Errorf(reeve.Denied, "%s, on whose behalf this runs, is %s", p.agent.Name, p.agent.Lifecycle).
				Hintf("%s", reviveHint(p.agent))
		}
	}
	return nil
}

// reviveHint returns the hint for an agent whose lifecycle forbids a call.
func reviveHint(a reeve.Agent) string {
	if a.Lifecycle == reeve.AgentDestroyed {
		return "a destroyed agent cannot act again; use another agent"
	}
	return "a member can activate it: reeve agents update " + a.Name + " --lifecycle active"
}

// grantReason returns why the agent has a tool, or an empty string if it does not have it. list holds
// the only tools that the call allows; nil means no such limit.
func (v *agentView) grantReason(list []string, id string) string {
	_, attached := v.attached[id]
	switch {
	case v.disabledTools[id] != "" || !attached && v.needsSettings(id):
	case list != nil:
		if slices.Contains(list, id) {
			return "listed in the call's tools"
		}
	case attached:
		return "attached to the agent"
	case v.hasDefaultTools() && isDefaultTool(id):
		return "a default tool, because no tool was ever attached to the agent"
	case id == OutputRead:
		return "available to every agent"
	}
	return ""
}

// hasDefaultTools reports whether the agent has the default tools, because no tool was ever attached to it.
func (v *agentView) hasDefaultTools() bool { return len(v.attached) == 0 && !v.agent.NoDefaultTools }

// needsSettings reports whether a tool cannot be called without settings.
func (v *agentView) needsSettings(id string) bool {
	e := v.workspace.tools[id]
	return e != nil && e.needsSettings
}

// findPrincipalWithout returns the name of a principal that does not have the tool, or an empty string if all have it.
func (c *caller) findPrincipalWithout(id string) string {
	for _, p := range c.principals() {
		if id != OutputRead && p.grantReason(p.Tools, id) == "" {
			return p.agent.Name
		}
	}
	return ""
}

// allowedCategories lists the categories that are in the scope of the caller and of all its principals.
func (c *caller) allowedCategories() []string {
	have := c.view.agent.Categories
	for _, p := range c.principals() {
		have = slices.DeleteFunc(slices.Clone(have),
			func(cat string) bool { return !slices.Contains(p.agent.Categories, cat) })
	}
	return have
}

// strictness orders the answers of policies. If several agents are involved, the strictest answer counts.
var strictness = map[reeve.PolicyAnswer]int{reeve.Allow: 0, reeve.Ask: 1, reeve.Propose: 2, reeve.Deny: 3}

// policyAnswer returns the strictest answer of the policies of the caller and its principals, with its reason.
func (c *caller) policyAnswer(t *reeve.Tool) (reeve.PolicyAnswer, string) {
	answer, why := c.view.agent.Policy.Answer(t.ID, t.Tier)
	for _, p := range c.principals() {
		if a, reason := p.agent.Policy.Answer(t.ID, t.Tier); strictness[a] > strictness[answer] {
			answer, why = a, "on behalf of "+p.agent.Name+": "+reason
		}
	}
	return answer, why
}

// policyDenial returns the error for a call that a policy denies. The hint names the agent with that policy.
func (c *caller) policyDenial(t *reeve.Tool, why string) error {
	who := c.view.agent
	for _, p := range c.principals() {
		if own, _ := who.Policy.Answer(t.ID, t.Tier); own != reeve.Deny {
			who = p.agent
		}
	}
	return reeve.Errorf(reeve.Denied, "%s", why).
		Hintf("a member can change the policy of %s: reeve agents show shows it, reeve agents update --policy sets it",
			who.Name)
}

// ancestors lists the ancestors of a run that this call starts. These are the ancestors of the call and its own run.
func (c *caller) ancestors() []reeve.Ancestor {
	out := make([]reeve.Ancestor, 0, len(c.chain)+1)
	for _, p := range c.chain {
		if !p.isCreator {
			out = append(out, p.Ancestor)
		}
	}
	return append(out, reeve.Ancestor{RunID: c.call.Run, AgentID: c.call.Agent, Tools: c.call.Tools})
}
