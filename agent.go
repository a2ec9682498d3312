package reeve

import (
	"encoding/json"
	"time"
)

// Lifecycle is the lifecycle state of an agent.
type Lifecycle string

// The lifecycle states of an agent.
const (
	AgentCreated   Lifecycle = "created"
	AgentActive    Lifecycle = "active"
	AgentDormant   Lifecycle = "dormant"
	AgentDestroyed Lifecycle = "destroyed"
)

// Lifecycles lists the lifecycle states.
func Lifecycles() []Lifecycle {
	return []Lifecycle{AgentCreated, AgentActive, AgentDormant, AgentDestroyed}
}

// IsAgentKind reports whether s is a valid name of an agent kind.
func IsAgentKind(s string) bool { return slugPattern.MatchString(s) }

// Agent is an identity that acts, with a kind, tools, limits and settings of its own.
type Agent struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	Name        string    `json:"name" doc:"Unique in the workspace"`
	Kind        string    `json:"kind" doc:"Selects the capability profile"`
	Lifecycle   Lifecycle `json:"lifecycle"`
	Mode        Mode      `json:"mode" doc:"Which kinds of wake start a run"`
	// NoDefaultTools is set once a tool was attached to the agent. From then on it has no default tools, even if all
	// tools are detached.
	NoDefaultTools bool            `json:"-"`
	ThrottleMS     int64           `json:"throttle_ms" doc:"Delay of wakes by changes and timers after a run, in ms"`
	Categories     []string        `json:"categories" doc:"Categories that the agent may access; empty means none"`
	Policy         Policy          `json:"policy"`
	Config         json.RawMessage `json:"config"`
	StoppedAt      *time.Time      `json:"stopped_at,omitempty" doc:"Set while the agent's kill switch is on"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Stamp          Stamp           `json:"-"` // last writer, for merging between nodes that do not share a database
}

// WhyNotWoken returns why the agent does not run for a reason as it is now, or an empty string if it does.
func (a Agent) WhyNotWoken(r Reason) string {
	switch {
	case a.Lifecycle != AgentActive:
		return "the agent is " + string(a.Lifecycle)
	case !a.Mode.Allows(r):
		return "the agent is " + string(a.Mode) + " and does not wake by itself"
	case a.StoppedAt != nil:
		return "the agent is stopped"
	}
	return ""
}

// CheckWakes returns a Conflict if what is created for a reason would not wake the agent. An agent that is not active
// yet, or stopped for a while, is no error.
func (a Agent) CheckWakes(r Reason) error {
	why := a.WhyNotWoken(r)
	if why == "" || a.Lifecycle == AgentCreated && a.Mode.Allows(r) || a.Lifecycle == AgentActive && a.Mode.Allows(r) {
		return nil
	}
	hint := "use another agent; a destroyed agent never runs again"
	if a.Lifecycle == AgentDormant {
		hint = "activate it first: reeve agents update " + a.Name + " --lifecycle active"
	} else if a.Lifecycle != AgentDestroyed {
		hint = "change its mode first: reeve agents update " + a.Name + " --mode hybrid"
	}
	return &Error{Code: Conflict, Message: why + ", so this could never wake it", Hint: hint,
		Fields: []Field{{Path: "/agent", Message: why, Expected: "an agent that wakes by itself"}}}
}

// Profile lists the capabilities of all agents of a kind. A kind without a profile has none.
type Profile struct {
	Kind         string   `json:"kind"`
	Capabilities []string `json:"capabilities"`
}

// Workspace is the tenant boundary.
type Workspace struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	StoppedAt  *time.Time `json:"stopped_at,omitempty" doc:"Set while the workspace's kill switch is on"`
	StopReason string     `json:"stop_reason,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	Revision   int64      `json:"revision" doc:"Number of changes to tools, agents and policy so far"`
	Hold       *Hold      `json:"hold,omitempty" doc:"Set while the whole server is held, for example after a restore"`
}

// lifecycleTransitions lists the legal transitions. AgentDestroyed is final.
var lifecycleTransitions = map[Lifecycle][]Lifecycle{
	AgentCreated: {AgentActive, AgentDormant, AgentDestroyed},
	AgentActive:  {AgentDormant, AgentDestroyed},
	AgentDormant: {AgentActive, AgentDestroyed},
}

// CheckTransition returns a Conflict error if an agent may not change from l to next. No change is always allowed.
func (l Lifecycle) CheckTransition(next Lifecycle) error {
	if l == next {
		return nil
	}
	for _, n := range lifecycleTransitions[l] {
		if n == next {
			return nil
		}
	}
	return Errorf(Conflict, "an agent cannot change from %q to %q", l, next)
}
