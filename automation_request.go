package reeve

import "encoding/json"

// AutomationRequest creates an automation: an agent, its tools and its first script version.
type AutomationRequest struct {
	Name  string   `json:"name" minLength:"1" maxLength:"128"`
	Tools []string `json:"tools,omitempty" maxItems:"500" doc:"Tools to attach"`
	ScriptRequest
}

// ScriptRequest saves a script version of an automation.
type ScriptRequest struct {
	Source   string `json:"source,omitempty" maxLength:"1048576" doc:"Script source"`
	Language string `json:"language,omitempty" enum:"js,ts" doc:"Default: js"`
	Comment  string `json:"comment,omitempty" maxLength:"4000" doc:"What changed and why"`
	Fix      bool   `json:"fix,omitempty" doc:"Save as the next minor version, for a repair"`
	Draft    bool   `json:"draft,omitempty" doc:"Save as a draft 0.n, which never becomes active"`
	// BaseVersion keeps a save from replacing a version that its author has not seen.
	BaseVersion string `json:"base_version,omitempty" maxLength:"20" doc:"Refuse with STALE unless this version is active, such as 2.1"`
}

// AutomationRunRequest requests a run of an automation.
type AutomationRunRequest struct {
	Type    RunType         `json:"type,omitempty" enum:"production,test,dry" doc:"Default: production"`
	Version string          `json:"version,omitempty" maxLength:"20" doc:"Default: the active version"`
	Input   json.RawMessage `json:"input,omitempty" doc:"Value of the script's global variable input"`
}

// AutomationRun is a run of an automation.
type AutomationRun struct {
	Wake           *Wake     `json:"wake,omitempty" doc:"Set while the run waits to start"`
	Run            *Run      `json:"run,omitempty"`
	Script         ScriptRun `json:"script"`
	AlreadyApplied bool      `json:"already_applied,omitempty" doc:"The plan was applied before, by this run"`
}

// ItemFilter selects items. Empty fields select all.
type ItemFilter struct {
	State  ItemState `json:"status,omitempty"`
	ID     string    `json:"id,omitempty"`
	Limit  int       `json:"limit,omitempty"`
	Offset int       `json:"offset,omitempty"`
}

// The default and the maximum length of a list of items.
const (
	DefaultItemLimit = 100
	MaxItemLimit     = 1000
)

// Validate sets the default limit and returns an error if a field is out of range.
func (f *ItemFilter) Validate() error {
	if f.Limit == 0 {
		f.Limit = DefaultItemLimit
	}
	if f.Limit < 1 || f.Limit > MaxItemLimit {
		return InvalidField("/limit", "is out of range", "1 to 1000")
	}
	if f.Offset < 0 || f.Offset > 1<<40 {
		return InvalidField("/offset", "is out of range", "0 or more")
	}
	for _, s := range ItemStates() {
		if f.State == "" || f.State == s {
			return nil
		}
	}
	return InvalidField("/status", "is not an item state", "processing, done, failed, skipped or needs_attention")
}

// ItemList is a page of an automation's items, newest first.
type ItemList struct {
	Items   []Item `json:"items"`
	Total   int    `json:"total"`
	HasMore bool   `json:"has_more"`
}
