package reeve

import (
	"encoding/json"
	"slices"
)

// Rights is a snapshot of what an agent may do.
type Rights struct {
	Kind         string                     `json:"kind"`
	Tools        map[string]json.RawMessage `json:"tools"` // by id, with the agent's settings for each
	Capabilities []string                   `json:"capabilities"`
	Categories   []string                   `json:"categories"`
	Policy       Policy                     `json:"policy"`
}

// Delegator is an agent that left something behind that acts later: a schedule, a queued wake, a script or a run. The
// gate permits it only what every delegator was permitted then and is permitted now.
type Delegator struct {
	AgentID string   `json:"agent_id"`
	RunID   string   `json:"run_id,omitempty" doc:"Run of the delegator that created it"`
	Tools   []string `json:"tools" doc:"Tools of that run; null means the agent's tools"`
	Rights  *Rights  `json:"-"` // rights at that time; hidden because it includes operator settings
}

// JoinDelegators returns the delegators of both lists without duplicates.
func JoinDelegators(list, more []Delegator) []Delegator {
	out := slices.Clone(list)
	for _, d := range more {
		if !slices.ContainsFunc(out, d.equals) {
			out = append(out, d)
		}
	}
	return out
}

// equals reports whether d and o are stored alike.
func (d Delegator) equals(o Delegator) bool {
	is, err := json.Marshal([]any{d, d.Rights})
	was, failed := json.Marshal([]any{o, o.Rights})
	return err == nil && failed == nil && string(is) == string(was)
}
