package reeve

import (
	"context"
	"reflect"
	"slices"
	"time"
)

// Reason is why an agent is woken.
type Reason string

// The reasons.
const (
	ReasonSubscription Reason = "subscription"     // something it watches changed
	ReasonTimer        Reason = "timer"            // its time has come
	ReasonUser         Reason = "user_initiated"   // a person speaks to it
	ReasonCatchup      Reason = "recovery_catchup" // its time came while nobody was there
	ReasonManual       Reason = "manual"           // a person wakes it
	ReasonRetry        Reason = "retry"            // a run of it failed, and is made again
	ReasonScriptJob    Reason = "script_job"       // it was sent on a script job: to plan or mend an automation
)

// Mode is who may wake an agent.
type Mode string

// The modes.
const (
	Autonomous  Mode = "autonomous"  // wakes by itself
	Interactive Mode = "interactive" // wakes only for a person
	Hybrid      Mode = "hybrid"      // both
)

// Modes lists the modes.
func Modes() []Mode { return []Mode{Autonomous, Interactive, Hybrid} }

// Wakes tells whether an agent of this mode is woken for a reason.
func (m Mode) Wakes(r Reason) bool {
	person := r == ReasonUser || r == ReasonManual
	switch m {
	case Autonomous:
		return r != ReasonUser
	case Interactive:
		return person || r == ReasonRetry // which goes on with what it was woken for before
	case Hybrid:
		return true
	}
	return false
}

// WakeState is where a wake stands.
type WakeState string

// The states of a wake. A wake that was taken ends as its run does.
const (
	WakeQueued  WakeState = "queued"
	WakeTaken   WakeState = "taken"
	WakeSkipped WakeState = "skipped"
)

// Wake is a request to run an agent. Its run key names it: the same demand twice is one row. Wakes of one agent that
// are due together are served by one run, and end as it does.
type Wake struct {
	RunKey      string     `json:"run_key"`
	WorkspaceID string     `json:"workspace_id"`
	AgentID     string     `json:"agent_id"`
	Reason      Reason     `json:"reason"`
	ReasonID    string     `json:"reason_id,omitempty" doc:"The subscription, timer or person"`
	SessionID   string     `json:"session_id,omitempty" doc:"Of a turn: its session"`
	UserID      string     `json:"user_id,omitempty"`
	Input       string     `json:"input,omitempty" doc:"What a person said, or a schedule's goal"`
	OperationID string     `json:"operation_id,omitempty" doc:"The change that woke it"`
	Token       Token      `json:"token,omitzero" doc:"What of the change was watched"`
	Origins     []string   `json:"origins,omitempty" doc:"The agents whose work led to this, and who are not woken by it again"`
	ScheduledAt *time.Time `json:"scheduled_at,omitempty" doc:"Of a timer: the instant it was meant for"`
	DueAt       time.Time  `json:"due_at"`
	State       WakeState  `json:"state"`
	Why         string     `json:"why,omitempty" doc:"Why it was skipped"`
	RunID       string     `json:"run_id,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"The agents whose rights limit the run"`
}

// RunState is where a run stands.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"
	RunParked    RunState = "parked"    // a call of it waits for a person
	RunCompleted RunState = "completed" // its brain came to an end
	RunFailed    RunState = "failed"    // its brain could not go on
	RunSkipped   RunState = "skipped"   // the agent was stopped or destroyed before it began
	RunCancelled RunState = "cancelled" // a person ended it
	RunPaused    RunState = "paused"    // its automation was paused; resuming that begins another, which carries on
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

// CheckTransition checks one step of a run's life.
func (s RunState) CheckTransition(next RunState) error {
	if slices.Contains(runTransitions[s], next) {
		return nil
	}
	return Errorf(Conflict, "a run cannot go from %q to %q", s, next)
}

// Final tells whether a run in this state has ended.
func (s RunState) Final() bool { return len(runTransitions[s]) == 0 }

// Run is one execution of an agent.
type Run struct {
	ID          string     `json:"id"`
	Key         string     `json:"key" doc:"The first run key it serves; its operations' ids derive from it"`
	WorkspaceID string     `json:"workspace_id"`
	AgentID     string     `json:"agent_id"`
	Reason      Reason     `json:"reason"`
	ReasonID    string     `json:"reason_id,omitempty"`
	SessionID   string     `json:"session_id,omitempty"`
	UserID      string     `json:"user_id,omitempty"`
	Input       string     `json:"input,omitempty"`
	Origins     []string   `json:"origins,omitempty"`
	ThreadID    string     `json:"thread_id"`
	State       RunState   `json:"state"`
	Output      string     `json:"output,omitempty" doc:"What it came to, in words"`
	Code        Code       `json:"code,omitempty"`
	Message     string     `json:"message,omitempty"`
	Wakes       int        `json:"wakes" doc:"How many wakes it serves"`
	Attempts    int        `json:"attempts" doc:"How often it was taken up, after crashes"`
	Moves       int        `json:"moves,omitempty" doc:"How often a model was asked"`
	Issues      TurnIssues `json:"issues,omitzero"`
	Spent       Amount     `json:"spent"`
	ScheduledAt *time.Time `json:"scheduled_at,omitempty"`
	StartedAt   time.Time  `json:"started_at"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`

	ParentID  string     `json:"parent_id,omitempty" doc:"The run whose call began it"`
	Answers   string     `json:"answers,omitempty" doc:"The operation of that call: what this run comes to is its result"`
	Ancestors []Ancestor `json:"ancestors,omitempty" doc:"The runs that led to it by their calls, the first one first"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"The agents on whose behalf it was made to run, whose rights limit it"`

	WaitsForAgents bool `json:"goes_on,omitempty" doc:"Of one that is parked, when it is read by itself: it waits for agents that it called, and for no person"`

	Owner   string `json:"-"`
	Results int    `json:"-"` // of a parked run: see RunEnd

	Resumed bool `json:"-"` // somebody had begun it, and left it in the middle
	Pending int  `json:"-"` // of one that is just ending: see RunEnd

	RetryAfter time.Duration `json:"-"` // of one that is just ending: what its error names
}

// DescribeEnd says how a run that is over came to its end, in words that can begin a sentence.
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

// Ancestor is a run on whose behalf another acts. What it may not do, the other may not either.
type Ancestor struct {
	RunID     string   `json:"run_id,omitempty" doc:"Empty if the call was made outside of any run"`
	AgentID   string   `json:"agent_id"`
	Tools     []string `json:"tools" doc:"The tools it had; null means its agent's own"`
	OwnRights bool     `json:"apart,omitempty" doc:"The other acts by its own rights, which an operator gave it; only its costs and its end are shared"`
}

// AncestorChain is everybody who led to a run, and the run itself: what runs that it begins have for ancestors.
func (r Run) AncestorChain(tools []string) []Ancestor {
	return append(slices.Clone(r.Ancestors), Ancestor{RunID: r.ID, AgentID: r.AgentID, Tools: tools})
}

// ActsFor tells whether a run acts on behalf of an agent other than its own.
func (r Run) ActsFor(agent string) bool {
	return slices.ContainsFunc(r.Ancestors, func(a Ancestor) bool { return a.AgentID == agent }) ||
		slices.ContainsFunc(r.OnBehalfOf, func(d Delegator) bool { return d.AgentID == agent })
}

// RunServer serves and ends runs. The scheduler hands it to a brain, which may begin runs of its own: an automation
// that does a step of a turn is one.
type RunServer interface {
	// ServeBegun serves a run that this process has begun and owns in the store, and returns when the run has stopped.
	ServeBegun(ctx context.Context, run Run)
	// End ends a run from outside, and the runs that its calls began.
	End(ctx context.Context, workspace, run string, why *Error) (Run, error)
}

// RunEnd is what a brain says when it stops.
type RunEnd struct {
	State   RunState // completed, failed, parked, paused or cancelled
	Output  string
	Err     *Error
	Notify  bool // under a conditional policy: whether the person should be told
	Moves   int
	Issues  TurnIssues
	Pending int // calls whose results are still to come
	// of one that is parked: with how many results of calls that are answered later it goes on; 0 means that it waits
	// for another call, and for none of them
	Results     int
	FailedSpent Amount // what a question cost that came to nothing: none of the run's messages says so
}

// Subscription wakes an agent when a token is emitted, if its predicate holds for the changed entity after the batch.
type Subscription struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	AgentID     string    `json:"agent_id"`
	UserID      string    `json:"user_id,omitempty" doc:"Who made it: of what is a user's own, its predicate sees this user's"`
	Token       Token     `json:"token"`
	Predicate   string    `json:"predicate,omitempty" doc:"A CEL expression over entity; empty means always"`
	CreatedAt   time.Time `json:"created_at"`
}

// Misfire is what becomes of firings that nobody was there for.
type Misfire string

// The misfire policies.
const (
	CatchUpOnce Misfire = "catchup" // one run for all of them
	SkipMissed  Misfire = "skip"    // none
	RunAll      Misfire = "all"     // each of the last 24 hours, 100 at most
)

// Notify is when a schedule's run tells its person.
type Notify string

// The notification policies.
const (
	NotifyAlways      Notify = "always"
	NotifyConditional Notify = "conditional" // when the run says so
	NotifyNever       Notify = "never"
)

// TimerState is where a timer stands.
type TimerState string

// The states of a timer.
const (
	TimerActive    TimerState = "active"
	TimerPaused    TimerState = "paused"    // a person paused it
	TimerCompleted TimerState = "completed" // it has no firing left
	TimerDisabled  TimerState = "disabled"  // it failed too often
)

// Timer wakes an agent by the clock. A schedule is a timer with a goal and a notification policy, and belongs to a
// user.
type Timer struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	AgentID     string     `json:"agent_id"`
	UserID      string     `json:"user_id,omitempty"`
	Name        string     `json:"name"`
	Goal        string     `json:"goal,omitempty" doc:"What a run of it is to do: complete instructions"`
	Kind        string     `json:"cadence_type" doc:"cron, once or interval"`
	Value       string     `json:"cadence_value"`
	Zone        string     `json:"timezone"`
	Misfire     Misfire    `json:"misfire"`
	Notify      Notify     `json:"notification"`
	Origin      string     `json:"origin,omitempty" doc:"The session whose person is told"`
	State       TimerState `json:"status"`
	NextAt      *time.Time `json:"next_run_at,omitempty"`
	LastAt      *time.Time `json:"last_run_at,omitempty" doc:"The scheduled instant of its last firing"`
	Failures    int        `json:"consecutive_failures"`
	Missed      int        `json:"missed" doc:"Firings that nobody was there for"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`

	OnBehalfOf []Delegator `json:"on_behalf_of,omitempty" doc:"The agents on whose behalf it was made or changed, whose rights limit its runs"`
}

// Tokens are what a change of a schedule tells of.
func (t Timer) Tokens() []Token {
	return []Token{{Class: SemanticKey, Name: "SCHEDULE"}, {Class: EntityID, Name: t.ID}}
}

// Equal tells whether nothing of a schedule has changed.
func (t Timer) Equal(was Timer) bool {
	same := func(a, b *time.Time) bool { return (a == nil) == (b == nil) && (a == nil || a.Equal(*b)) }
	if !same(t.NextAt, was.NextAt) || !same(t.LastAt, was.LastAt) {
		return false
	}
	t.NextAt, t.LastAt, t.CreatedAt, t.UpdatedAt = was.NextAt, was.LastAt, was.CreatedAt, was.UpdatedAt
	return reflect.DeepEqual(t, was)
}

// Notification tells a person something, once.
type Notification struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	UserID      string     `json:"user_id"`
	RunID       string     `json:"run_id,omitempty"`
	TimerID     string     `json:"timer_id,omitempty"`
	AgentID     string     `json:"agent_id,omitempty"`
	Session     string     `json:"session,omitempty" doc:"Where it came from, and where it goes back to"`
	Title       string     `json:"title"`
	Body        string     `json:"body"`
	ReadAt      *time.Time `json:"read_at,omitempty"`
	DeliveredAt *time.Time `json:"delivered_at,omitempty" doc:"When the webhook took it"`
	CreatedAt   time.Time  `json:"created_at"`
}

// Tokens are what a notification tells of, once it is written.
func (n Notification) Tokens() []Token { return []Token{{Class: SemanticKey, Name: "NOTIFICATION"}} }
