package reeve

import (
	"encoding/json"
	"slices"
	"time"
)

// State is the state of an operation.
type State string

// The states of an operation.
const (
	Prepared   State = "prepared"   // allowed, not yet sent
	Parked     State = "parked"     // waits for a person
	Dispatched State = "dispatched" // the request may have been sent
	Committed  State = "committed"  // happened; the result is recorded
	Failed     State = "failed"     // proven not to have happened
	Unknown    State = "unknown"    // may have happened; a person must resolve it
	DeniedOp   State = "denied"     // refused by policy or a person, or the approval lapsed
	ProposedOp State = "proposed"   // became a proposal, which is applied by another operation
)

// operationTransitions lists the legal transitions. A state that is not a key is final.
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

// CheckTransition returns a Conflict error if an operation may not change from s to next.
func (s State) CheckTransition(next State) error {
	if slices.Contains(operationTransitions[s], next) {
		return nil
	}
	return Errorf(Conflict, "an operation cannot change from %q to %q", s, next)
}

// IsFinal reports whether an operation in this state never changes again.
func (s State) IsFinal() bool { return len(operationTransitions[s]) == 0 }

// Resolution is a person's decision on an operation of unknown outcome.
type Resolution string

// The resolutions.
const (
	ResolveHappened Resolution = "happened" // the effect happened; record the operation as committed
	ResolveRetry    Resolution = "retry"    // the effect did not happen; run the operation again
	ResolveSkip     Resolution = "skip"     // give up on the operation
)

// Operation is the durable record of a call that changes something. The call's row also holds its arguments and its
// result, which a thread shows as an action and a result.
type Operation struct {
	ID            string     `json:"id"`
	WorkspaceID   string     `json:"workspace_id"`
	AgentID       string     `json:"agent_id"`
	CallID        string     `json:"call_id" doc:"Id of the call, which is its action message"`
	ResultID      string     `json:"result_id,omitempty" doc:"Id of the result message"`
	ThreadID      string     `json:"thread_id"`
	RunID         string     `json:"run_id,omitempty"`
	Tool          string     `json:"tool"`
	ToolVersion   string     `json:"tool_version" doc:"Fingerprint of the tool at the decision"`
	Policy        string     `json:"policy" doc:"Hash of the policy at the decision"`
	Effect        Effect     `json:"effect"`
	State         State      `json:"state"`
	ArgsHash      string     `json:"args_hash"`
	Args          string     `json:"args,omitempty" doc:"Exact arguments; absent in lists"`
	Base          string     `json:"base,omitempty" doc:"State that the change is based on"`
	Code          Code       `json:"code,omitempty" doc:"Why it failed, is unknown or was denied"`
	Message       string     `json:"message,omitempty"`
	Attempts      int        `json:"attempts" doc:"Completed attempts to send or look up; retries of the tool count once"`
	NextAttemptAt *time.Time `json:"next_attempt_at,omitempty"`
	Deferred      bool       `json:"deferred,omitempty" doc:"The caller does not wait for the result"`
	TimeoutAt     *time.Time `json:"timeout_at,omitempty" doc:"Deadline for an outcome delivered from outside"`
	Resolution    Resolution `json:"resolution,omitempty"`
	ResolvedBy    string     `json:"resolved_by,omitempty"`
	Undo          *Undo      `json:"undo,omitempty" doc:"Call that undoes this one"`
	Spent         Amount     `json:"spent" doc:"Cost of the operation"`
	CreatedAt     time.Time  `json:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at"`

	Owner     string `json:"-"` // process that works on it; empty if none
	PrivateTo string `json:"-"` // the only user, besides owners, who sees the call; see Tool.Private

	// InFlightUntil is when the time limit of the last request of a verifiable operation ends. Until then the request
	// may still take effect, so a look-up that does not find the effect proves nothing. Nil if no request was sent.
	InFlightUntil *time.Time `json:"-"`
}

// IsAwaited reports whether the operation was sent and its outcome will be delivered from outside.
func (o Operation) IsAwaited() bool { return o.State == Dispatched && o.TimeoutAt != nil }

// Undo is the call that undoes an operation.
type Undo struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// UndoPlan says what an undo of an operation would do, or why it is not possible.
type UndoPlan struct {
	OperationID string    `json:"operation_id"`
	Tool        string    `json:"tool" doc:"Tool of the operation"`
	State       State     `json:"state" doc:"State of the operation"`
	At          time.Time `json:"at" doc:"When the operation began"`
	CanUndo     bool      `json:"can_undo"`
	Why         string    `json:"why,omitempty" doc:"Why there is nothing to undo, or what came of the undo"`
	UndoneBy    string    `json:"undone_by,omitempty" doc:"Operation that undoes it"`
	Undo        *Undo     `json:"undo,omitempty" doc:"Call that undoes it, without secrets"`
	Preview     string    `json:"preview,omitempty" doc:"What the undo would change, if its tool has a preview"`
}

// ResolveRequest resolves an operation of unknown outcome.
type ResolveRequest struct {
	Resolution Resolution `json:"resolution" enum:"happened,retry,skip" doc:"retry means it did not happen; run it again"`
	Attempts   *int       `json:"attempts,omitempty" minimum:"0" doc:"attempts of the operation as last read; STALE if they have changed. Default: no check"`
}
