package reeve

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Automation is an agent whose brain is a script.
type Automation struct {
	AgentID     string     `json:"agent_id"`
	WorkspaceID string     `json:"workspace_id"`
	Name        string     `json:"name"`
	Owner       string     `json:"owner,omitempty" doc:"User who created it; notified when a person is needed"`
	Version     string     `json:"version,omitempty" doc:"Active version; empty means that only drafts exist"`
	ScriptID    string     `json:"script_id,omitempty"`
	PausedAt    *time.Time `json:"paused_at,omitempty" doc:"Set while it is paused; paused runs make no calls"`
	PausedRun   string     `json:"paused_run,omitempty" doc:"Run that the pause ended; resuming continues it"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`

	Status  AutomationStatus `json:"status" doc:"draft, active, paused, retrying, repairing or stopped"`
	Failure *FailureState    `json:"failure,omitempty" doc:"Set from a failure until a run succeeds"`
}

// ScriptVersion is one version of an automation's script. It is immutable. A new major version is a new script, a new
// minor version is a repair. Versions 0.n are drafts, which can be tried but never become active.
type ScriptVersion struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	AgentID     string    `json:"agent_id"`
	Major       int       `json:"major"`
	Minor       int       `json:"minor"`
	Source      string    `json:"source,omitempty" doc:"Script source; absent in lists"`
	Language    string    `json:"language" doc:"js or ts"`
	Comment     string    `json:"comment,omitempty" doc:"What changed and why"`
	CreatedBy   string    `json:"created_by,omitempty"`
	ScriptJobID string    `json:"script_job_id,omitempty" doc:"Script job that wrote it, if any"`
	CreatedAt   time.Time `json:"created_at"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"Agents whose rights limit its runs"`
}

// Version returns the version as text, such as 2.1.
func (v ScriptVersion) Version() string { return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) }

// ParseVersion parses a version such as 2.1.
func ParseVersion(s string) (major, minor int, err error) {
	a, b, ok := strings.Cut(s, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || major < 0 || minor < 0 {
		return 0, 0, InvalidField("/version", "is not a version", "major.minor, such as 2.1")
	}
	return major, minor, nil
}

// MaxScriptSource is the maximum size of a script in bytes.
const MaxScriptSource = 1 << 20

// RunType is the purpose of an automation's run.
type RunType string

// The run types.
const (
	ProductionRun RunType = "production"
	TestRun       RunType = "test"  // like production, but a failure starts no retry or repair
	DryRun        RunType = "dry"   // previews every change and stores the changes as a plan
	ApplyRun      RunType = "apply" // makes exactly the changes of a plan
)

// ScriptRun is the part of a run that only automations have. It is stored under the run key as soon as the run is
// requested, and is updated while the run makes progress.
type ScriptRun struct {
	RunKey      string       `json:"run_key"`
	RunID       string       `json:"run_id,omitempty"`
	WorkspaceID string       `json:"workspace_id"`
	AgentID     string       `json:"agent_id"`
	ScriptID    string       `json:"script_id,omitempty" doc:"Script version of the whole run"`
	Version     string       `json:"version,omitempty"`
	Type        RunType      `json:"type"`
	PlanOf      string       `json:"plan_of,omitempty" doc:"Apply runs only: the dry run that made the plan"`
	Class       FailureClass `json:"class,omitempty" doc:"Failed runs only: kind of remedy needed"`
	Progress    Progress     `json:"progress"`
	Log         string       `json:"log,omitempty" doc:"Last lines of the script's log"`
}

// Progress is the progress of an automation's run.
type Progress struct {
	Done    int     `json:"done" doc:"Items that this run finished"`
	Skipped int     `json:"skipped" doc:"Items passed over: done, skipped or in need of attention before this run"`
	Failed  int     `json:"failed"`
	Total   int     `json:"total,omitempty" doc:"Number of items, if the script reported it"`
	Current string  `json:"current,omitempty" doc:"Title of the current item"`
	Rate    float64 `json:"rate,omitempty" doc:"Items per second so far"`
	Spent   Amount  `json:"spent,omitzero"`
	Planned int     `json:"planned,omitempty" doc:"Dry runs only: number of planned calls"`
}

// ItemState is the state of an item.
type ItemState string

// The states of an item.
const (
	ItemProcessing     ItemState = "processing"      // a run works on it, or crashed while working on it
	ItemDone           ItemState = "done"            // final, unless a person requests another attempt
	ItemFailed         ItemState = "failed"          // the next run tries it again
	ItemSkipped        ItemState = "skipped"         // a person chose to skip it
	ItemNeedsAttention ItemState = "needs_attention" // a person must choose skip or reprocess
)

var itemTransitions = map[ItemState][]ItemState{
	"":                 {ItemProcessing, ItemSkipped},
	ItemProcessing:     {ItemProcessing, ItemDone, ItemFailed, ItemNeedsAttention, ItemSkipped},
	ItemFailed:         {ItemProcessing, ItemSkipped},
	ItemNeedsAttention: {ItemProcessing, ItemSkipped},
	ItemSkipped:        {ItemProcessing},
	ItemDone:           {ItemProcessing},
}

// ItemStates lists the states of an item.
func ItemStates() []ItemState {
	return []ItemState{ItemProcessing, ItemDone, ItemFailed, ItemSkipped, ItemNeedsAttention}
}

// CheckTransition returns a Conflict error if an item may not change from s to next. Only a person may move an item out
// of done, skipped or needs_attention, which starts a new attempt.
func (s ItemState) CheckTransition(next ItemState) error {
	if slices.Contains(itemTransitions[s], next) {
		return nil
	}
	return Errorf(Conflict, "an item cannot change from %q to %q", s, next)
}

// IsSettled reports whether runs may change nothing for an item in this state.
func (s ItemState) IsSettled() bool {
	return s == ItemDone || s == ItemSkipped || s == ItemNeedsAttention
}

// Item is one unit of an automation's work.
type Item struct {
	AgentID     string    `json:"agent_id"`
	WorkspaceID string    `json:"workspace_id"`
	ID          string    `json:"id" doc:"Id chosen by the script, unique in the automation"`
	Title       string    `json:"title"`
	State       ItemState `json:"state"`
	Attempt     int       `json:"attempt" doc:"Number of the current attempt; only a person starts another"`
	CreatedBy   string    `json:"created_by" doc:"automation, or the person who skipped it first"`
	FirstRun    string    `json:"first_run,omitempty"`
	LastRun     string    `json:"last_run,omitempty"`
	Code        Code      `json:"code,omitempty" doc:"Why it failed or needs attention"`
	Message     string    `json:"message,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// WaitingItem is an item that needs attention, with the name of its automation.
type WaitingItem struct {
	Item
	Automation string `json:"automation" doc:"Name of the automation"`
}

// ItemAttempt is one attempt at an item. Several runs and script versions may work on it before it ends.
type ItemAttempt struct {
	Attempt    int        `json:"attempt"`
	State      ItemState  `json:"state"`
	FirstRun   string     `json:"first_run"`
	LastRun    string     `json:"last_run"`
	Version    string     `json:"version,omitempty" doc:"Script version that worked on it last"`
	Code       Code       `json:"code,omitempty"`
	Message    string     `json:"message,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// MaxItemName is the maximum size of an item's id or title in bytes.
const MaxItemName = 1 << 10

// CheckItemName returns an error if s is not valid as an item's id or title. what names the field in the message.
func CheckItemName(what, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return Errorf(Validation, "an item's %s must not be empty", what)
	case len(s) > MaxItemName:
		return Errorf(Validation, "an item's %s has %d bytes", what, len(s)).
			Hintf("use at most %d bytes, for example a stable id of the thing itself", MaxItemName)
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return Errorf(Validation, "an item's %s must be text without NUL", what)
	}
	return nil
}

// PlannedCall is one change that a dry run would have made, or an item that it would have finished without a change.
type PlannedCall struct {
	Ordinal   int    `json:"ordinal"`
	ItemID    string `json:"item_id"`
	Title     string `json:"title"`
	Attempt   int    `json:"attempt"`
	Tool      string `json:"tool" doc:"Empty for an item that needs no change"`
	Args      string `json:"args"`
	Preview   string `json:"preview,omitempty" doc:"What would change; empty if the tool has no preview"`
	Base      string `json:"base,omitempty" doc:"State that the preview is based on; applied only if unchanged"`
	Operation string `json:"operation_id" doc:"Operation that applies the call; empty for an item without a change"`
	// DependsOn lists the ordinals of the calls whose results this one uses. They are known only when a script runs, so
	// the arguments have placeholders and a plan cannot apply the item.
	DependsOn []int  `json:"depends_on,omitempty" doc:"Ordinals of the calls whose results this one uses; such an item cannot be applied"`
	State     State  `json:"state,omitempty" doc:"State of that operation once the plan is applied"`
	Code      Code   `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
}

// AutomationStep is a request to run an automation as a step of another run.
type AutomationStep struct {
	Run        Run    // the run that needs the step
	Automation string // name or id
	Key        string // a step runs once per key; empty means no limit
	Input      json.RawMessage
}
