package reeve

import (
	"encoding/json"
	"slices"
	"time"
)

// State is where an operation stands.
type State string

// The states of an operation.
const (
	Prepared   State = "prepared"   // allowed, not yet sent
	Parked     State = "parked"     // waits for a person
	Dispatched State = "dispatched" // may have left
	Committed  State = "committed"  // it happened, and its result is recorded
	Failed     State = "failed"     // proven not to have happened
	Unknown    State = "unknown"    // nobody can tell; a person must say
	DeniedOp   State = "denied"     // a person or policy said no, or the approval lapsed
	ProposedOp State = "proposed"   // it became an item of a change set; what is applied is an operation of its own
)

// operationTransitions is the whole life of an operation. A state that is not a key is final.
var operationTransitions = map[State][]State{
	"":         {Prepared, Parked, Dispatched, Committed, Failed, ProposedOp},
	Prepared:   {Dispatched, Committed, Failed, Parked, DeniedOp},
	Parked:     {Prepared, DeniedOp},
	Dispatched: {Committed, Failed, Unknown, Prepared},
	Unknown:    {Committed, Prepared},
}

// States lists every state of an operation.
func States() []State {
	return []State{Prepared, Parked, Dispatched, Committed, Failed, Unknown, DeniedOp, ProposedOp}
}

// CheckTransition checks one step of an operation's life.
func (s State) CheckTransition(next State) error {
	if slices.Contains(operationTransitions[s], next) {
		return nil
	}
	return Errorf(Conflict, "an operation cannot go from %q to %q", s, next)
}

// Final tells whether an operation in this state will change no more.
func (s State) Final() bool { return len(operationTransitions[s]) == 0 }

// Resolution is a person's word on an operation of unknown outcome.
type Resolution string

// The resolutions.
const (
	Happened Resolution = "happened" // it happened: record it as committed
	RunAgain Resolution = "retry"    // it did not happen: run it again
	SkipIt   Resolution = "skip"     // leave it
)

// Operation is the durable record of a call that changes something. The call's row also holds its arguments and its
// result, which a thread shows as an action and a result.
type Operation struct {
	ID            string     `json:"id"`
	WorkspaceID   string     `json:"workspace_id"`
	AgentID       string     `json:"agent_id"`
	CallID        string     `json:"call_id" doc:"The action message"`
	ResultID      string     `json:"result_id,omitempty" doc:"The result message, once there is one"`
	ThreadID      string     `json:"thread_id"`
	RunID         string     `json:"run_id,omitempty"`
	Tool          string     `json:"tool"`
	ToolVersion   string     `json:"tool_version" doc:"Hash of the tool's contract when it was judged"`
	Policy        string     `json:"policy" doc:"Hash of the policy that judged it"`
	Effect        Effect     `json:"effect"`
	State         State      `json:"state"`
	ArgsHash      string     `json:"args_hash"`
	Args          string     `json:"args,omitempty" doc:"The exact arguments, where one operation is shown or waits for a person"`
	Base          string     `json:"base,omitempty" doc:"What the change was based on"`
	Code          Code       `json:"code,omitempty" doc:"Why it failed, is unknown, or was denied"`
	Message       string     `json:"message,omitempty"`
	Tries         int        `json:"tries" doc:"How many rounds of sending it or looking it up are over. What the tool's retry repeats is one round; one that a crash cut short does not count"`
	NextAttemptAt *time.Time `json:"next_attempt_at,omitempty"`
	Deferred      bool       `json:"deferred,omitempty" doc:"Its caller does not wait for it"`
	TimeoutAt     *time.Time `json:"timeout_at,omitempty" doc:"Until when its outcome may come from outside"`
	Resolution    Resolution `json:"resolution,omitempty"`
	ResolvedBy    string     `json:"resolved_by,omitempty"`
	Undo          *Undo      `json:"undo,omitempty" doc:"The call that takes this one back"`
	Spent         Amount     `json:"spent" doc:"What it cost"`
	CreatedAt     time.Time  `json:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at"`

	Owner string `json:"-"` // the process that works on it; empty when none does

	// InFlightUntil is when the time limit of the last request of a verifiable operation ends. Until then the request
	// may still take effect, so a look-up that does not find the effect proves nothing. Nil if no request was sent.
	InFlightUntil *time.Time `json:"-"`
}

// IsAwaited tells whether an operation has been sent and its outcome is to come from elsewhere.
func (o Operation) IsAwaited() bool { return o.State == Dispatched && o.TimeoutAt != nil }

// Undo names the call that takes an operation back.
type Undo struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// ResolveRequest is a person's word on an operation of unknown outcome.
type ResolveRequest struct {
	Resolution Resolution `json:"resolution" enum:"happened,retry,skip" doc:"It happened; it did not happen, run it again; skip"`
	Tries      *int       `json:"tries,omitempty" minimum:"0" doc:"The operation's, as it was looked at: the answer is STALE if it was run again since. As it is when the answer arrives if left out"`
}
