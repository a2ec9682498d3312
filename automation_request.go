package reeve

import "encoding/json"

// AutomationRequest makes an automation: an agent, its tools, and its first version.
type AutomationRequest struct {
	Name  string   `json:"name" minLength:"1" maxLength:"128"`
	Tools []string `json:"tools,omitempty" maxItems:"500" doc:"Attached to it"`
	ScriptRequest
}

// ScriptRequest saves a version of an automation's script.
type ScriptRequest struct {
	Source   string `json:"source,omitempty" maxLength:"1048576" doc:"The script"`
	Language string `json:"language,omitempty" enum:"js,ts" doc:"js if left out"`
	Comment  string `json:"comment,omitempty" maxLength:"4000" doc:"What changed, and why"`
	Fix      bool   `json:"fix,omitempty" doc:"A repair: the next minor version instead of the next major one"`
	Draft    bool   `json:"draft,omitempty" doc:"To be tried: a version 0.n, which never becomes active"`
}

// AutomationRunRequest asks for a run.
type AutomationRunRequest struct {
	Type    RunType         `json:"type,omitempty" enum:"production,test,dry" doc:"production if left out"`
	Version string          `json:"version,omitempty" maxLength:"20" doc:"The active one if left out"`
	Input   json.RawMessage `json:"input,omitempty" doc:"The script's global input"`
}

// AutomationRun is a run with what its script has to say.
type AutomationRun struct {
	Wake   *Wake     `json:"wake,omitempty" doc:"While it waits to be begun"`
	Run    *Run      `json:"run,omitempty"`
	Script ScriptRun `json:"script"`
	Again  bool      `json:"again,omitempty" doc:"Of a plan that was applied before: this is the run that did, and nothing was begun"`
}

// ItemFilter narrows a list of items. Empty fields do not.
type ItemFilter struct {
	State  ItemState `json:"status,omitempty"`
	ID     string    `json:"id,omitempty"`
	Limit  int       `json:"limit,omitempty"`
	Offset int       `json:"offset,omitempty"`
}

// Bounds of a list of items.
const (
	DefaultItemLimit = 100
	MaxItemLimit = 1000
)

// Validate fills in the default and refuses what is out of bounds.
func (f *ItemFilter) Validate() error {
	if f.Limit == 0 {
		f.Limit = DefaultItemLimit
	}
	if f.Limit < 1 || f.Limit > MaxItemLimit {
		return InvalidField("/limit", "is out of bounds", "1 to 1000")
	}
	if f.Offset < 0 || f.Offset > 1<<40 {
		return InvalidField("/offset", "is out of bounds", "0 or more")
	}
	for _, s := range ItemStates() {
		if f.State == "" || f.State == s {
			return nil
		}
	}
	return InvalidField("/status", "is not the state of an item",
		"processing, done, failed, skipped or needs_attention")
}

// ItemList is a page of an automation's items, newest first.
type ItemList struct {
	Items   []Item `json:"items"`
	Total   int    `json:"total"`
	HasMore bool   `json:"has_more"`
}
