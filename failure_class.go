package reeve

// FailureClass says what kind of remedy a failed run needs.
type FailureClass string

// The failure classes.
const (
	AuthFailure       FailureClass = "auth"       // a credential is missing or no longer valid
	PermissionFailure FailureClass = "permission" // the automation lacks a permission
	NetworkFailure    FailureClass = "network"    // a later retry may succeed
	LogicFailure      FailureClass = "logic"      // the script has an error
	InternalFailure   FailureClass = "internal"   // Reeve has an error
)

// FailureClassOf returns the failure class of an error code.
func FailureClassOf(c Code) FailureClass {
	switch c {
	case "":
		return ""
	case Unauthenticated:
		return AuthFailure
	case Forbidden, Denied, OutOfScope, BudgetExceeded, ApprovalRequired, Stopped:
		return PermissionFailure
	// Here UnknownOutcome is an uncertain commit. A call of unknown outcome waits for a person and does not fail a run.
	case Unavailable, RateLimited, Timeout, UnknownOutcome:
		return NetworkFailure
	case Internal, Corrupt, Crashed, AssemblyFailed, ModelFailed:
		return InternalFailure
	default:
		return LogicFailure
	}
}
