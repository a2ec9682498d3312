package reeve

// Effect is the effect class of a tool. It decides what happens after a crash between sending and recording.
type Effect string

// The effect classes.
const (
	Read       Effect = "read"       // changes nothing; runs again
	Local      Effect = "local"      // changes Reeve's database; effect and record are one transaction
	Keyed      Effect = "keyed"      // the remote side honours an idempotency key; sent again with the same key
	Verifiable Effect = "verifiable" // the tool can look up whether the effect happened
	Unsafe     Effect = "unsafe"     // the outcome stays unknown until a person resolves it
)

// Effects lists the effect classes.
func Effects() []Effect { return []Effect{Read, Local, Keyed, Verifiable, Unsafe} }

// Mutates reports whether calls of this class change something. It is true for an unknown class.
func (e Effect) Mutates() bool { return e != Read }

// IsExternal reports whether the effect happens outside Reeve's database.
func (e Effect) IsExternal() bool { return e != Read && e != Local }

// Tier is how much trust a tool needs.
type Tier string

// The tiers.
const (
	ReadOnly      Tier = "read_only"      // may run in parallel
	SideEffecting Tier = "side_effecting" // changes things that the agent may access
	Privileged    Tier = "privileged"     // needs a person's approval, unless policy says otherwise
)

// Tiers lists the tiers.
func Tiers() []Tier { return []Tier{ReadOnly, SideEffecting, Privileged} }

// Risk is the damage that a wrong call could do.
type Risk string

// The risks.
const (
	LowRisk    Risk = "low"
	MediumRisk Risk = "medium"
	HighRisk   Risk = "high"
)

// Risks lists the risks.
func Risks() []Risk { return []Risk{LowRisk, MediumRisk, HighRisk} }

// Outcome is the finding of a verifiable tool about an earlier attempt.
type Outcome string

// The outcomes.
const (
	Applied    Outcome = "applied"     // the effect happened
	NotApplied Outcome = "not_applied" // the effect did not happen; the call may be sent again
	CannotTell Outcome = "cannot_tell" // ask again later
)
