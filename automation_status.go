package reeve

import (
	"time"
)

// AutomationStatus says in a word how an automation is.
type AutomationStatus string

// The statuses. What a person did (paused) and what became of it (stopped, repairing, retrying) are kept apart.
const (
	StatusDraft     AutomationStatus = "draft"     // no version is active
	StatusActive    AutomationStatus = "active"    // it runs when it is woken
	StatusPaused    AutomationStatus = "paused"    // a person paused it
	StatusRetrying  AutomationStatus = "retrying"  // the network failed it; it is tried again by itself
	StatusRepairing AutomationStatus = "repairing" // its script failed; the maintainer is at it
	StatusStopped   AutomationStatus = "stopped"   // a person is needed; nothing but a person runs it
)

// FailureState is what an automation's failures have led to. It is gone when a run succeeds, or a person says to go on.
type FailureState struct {
	AgentID         string       `json:"-"`
	WorkspaceID     string       `json:"-"`
	Class           FailureClass `json:"class" doc:"Of the last failure: who or what can help"`
	Code            Code         `json:"code,omitempty"`
	Message         string       `json:"message,omitempty"`
	RunID           string       `json:"run_id" doc:"The run that failed last"`
	RootID          string       `json:"root_run_id,omitempty" doc:"The run that it tried again, if it did"`
	NetworkFailures int          `json:"tries,omitempty" doc:"Times in a row that the network failed it"`
	Repairs         int          `json:"fixes,omitempty" doc:"Repairs begun since it last succeeded"`
	RetryAt         *time.Time   `json:"retry_at,omitempty" doc:"When it is tried again"`
	RetryKey        string       `json:"retry_key,omitempty" doc:"The wake that does"`
	StoppedAt       *time.Time   `json:"stopped_at,omitempty" doc:"Set while it waits for a person: nothing else runs it"`
	ScriptJobID     string       `json:"script_job_id,omitempty" doc:"The repair under way"`
	UpdatedAt       time.Time    `json:"updated_at"`
}

// BlockedReason says why nothing but a person may run the automation now; empty means that anything may.
func (t FailureState) BlockedReason() string {
	switch {
	case t.StoppedAt != nil:
		return "it is stopped and waits for a person: " + t.Message
	case t.ScriptJobID != "":
		return "its script is being repaired"
	}
	return ""
}

// status works out the status of an automation from what is known of it.
func (m Automation) status() AutomationStatus {
	t := m.Failure
	switch {
	case m.PausedAt != nil:
		return StatusPaused
	case t != nil && t.StoppedAt != nil:
		return StatusStopped
	case m.ScriptID == "":
		return StatusDraft
	case t != nil && t.ScriptJobID != "":
		return StatusRepairing
	case t != nil && t.RetryAt != nil:
		return StatusRetrying
	}
	return StatusActive
}

// WithStatus fills in the status.
func (m Automation) WithStatus() Automation {
	m.Status = m.status()
	return m
}

// ScriptJobKind is what a script job is: work for a model-driven agent on an automation's script.
type ScriptJobKind string

// The kinds of script job.
const (
	PlanJob   ScriptJobKind = "plan"   // the planner writes the script that a person asked for
	RepairJob ScriptJobKind = "repair" // the maintainer mends a version that failed
)

// ScriptJobState is where a script job stands.
type ScriptJobState string

// The states of a script job.
const (
	ScriptJobOpen   ScriptJobState = "open"   // its agent works on it, or will
	ScriptJobAsking ScriptJobState = "asking" // a person must answer a question first
	ScriptJobDone   ScriptJobState = "done"   // a version was saved
	ScriptJobStale  ScriptJobState = "stale"  // it was overtaken, and what came of it is discarded
	ScriptJobFailed ScriptJobState = "failed" // nothing came of it; a person was told
)

// Exchange is a question of a script job's agent, and a person's answer.
type Exchange struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// ScriptJob is work for the planner or the maintainer. It is a row, and its agent is woken for it through the one
// queue.
type ScriptJob struct {
	ID          string         `json:"id"`
	WorkspaceID string         `json:"workspace_id"`
	Kind        ScriptJobKind  `json:"kind"`
	AgentID     string         `json:"agent_id" doc:"The automation"`
	Automation  string         `json:"automation" doc:"Its name"`
	WorkerID    string         `json:"worker_id" doc:"The agent that does it"`
	ScriptID    string         `json:"script_id,omitempty" doc:"The version that it is about: of a repair, the one that failed"`
	Version     string         `json:"version,omitempty"`
	RunID       string         `json:"run_id,omitempty" doc:"Of a repair: the run that failed"`
	RunKey      string         `json:"run_key" doc:"The wake of the agent that does it"`
	UserID      string         `json:"user_id,omitempty" doc:"Whom it is for"`
	Request     string         `json:"request" doc:"What the agent was told"`
	State       ScriptJobState `json:"state"`
	Question    string         `json:"question,omitempty" doc:"What a person must answer"`
	Talk        []Exchange     `json:"talk,omitempty" doc:"What was asked and answered before"`
	ResultID    string         `json:"result_id,omitempty"`
	Result      string         `json:"result,omitempty" doc:"The version that came of it"`
	TimerID     string         `json:"schedule_id,omitempty" doc:"Of a plan: the schedule that activation starts"`
	Message     string         `json:"message,omitempty" doc:"How it ended, in words"`
	Tries       int            `json:"tries,omitempty" doc:"How often it was begun again because the network failed it"`
	CreatedAt   time.Time      `json:"created_at"`
	ClosedAt    *time.Time     `json:"closed_at,omitempty"`
}

// Final tells whether nothing more becomes of a script job.
func (s ScriptJobState) Final() bool { return s != ScriptJobOpen && s != ScriptJobAsking }

// PlanRequest asks the planner for a script.
type PlanRequest struct {
	Request string `json:"request" minLength:"1" maxLength:"8000" doc:"What the automation is to do, and when, in plain words"`
}
