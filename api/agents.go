package api

import (
	"encoding/json"
	"time"

	"reeve"
)

// AgentRequest creates or changes an agent. In a change, absent fields stay unchanged.
type AgentRequest struct {
	Name       *string          `json:"name,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"`
	Kind       *string          `json:"kind,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-z][a-z0-9_.-]*$" doc:"Default: assistant"`
	Lifecycle  *reeve.Lifecycle `json:"lifecycle,omitempty" enum:"created,active,dormant,destroyed" doc:"Default: active"`
	Mode       *reeve.Mode      `json:"mode,omitempty" enum:"autonomous,interactive,hybrid" doc:"Which kinds of wake start a run"`
	ThrottleMS *int64           `json:"throttle_ms,omitempty" minimum:"0" maximum:"86400000" doc:"Delay of wakes after a run"`
	Categories *[]string        `json:"categories,omitempty" maxItems:"1000" doc:"Categories it may access, by id or name"`
	Policy     *reeve.Policy    `json:"policy,omitempty" doc:"Which calls a person must approve or accept"`
	Config     json.RawMessage  `json:"config,omitempty" doc:"Settings of its brain; see docs/agents.md"`
}

// AgentList is a page of agents.
type AgentList struct {
	Agents []reeve.Agent `json:"agents"`
	Next   string        `json:"next_cursor,omitempty"`
}

// MessageList is a page of a thread's messages.
type MessageList struct {
	Messages []reeve.Message `json:"messages"`
	Next     string          `json:"next_cursor,omitempty"`
}

// AgentStateRequest replaces an agent's slots.
type AgentStateRequest struct {
	Revision int64            `json:"revision" minimum:"0" maximum:"9007199254740991" doc:"Revision last read; STALE if it has changed"`
	Slots    reeve.AgentSlots `json:"slots" doc:"All slots; absent ones are deleted"`
}

// Summary is a summary of the turns of a conversation, or of an agent's runs for a user.
type Summary struct {
	ID             string     `json:"id" doc:"The last turn or run that it covers"`
	AgentID        string     `json:"agent_id"`
	UserID         string     `json:"user_id,omitempty"`
	ConversationID string     `json:"conversation_id,omitempty" doc:"Empty for a summary of runs"`
	State          string     `json:"state" enum:"queued,done,failed"`
	Attempts       int        `json:"attempts"`
	MessageID      string     `json:"message_id,omitempty" doc:"Message with the text"`
	RetryAt        *time.Time `json:"retry_at,omitempty" doc:"When a queued summary is tried"`
	Code           reeve.Code `json:"code,omitempty" doc:"Why the last attempt failed"`
	Message        string     `json:"message,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
}

// SummaryList is a page of summaries.
type SummaryList struct {
	Summaries []Summary `json:"summaries"`
	Next      string    `json:"next_cursor,omitempty"`
}
