package reeve

import (
	"encoding/json"
	"slices"
)

// Rights is what an agent could do at one moment.
type Rights struct {
	Kind         string                     `json:"kind"`
	Tools        map[string]json.RawMessage `json:"tools"` // by id, with the agent's settings for each
	Capabilities []string                   `json:"capabilities"`
	Categories   []string                   `json:"categories"`
	Policy       Policy                     `json:"policy"`
}

// Delegator is an agent on whose behalf something acts after the agent's own call is over: a schedule, a queued wake,
// a script or a run. The gate lets it do only what every delegator could do then and can do now.
type Delegator struct {
	AgentID string   `json:"agent_id"`
	RunID   string   `json:"run_id,omitempty" doc:"The run of the delegator that led to it"`
	Tools   []string `json:"tools" doc:"The only tools it had in that run; null means its agent's own"`
	Had     *Rights  `json:"-"` // operators' settings are part of it, so that no API shows it
}

// JoinDelegators gives all delegators of two lists, each once.
func JoinDelegators(list, more []Delegator) []Delegator {
	out := slices.Clone(list)
	for _, d := range more {
		if !slices.ContainsFunc(out, d.equals) {
			out = append(out, d)
		}
	}
	return out
}

// equals compares what is stored of two delegators.
func (d Delegator) equals(o Delegator) bool {
	is, err := json.Marshal([]any{d, d.Had})
	was, failed := json.Marshal([]any{o, o.Had})
	return err == nil && failed == nil && string(is) == string(was)
}
