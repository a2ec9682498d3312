package api

import (
	"encoding/json"

	"reeve"
)

// AgentRequest makes or changes an agent. In a change, what is left out stays.
type AgentRequest struct {
	Name       *string          `json:"name,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"`
	Kind       *string          `json:"kind,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-z][a-z0-9_.-]*$" doc:"Chooses the capability profile; assistant if left out"`
	Lifecycle  *reeve.Lifecycle `json:"lifecycle,omitempty" enum:"created,active,dormant,destroyed" doc:"A new one is active if left out, and is not made as destroyed"`
	Mode       *reeve.Mode      `json:"mode,omitempty" enum:"autonomous,interactive,hybrid" doc:"Who may wake it"`
	ThrottleMS *int64           `json:"throttle_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long after a run changes and timers wait"`
	Categories *[]string        `json:"categories,omitempty" maxItems:"1000" doc:"The categories it may touch, by id or name; kept by id"`
	Policy     *reeve.Policy    `json:"policy,omitempty" doc:"Which calls a person must approve or accept"`
	Config     json.RawMessage  `json:"config,omitempty" doc:"An object: the settings of its brain, schema_version, and extension by namespace; see docs/agents.md"`
}

// AgentList is a page of agents.
type AgentList struct {
	Agents []reeve.Agent `json:"agents"`
	Next   string        `json:"next_cursor,omitempty"`
}

// MessageList is a page of a thread.
type MessageList struct {
	Messages []reeve.Message `json:"messages"`
	Next     string          `json:"next_cursor,omitempty"`
}

// AgentStateRequest replaces an agent's slots.
type AgentStateRequest struct {
	Revision int64            `json:"revision" minimum:"0" maximum:"9007199254740991" doc:"The revision that the change was made from; another means that somebody was faster"`
	Slots    reeve.AgentSlots `json:"slots" doc:"All of them: what is left out is taken away"`
}
