package reeve

import (
	"context"
	"reflect"
	"slices"
	"time"
)

// Reason is the reason of a wake.
type Reason string

// The reasons.
const (
	ReasonSubscription Reason = "subscription"     // a token that the agent subscribes to was emitted
	ReasonTimer        Reason = "timer"            // a timer fired
	ReasonUser         Reason = "user_initiated"   // a user sent a message
	ReasonCatchup      Reason = "recovery_catchup" // a timer fired late because no server was running
	ReasonManual       Reason = "manual"           // a person woke the agent by hand
	ReasonRetry        Reason = "retry"            // a failed run is repeated
	ReasonScriptJob    Reason = "script_job"       // the planner or maintainer has a script job
)

// Mode says which kinds of wake start an agent's runs.
type Mode string

// The modes.
const (
	Autonomous  Mode = "autonomous"  // all reasons but user_initiated
	Interactive Mode = "interactive" // only wakes by a person, and their retries
	Hybrid      Mode = "hybrid"      // all reasons
)

// Modes lists the modes.
func Modes() []Mode { return []Mode{Autonomous, Interactive, Hybrid} }

// Allows reports whether an agent of this mode runs for the given reason.
func (m Mode) Allows(r Reason) bool {
	person := r == ReasonUser || r == ReasonManual
	switch m {
	case Autonomous:
		return r != ReasonUser
	case Interactive:
		return person || r == ReasonRetry // the retry serves an earlier wake
	case Hybrid:
		return true
	}
	return false
}

// WakeState is the state of a wake.
type WakeState string

// The states of a wake. A taken wake has the outcome of its run.
const (
	WakeQueued  WakeState = "queued"
	WakeTaken   WakeState = "taken"
	WakeSkipped WakeState = "skipped"
)

// Wake is a request to run an agent. The run key identifies it, so a repeated request is the same row. One run may
// serve several wakes; see package wake.
type Wake struct {
	RunKey      string     `json:"run_key"`
	WorkspaceID string     `json:"workspace_id"`
	AgentID     string     `json:"agent_id"`
	Reason      Reason     `json:"reason"`
	ReasonID    string     `json:"reason_id,omitempty" doc:"Id of the subscription, timer or user"`
	SessionID   string     `json:"session_id,omitempty" doc:"Conversation of a turn; otherwise a key of wakes that one run may serve together"`
	UserID      string     `json:"user_id,omitempty"`
	Input       string     `json:"input,omitempty" doc:"User's message or schedule's goal"`
	OperationID string     `json:"operation_id,omitempty" doc:"Operation whose change caused the wake"`
	Token       Token      `json:"token,omitzero" doc:"Token that matched the subscription"`
	Origins     []string   `json:"origins,omitempty" doc:"Agents whose work led to the wake; it wakes none of them"`
	ScheduledAt *time.Time `json:"scheduled_at,omitempty" doc:"Timers only: scheduled time"`
	DueAt       time.Time  `json:"due_at"`
	State       WakeState  `json:"state"`
	Why         string     `json:"why,omitempty" doc:"Why the wake was skipped"`
	RunID       string     `json:"run_id,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"Agents whose rights limit the run"`
}

// RunState is the state of a run.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"
	RunParked    RunState = "parked"    // one of the calls waits for a person or for another agent
	RunCompleted RunState = "completed" // its brain finished
	RunFailed    RunState = "failed"    // its brain could not continue
	RunSkipped   RunState = "skipped"   // the agent was stopped or destroyed before the run started
	RunCancelled RunState = "cancelled" // ended by a person
	RunPaused    RunState = "paused"    // its automation was paused; resuming starts another run that continues
)

var runTransitions = map[RunState][]RunState{
	"":         {RunRunning},
	RunRunning: {RunParked, RunCompleted, RunFailed, RunSkipped, RunCancelled, RunPaused},
	RunParked:  {RunRunning, RunFailed, RunSkipped, RunCancelled},
}

// RunStates lists the states of a run.
func RunStates() []RunState {
	return []RunState{RunRunning, RunParked, RunCompleted, RunFailed, RunSkipped, RunCancelled, RunPaused}
}

// CheckTransition returns a Conflict error if a run may not change from s to next.
func (s RunState) CheckTransition(next RunState) error {
	if slices.Contains(runTransitions[s], next) {
		return nil
	}
	return Errorf(Conflict, "a run cannot change from %q to %q", s, next)
}

// IsFinal reports whether a run in this state has ended.
func (s RunState) IsFinal() bool { return len(runTransitions[s]) == 0 }

// Run is one execution of an agent.
type Run struct {
	ID            string     `json:"id"`
	Key           string     `json:"key" doc:"Run key of its first wake; operation ids derive from it"`
	WorkspaceID   string     `json:"workspace_id"`
	AgentID       string     `json:"agent_id"`
	Reason        Reason     `json:"reason"`
	ReasonID      string     `json:"reason_id,omitempty"`
	SessionID     string     `json:"session_id,omitempty"`
	UserID        string     `json:"user_id,omitempty"`
	Input         string     `json:"input,omitempty"`
	Origins       []string   `json:"origins,omitempty"`
	ThreadID      string     `json:"thread_id"`
	State         RunState   `json:"state"`
	Output        string     `json:"output,omitempty" doc:"Result as text"`
	Code          Code       `json:"code,omitempty"`
	Message       string     `json:"message,omitempty"`
	Wakes         int        `json:"wakes" doc:"Number of wakes that it serves"`
	Attempts      int        `json:"attempts" doc:"Number of starts, including resumes after crashes"`
	ModelRequests int        `json:"model_requests,omitempty" doc:"Number of model requests"`
	Issues        TurnIssues `json:"issues,omitzero"`
	Spent         Amount     `json:"spent"`
	ScheduledAt   *time.Time `json:"scheduled_at,omitempty"`
	StartedAt     time.Time  `json:"started_at"`
	FinishedAt    *time.Time `json:"finished_at,omitempty"`

	ParentID          string     `json:"parent_id,omitempty" doc:"Run whose call started it"`
	CallerOperationID string     `json:"caller_operation_id,omitempty" doc:"Operation of that call, which gets the run's result"`
	Ancestors         []Ancestor `json:"ancestors,omitempty" doc:"Runs whose calls led to it, the first one first"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"Agents whose rights limit the run"`

	// WaitsForAgents is set only where a single run is read.
	WaitsForAgents bool `json:"waits_for_agents,omitempty" doc:"Parked runs only: waits for called agents and for no person"`

	Owner           string `json:"-"`
	ResultsToResume int    `json:"-"` // see RunEnd.ResultsToResume; parked runs only

	Resumed      bool `json:"-"` // another process started the run and left it unfinished
	PendingCalls int  `json:"-"` // see RunEnd.PendingCalls; set only while the run ends

	RetryAfter time.Duration `json:"-"` // RetryAfter of the run's error; set only while the run ends
}

// DescribeEnd returns a phrase such as "the turn was cancelled" for a run that has ended.
func (r Run) DescribeEnd() string {
	what := "the run"
	if r.Reason == ReasonUser {
		what = "the turn"
	}
	switch r.State {
	case RunCancelled:
		return what + " was cancelled"
	case RunFailed:
		return what + " failed"
	case RunRunning, RunParked, RunCompleted, RunSkipped, RunPaused:
	}
	return what + " ended"
}

// Ancestor is a run whose call led to another run. Its rights limit the other run.
type Ancestor struct {
	RunID   string   `json:"run_id,omitempty" doc:"Empty if the call was made outside a run"`
	AgentID string   `json:"agent_id"`
	Tools   []string `json:"tools" doc:"Tools of the run; null means the agent's tools"`

	// OwnRights is set if an operator gave the other run its own rights. The runs share costs and end together.
	OwnRights bool `json:"own_rights,omitempty" doc:"The other run has its own rights, set by an operator"`
}

// AncestorChain returns the ancestors of runs that r starts: its own ancestors, then r with the given tools.
func (r Run) AncestorChain(tools []string) []Ancestor {
	return append(slices.Clone(r.Ancestors), Ancestor{RunID: r.ID, AgentID: r.AgentID, Tools: tools})
}

// ActsFor reports whether agent is an ancestor or a delegator of the run.
func (r Run) ActsFor(agent string) bool {
	return slices.ContainsFunc(r.Ancestors, func(a Ancestor) bool { return a.AgentID == agent }) ||
		slices.ContainsFunc(r.OnBehalfOf, func(d Delegator) bool { return d.AgentID == agent })
}

// RunServer serves and ends runs. The scheduler passes it to brains, which may start further runs, for example an
// automation that does a step of a turn.
type RunServer interface {
	// ServeStarted serves a run that this process started and owns in the store. It returns when the run has stopped.
	ServeStarted(ctx context.Context, run Run)
	// End ends a run and all runs that its calls started.
	End(ctx context.Context, workspace, run string, why *Error) (Run, error)
}

// RunEnd is the result of a brain when it stops.
type RunEnd struct {
	State         RunState // completed, failed, parked, paused or cancelled
	Output        string
	Err           *Error
	Notify        bool // notify the user, if the policy is conditional
	ModelRequests int
	Issues        TurnIssues
	PendingCalls  int // calls without a result yet
	// ResultsToResume is how many results of deferred calls must exist for a parked run to resume. 0 means that the run
	// waits for another call instead.
	ResultsToResume   int
	FailedRequestCost Amount // cost of a failed model request, which no message records
}

// Subscription wakes an agent when a token is emitted and the predicate holds for the changed entity.
type Subscription struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	AgentID     string    `json:"agent_id"`
	UserID      string    `json:"user_id,omitempty" doc:"User who created it; the predicate sees this user's data"`
	Token       Token     `json:"token"`
	Predicate   string    `json:"predicate,omitempty" doc:"CEL expression over entity; empty means always"`
	CreatedAt   time.Time `json:"created_at"`
}

// Misfire says what happens to firings that were missed because no server was running.
type Misfire string

// The misfire policies.
const (
	CatchUpOnce  Misfire = "catchup" // one run for all missed firings
	SkipMissed   Misfire = "skip"    // no run
	RunAllMissed Misfire = "all"     // a run for each missed firing of the last 24 hours, at most 100
)

// Notify says when a schedule's run notifies its user.
type Notify string

// The notification policies.
const (
	NotifyAlways      Notify = "always"
	NotifyConditional Notify = "conditional" // if the run requests it
	NotifyNever       Notify = "never"
)

// TimerState is the state of a timer.
type TimerState string

// The states of a timer.
const (
	TimerActive    TimerState = "active"
	TimerPaused    TimerState = "paused"    // paused by a person
	TimerCompleted TimerState = "completed" // no firing left
	TimerDisabled  TimerState = "disabled"  // failed too often
)

// Timer wakes an agent at certain times. A schedule is a timer with a goal and a notification policy. It belongs to a
// user.
type Timer struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	AgentID     string     `json:"agent_id"`
	UserID      string     `json:"user_id,omitempty"`
	Name        string     `json:"name"`
	Goal        string     `json:"goal,omitempty" doc:"Complete instructions for each run"`
	Kind        string     `json:"cadence_type" doc:"cron, once or interval"`
	Value       string     `json:"cadence_value"`
	Zone        string     `json:"timezone"`
	Misfire     Misfire    `json:"misfire"`
	Notify      Notify     `json:"notification"`
	Origin      string     `json:"origin,omitempty" doc:"Session that notifications go to"`
	State       TimerState `json:"status"`
	NextAt      *time.Time `json:"next_run_at,omitempty"`
	LastAt      *time.Time `json:"last_run_at,omitempty" doc:"Scheduled time of the last firing"`
	Failures    int        `json:"consecutive_failures"`
	Missed      int        `json:"missed" doc:"Number of missed firings"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"Agents whose rights limit its runs"`
}

// Tokens returns the tokens that a change of the timer emits.
func (t Timer) Tokens() []Token {
	return []Token{{Class: SemanticKey, Name: KeySchedule}, {Class: EntityID, Name: t.ID}}
}

// Equal reports whether the timers are equal apart from CreatedAt and UpdatedAt.
func (t Timer) Equal(was Timer) bool {
	if !sameInstant(t.NextAt, was.NextAt) || !sameInstant(t.LastAt, was.LastAt) {
		return false
	}
	t.NextAt, t.LastAt, t.CreatedAt, t.UpdatedAt = was.NextAt, was.LastAt, was.CreatedAt, was.UpdatedAt
	return reflect.DeepEqual(t, was)
}

// Notification is a notification for a user. It is delivered once.
type Notification struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	UserID      string     `json:"user_id"`
	RunID       string     `json:"run_id,omitempty"`
	TimerID     string     `json:"timer_id,omitempty"`
	AgentID     string     `json:"agent_id,omitempty"`
	Session     string     `json:"session,omitempty" doc:"Session that the notification belongs to"`
	Title       string     `json:"title"`
	Body        string     `json:"body"`
	ReadAt      *time.Time `json:"read_at,omitempty"`
	DeliveredAt *time.Time `json:"delivered_at,omitempty" doc:"When the webhook accepted it"`
	CreatedAt   time.Time  `json:"created_at"`
}

// Tokens returns the tokens that a new notification emits.
func (n Notification) Tokens() []Token { return []Token{{Class: SemanticKey, Name: "NOTIFICATION"}} }
