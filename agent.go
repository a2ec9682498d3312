package reeve

import (
	"encoding/json"
	"time"
)

// Lifecycle is where an agent stands.
type Lifecycle string

// The lifecycle of an agent.
const (
	AgentCreated   Lifecycle = "created"
	AgentActive    Lifecycle = "active"
	AgentDormant   Lifecycle = "dormant"
	AgentDestroyed Lifecycle = "destroyed"
)

// Lifecycles lists where an agent can stand.
func Lifecycles() []Lifecycle {
	return []Lifecycle{AgentCreated, AgentActive, AgentDormant, AgentDestroyed}
}

// IsKind tells whether an agent's kind can be called so.
func IsKind(s string) bool { return slugPattern.MatchString(s) }

// PolicyAnswer is what policy says of a call.
type PolicyAnswer string

// Policy's answers.
const (
	Allow   PolicyAnswer = "allow"
	Ask     PolicyAnswer = "ask"     // park the call until a person approves it
	Propose PolicyAnswer = "propose" // make the call an item of a change set, and go on; calls that change nothing pass
	Deny    PolicyAnswer = "deny"
)

// Policy says which calls a person must approve or accept. The most specific rule wins: tool, then tier; a tier that is
// not named gets the built-in answer (read_only and side_effecting allow, privileged ask).
type Policy struct {
	Tools map[string]PolicyAnswer `json:"tools,omitempty" doc:"By tool id"`
	Tiers map[Tier]PolicyAnswer   `json:"tiers,omitempty" doc:"By tier"`
}

// Answer gives the policy's answer for a tool, and the rule that gave it.
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
	return Deny, "the tool's tier is not known"
}

// Agent is who acts: an identity with a kind, its own tools, limits and settings.
type Agent struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	Name        string    `json:"name" doc:"Unique in the workspace"`
	Kind        string    `json:"kind" doc:"Chooses the capability profile"`
	Lifecycle   Lifecycle `json:"lifecycle"`
	Mode        Mode      `json:"mode" doc:"Who may wake it"`
	// a tool was attached to it once: it has no default tools, also when none is left
	OwnTools   bool            `json:"-"`
	ThrottleMS int64           `json:"throttle_ms" doc:"How long after a run changes and timers wait before they wake it again"`
	Categories []string        `json:"categories" doc:"The categories it may touch; empty means none"`
	Policy     Policy          `json:"policy"`
	Config     json.RawMessage `json:"config"`
	StoppedAt  *time.Time      `json:"stopped_at,omitempty" doc:"Set while its kill switch is on"`
	CreatedAt  time.Time       `json:"created_at"`
	UpdatedAt  time.Time       `json:"updated_at"`
	Stamp      Stamp           `json:"-"` // who changed it last, for nodes that do not share a database
}

// Profile is what agents of a kind may do. A kind without a profile has no capability.
type Profile struct {
	Kind         string   `json:"kind"`
	Capabilities []string `json:"capabilities"`
}

// Workspace is the tenant boundary.
type Workspace struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	StoppedAt  *time.Time `json:"stopped_at,omitempty" doc:"Set while the kill switch is on for everything"`
	StopReason string     `json:"stop_reason,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	Revision   int64      `json:"revision" doc:"Counts every change to tools, agents and policy"`
	Hold       *Hold      `json:"hold,omitempty" doc:"Set while the whole server is held, as after a restore"`
}

// lifecycleTransitions is the life of an agent. Destroyed is the end.
var lifecycleTransitions = map[Lifecycle][]Lifecycle{
	AgentCreated: {AgentActive, AgentDormant, AgentDestroyed},
	AgentActive:  {AgentDormant, AgentDestroyed},
	AgentDormant: {AgentActive, AgentDestroyed},
}

// CheckTransition checks one step of an agent's life. Staying where it is is always allowed.
func (l Lifecycle) CheckTransition(next Lifecycle) error {
	if l == next {
		return nil
	}
	for _, n := range lifecycleTransitions[l] {
		if n == next {
			return nil
		}
	}
	return Errorf(Conflict, "an agent cannot go from %q to %q", l, next)
}

// Validate checks that a policy's answers and tiers are known.
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
