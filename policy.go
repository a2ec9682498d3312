package reeve

// PolicyAnswer is the answer of a policy to a call.
type PolicyAnswer string

// The policy answers.
const (
	Allow   PolicyAnswer = "allow"
	Ask     PolicyAnswer = "ask"     // park the call until a person approves it
	Propose PolicyAnswer = "propose" // add the call to a change set instead of running it, unless it changes nothing
	Deny    PolicyAnswer = "deny"
)

// Policy says which calls a person must approve or accept. A rule for the tool wins over a rule for its tier. A tier
// without a rule gets the built-in answer: allow for read_only and side_effecting, ask for privileged.
type Policy struct {
	Tools map[string]PolicyAnswer `json:"tools,omitempty" doc:"Answers by tool id"`
	Tiers map[Tier]PolicyAnswer   `json:"tiers,omitempty" doc:"Answers by tier"`
}

// Answer returns the policy's answer for a tool and a sentence that names the rule.
func (p Policy) Answer(tool string, tier Tier) (PolicyAnswer, string) {
	if a, ok := p.Tools[tool]; ok {
		return a, "the agent's policy says " + string(a) + " for this tool"
	}
	if a, ok := p.Tiers[tier]; ok {
		return a, "the agent's policy says " + string(a) + " for " + string(tier) + " tools"
	}
	switch tier {
	case ReadOnly, SideEffecting:
		return Allow, string(tier) + " tools need no approval"
	case Privileged:
		return Ask, "privileged tools need a person's approval"
	}
	return Deny, "the tool has an unknown tier"
}

// Validate returns an error if the policy has an unknown answer or tier.
func (p Policy) Validate() error {
	known := func(a PolicyAnswer) bool { return a == Allow || a == Ask || a == Propose || a == Deny }
	wrong := func(path string) error {
		return &Error{Code: Validation, Message: "the policy is not valid",
			Fields: []Field{{Path: path, Message: "is not known",
				Expected: "allow, ask, propose or deny, by tool or by tier"}}}
	}
	for k, a := range p.Tools {
		if !known(a) {
			return wrong("/policy/tools/" + k)
		}
	}
	for k, a := range p.Tiers {
		if !known(a) || (k != ReadOnly && k != SideEffecting && k != Privileged) {
			return wrong("/policy/tiers/" + string(k))
		}
	}
	return nil
}
