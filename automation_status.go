package reeve

import (
	"time"
)

// AutomationStatus is the status of an automation, derived from its pause, its failures and its active version.
type AutomationStatus string

// The statuses.
const (
	AutomationDraft     AutomationStatus = "draft"     // no version is active
	AutomationActive    AutomationStatus = "active"    // runs when it is woken
	AutomationPaused    AutomationStatus = "paused"    // a person paused it
	AutomationRetrying  AutomationStatus = "retrying"  // the network failed; a retry is scheduled
	AutomationRepairing AutomationStatus = "repairing" // the script failed; the maintainer repairs it
	AutomationStopped   AutomationStatus = "stopped"   // only a person can run it
)

// FailureState records the latest failures of an automation. It is deleted when a run succeeds or a person resumes the
// automation.
type FailureState struct {
	AgentID         string       `json:"-"`
	WorkspaceID     string       `json:"-"`
	Class           FailureClass `json:"class" doc:"Class of the last failure"`
	Code            Code         `json:"code,omitempty"`
	Message         string       `json:"message,omitempty"`
	RunID           string       `json:"run_id" doc:"Run that failed last"`
	RootID          string       `json:"root_run_id,omitempty" doc:"First run of the chain of retries; equals run_id if the failed run was not a retry"`
	NetworkFailures int          `json:"network_failures,omitempty" doc:"Consecutive network failures"`
	Repairs         int          `json:"repairs,omitempty" doc:"Repairs started since the last success"`
	RetryAt         *time.Time   `json:"retry_at,omitempty" doc:"Time of the next retry"`
	RetryKey        string       `json:"retry_key,omitempty" doc:"Run key of the retry's wake"`
	StoppedAt       *time.Time   `json:"stopped_at,omitempty" doc:"Set while only a person can run the automation"`
	ScriptJobID     string       `json:"script_job_id,omitempty" doc:"Current repair"`
	UpdatedAt       time.Time    `json:"updated_at"`
}

// BlockedReason says why only a person may run the automation now. It is empty if wakes may run it too.
func (t FailureState) BlockedReason() string {
	switch {
	case t.StoppedAt != nil:
		return "it is stopped and waits for a person: " + t.Message
	case t.ScriptJobID != "":
		return "its script is being repaired"
	}
	return ""
}

// status derives the status from the other fields.
func (m Automation) status() AutomationStatus {
	t := m.Failure
	switch {
	case m.PausedAt != nil:
		return AutomationPaused
	case t != nil && t.StoppedAt != nil:
		return AutomationStopped
	case m.ScriptID == "":
		return AutomationDraft
	case t != nil && t.ScriptJobID != "":
		return AutomationRepairing
	case t != nil && t.RetryAt != nil:
		return AutomationRetrying
	}
	return AutomationActive
}

// WithStatus returns the automation with its status set.
func (m Automation) WithStatus() Automation {
	m.Status = m.status()
	return m
}

// ScriptJobKind is the kind of a script job.
type ScriptJobKind string

// The kinds of script job.
const (
	PlanJob   ScriptJobKind = "plan"   // the planner writes a script that a person requested
	RepairJob ScriptJobKind = "repair" // the maintainer repairs a script version that failed
)

// ScriptJobState is the state of a script job.
type ScriptJobState string

// The states of a script job.
const (
	ScriptJobOpen   ScriptJobState = "open"   // its agent works on it or will be woken for it
	ScriptJobAsking ScriptJobState = "asking" // waits for a person's answer to a question
	ScriptJobDone   ScriptJobState = "done"   // a script version was saved
	ScriptJobStale  ScriptJobState = "stale"  // another change made it obsolete; its result is discarded
	ScriptJobFailed ScriptJobState = "failed" // no result; a person was notified
)

// Exchange is a question from the agent of a script job and a person's answer.
type Exchange struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// ScriptJob is a job for the planner or the maintainer, which are model-driven agents: to write or repair the script of
// an automation. The agent is woken for it through the same queue as every other agent.
type ScriptJob struct {
	ID          string         `json:"id"`
	WorkspaceID string         `json:"workspace_id"`
	Kind        ScriptJobKind  `json:"kind"`
	AgentID     string         `json:"agent_id" doc:"Id of the automation"`
	Automation  string         `json:"automation" doc:"Name of the automation"`
	WorkerID    string         `json:"worker_id" doc:"Agent that does the job"`
	ScriptID    string         `json:"script_id,omitempty" doc:"Script version concerned; in a repair, the failed one"`
	Version     string         `json:"version,omitempty"`
	RunID       string         `json:"run_id,omitempty" doc:"Repairs only: the run that failed"`
	RunKey      string         `json:"run_key" doc:"Run key of the agent's wake"`
	UserID      string         `json:"user_id,omitempty" doc:"User who requested it"`
	Request     string         `json:"request" doc:"Instructions given to the agent"`
	State       ScriptJobState `json:"state"`
	Question    string         `json:"question,omitempty" doc:"Question that waits for an answer"`
	Exchanges   []Exchange     `json:"exchanges,omitempty" doc:"Earlier questions and answers"`
	ResultID    string         `json:"result_id,omitempty"`
	Result      string         `json:"result,omitempty" doc:"Script version that the job produced"`
	TimerID     string         `json:"schedule_id,omitempty" doc:"Plans only: schedule that starts with activation"`
	Message     string         `json:"message,omitempty" doc:"How the job ended"`
	Restarts    int            `json:"restarts,omitempty" doc:"Restarts after network failures"`
	CreatedAt   time.Time      `json:"created_at"`
	ClosedAt    *time.Time     `json:"closed_at,omitempty"`
}

// IsFinal reports whether a script job in this state has ended.
func (s ScriptJobState) IsFinal() bool { return s != ScriptJobOpen && s != ScriptJobAsking }

// PlanRequest asks the planner to write a script.
type PlanRequest struct {
	Request string `json:"request" minLength:"1" maxLength:"8000" doc:"What the automation should do and when, in plain words"`
}
