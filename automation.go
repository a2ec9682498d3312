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
	Owner       string     `json:"owner,omitempty" doc:"Who made it, and is told when a person is needed"`
	Version     string     `json:"version,omitempty" doc:"The version that runs; empty means that it has only drafts"`
	ScriptID    string     `json:"script_id,omitempty"`
	PausedAt    *time.Time `json:"paused_at,omitempty" doc:"Set while it is paused: no run of it makes a call"`
	PausedRun   string     `json:"paused_run,omitempty" doc:"The run that the pause ended, which resuming carries on"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`

	Status  AutomationStatus `json:"status" doc:"draft, active, paused, retrying, repairing or stopped"`
	Failure *FailureState    `json:"failure,omitempty" doc:"What its failures have led to, until a run succeeds"`
}

// ScriptVersion is one script of an automation. It never changes. Major versions are written anew, minor ones repair
// them, and those of major 0 are drafts: tried, but never active.
type ScriptVersion struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	AgentID     string    `json:"agent_id"`
	Major       int       `json:"major"`
	Minor       int       `json:"minor"`
	Source      string    `json:"source,omitempty" doc:"Left out in lists"`
	Language    string    `json:"language" doc:"js or ts"`
	Comment     string    `json:"comment,omitempty" doc:"What changed, and why"`
	CreatedBy   string    `json:"created_by,omitempty"`
	ScriptJobID string    `json:"script_job_id,omitempty" doc:"The script job that it came of, if the planner or the maintainer wrote it"`
	CreatedAt   time.Time `json:"created_at"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"The agents on whose behalf it was written, whose rights limit its runs"`
}

// Version is the version as people write it, such as 2.1.
func (v ScriptVersion) Version() string { return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) }

// ParseVersion reads major.minor.
func ParseVersion(s string) (major, minor int, err error) {
	a, b, ok := strings.Cut(s, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || major < 0 || minor < 0 {
		return 0, 0, InvalidField("/version", "is not a version", "major.minor, such as 2.1")
	}
	return major, minor, nil
}

// MaxSource is how many bytes a script may have.
const MaxSource = 1 << 20

// RunType is what a run of an automation is for.
type RunType string

// The types of runs.
const (
	ProductionRun RunType = "production"
	TestRun       RunType = "test"  // the same effects and the same ledger; its failures are nobody's task
	DryRun        RunType = "dry"   // every change is previewed and written down as a plan
	ApplyRun      RunType = "apply" // performs a plan, and nothing else
)

// FailureClass is who or what can help a run that failed. It is known where the failure arises.
type FailureClass string

// The classes.
const (
	AuthFailure       FailureClass = "auth"       // a credential is missing or no longer good
	PermissionFailure FailureClass = "permission" // it is not allowed to
	NetworkFailure    FailureClass = "network"    // trying again later may help
	LogicFailure      FailureClass = "logic"      // the script is wrong
	InternalFailure   FailureClass = "internal"   // a fault of Reeve's own
)

// ClassOf gives the class of a failure by its code.
func ClassOf(c Code) FailureClass {
	switch c {
	case "":
		return ""
	case Unauthenticated:
		return AuthFailure
	case Forbidden, Denied, OutOfScope, BudgetExceeded, ApprovalRequired, Stopped:
		return PermissionFailure
	// the last is the database's: a call of unknown outcome waits for a person
	case Unavailable, RateLimited, Timeout, UnknownOutcome:
		return NetworkFailure
	case Internal, Corrupt, Crashed, AssemblyFailed, ModelFailed:
		return InternalFailure
	default:
		return LogicFailure
	}
}

// ScriptRun is what a run has to say when its brain is a script. It is there from the moment the run is asked for,
// under the run key, and shows how far the run has come.
type ScriptRun struct {
	RunKey      string       `json:"run_key"`
	RunID       string       `json:"run_id,omitempty"`
	WorkspaceID string       `json:"workspace_id"`
	AgentID     string       `json:"agent_id"`
	ScriptID    string       `json:"script_id,omitempty" doc:"The version it runs, from its first moment to its last"`
	Version     string       `json:"version,omitempty"`
	Type        RunType      `json:"type"`
	PlanOf      string       `json:"plan_of,omitempty" doc:"Of a run that applies a plan: the dry run that made it"`
	Class       FailureClass `json:"class,omitempty" doc:"Of one that failed: who or what can help"`
	Progress    Progress     `json:"progress"`
	Log         string       `json:"log,omitempty" doc:"The last lines that the script logged"`
}

// Progress is how far a run has come.
type Progress struct {
	Done    int     `json:"done" doc:"Items that this run finished"`
	Skipped int     `json:"skipped" doc:"Items that were done, or set aside, before"`
	Failed  int     `json:"failed"`
	Total   int     `json:"total,omitempty" doc:"Items there are, if the script has said so"`
	Current string  `json:"current,omitempty" doc:"Title of the item that is open"`
	Rate    float64 `json:"rate,omitempty" doc:"Items per second so far"`
	Spent   Amount  `json:"spent,omitzero"`
	Planned int     `json:"planned,omitempty" doc:"Of a dry run: the calls that it would make"`
}

// ItemState is where an item stands.
type ItemState string

// The states of an item.
const (
	ItemProcessing     ItemState = "processing"      // a run is at it, or left it when it crashed
	ItemDone           ItemState = "done"            // never worked on again, unless a person says so
	ItemFailed         ItemState = "failed"          // the next run tries again
	ItemSkipped        ItemState = "skipped"         // a person said to leave it
	ItemNeedsAttention ItemState = "needs_attention" // a person must say what to do
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

// CheckTransition checks one step of an item's life. From done, skipped and needs_attention only a person leads on,
// with a new attempt.
func (s ItemState) CheckTransition(next ItemState) error {
	if slices.Contains(itemTransitions[s], next) {
		return nil
	}
	return Errorf(Conflict, "an item cannot go from %q to %q", s, next)
}

// IsSettled tells whether a run leaves an item in this state alone.
func (s ItemState) IsSettled() bool {
	return s == ItemDone || s == ItemSkipped || s == ItemNeedsAttention
}

// Item is one unit of an automation's work.
type Item struct {
	AgentID     string    `json:"agent_id"`
	WorkspaceID string    `json:"workspace_id"`
	ID          string    `json:"id" doc:"The script's own name of it, unique in the automation"`
	Title       string    `json:"title"`
	State       ItemState `json:"state"`
	Attempt     int       `json:"attempt" doc:"Only a person starts another"`
	CreatedBy   string    `json:"created_by" doc:"automation, or the person who skipped it before it was seen"`
	FirstRun    string    `json:"first_run,omitempty"`
	LastRun     string    `json:"last_run,omitempty"`
	Code        Code      `json:"code,omitempty" doc:"Why it failed, or needs a person"`
	Message     string    `json:"message,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// WaitingItem is an item that needs attention, and whose it is.
type WaitingItem struct {
	Item
	Automation string `json:"automation" doc:"The automation's name"`
}

// ItemAttempt is one attempt at an item, by one version after another until it is over.
type ItemAttempt struct {
	Attempt    int        `json:"attempt"`
	State      ItemState  `json:"state"`
	FirstRun   string     `json:"first_run"`
	LastRun    string     `json:"last_run"`
	Version    string     `json:"version,omitempty" doc:"The script that was last at it"`
	Code       Code       `json:"code,omitempty"`
	Message    string     `json:"message,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// MaxItemName is how many bytes an item's id, or its title, may have.
const MaxItemName = 1 << 10

// CheckItemName refuses an id or a title that cannot be one.
func CheckItemName(what, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return Errorf(Validation, "an item's %s must not be empty", what)
	case len(s) > MaxItemName:
		return Errorf(Validation, "an item's %s has %d bytes", what, len(s)).
			Hintf("at most %d; use a stable id of the thing itself", MaxItemName)
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return Errorf(Validation, "an item's %s must be text without NUL", what)
	}
	return nil
}

// PlannedCall is one change that a dry run would have made, or an item that it would have done without any.
type PlannedCall struct {
	Ordinal   int    `json:"ordinal"`
	ItemID    string `json:"item_id"`
	Title     string `json:"title"`
	Attempt   int    `json:"attempt"`
	Tool      string `json:"tool" doc:"Empty when the item would be done without any change"`
	Args      string `json:"args"`
	Preview   string `json:"preview,omitempty" doc:"What would change; empty when the tool cannot say"`
	Base      string `json:"base,omitempty" doc:"What that was worked out from: applied only while it holds"`
	Operation string `json:"operation_id" doc:"The operation that it becomes; empty when there is none"`
	State     State  `json:"state,omitempty" doc:"Where that stands, once the plan is applied"`
	Code      Code   `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
}

// AutomationStep is a run of an automation as a step of another run.
type AutomationStep struct {
	Run        Run    // whose step it is
	Automation string // name or id
	Key        string // under one key it is run once; empty means that it can be run again at will
	Input      json.RawMessage
}
