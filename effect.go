package reeve

// Effect is what a tool's call does to the world, and so what may be done after a crash between sending and recording.
type Effect string

// The effect classes.
const (
	Read       Effect = "read"       // changes nothing: run it again
	Local      Effect = "local"      // lives in Reeve's own database: effect and record are one transaction
	Keyed      Effect = "keyed"      // the far side honours an idempotency key: send again with the same key
	Verifiable Effect = "verifiable" // the tool can look up what happened: ask it
	Unsafe     Effect = "unsafe"     // nobody can tell: a person must say
)

// Effects lists the effect classes.
func Effects() []Effect { return []Effect{Read, Local, Keyed, Verifiable, Unsafe} }

// Mutates tells whether calls of this class change something. An unknown class does.
func (e Effect) Mutates() bool { return e != Read }

// IsExternal tells whether the effect happens outside Reeve's own database.
func (e Effect) IsExternal() bool { return e != Read && e != Local }

// Tier is how much trust a tool needs.
type Tier string

// The tiers.
const (
	ReadOnly      Tier = "read_only"      // may run together with others
	SideEffecting Tier = "side_effecting" // changes things within the agent's reach
	Privileged    Tier = "privileged"     // a person approves each call, unless policy says otherwise
)

// Tiers lists the tiers.
func Tiers() []Tier { return []Tier{ReadOnly, SideEffecting, Privileged} }

// Risk is how bad a wrong call would be; high-risk tools offer a preview.
type Risk string

// The risks.
const (
	LowRisk    Risk = "low"
	MediumRisk Risk = "medium"
	HighRisk   Risk = "high"
)

// Risks lists the risks.
func Risks() []Risk { return []Risk{LowRisk, MediumRisk, HighRisk} }

// Outcome is what a verifiable tool says of an earlier attempt.
type Outcome string

// The outcomes.
const (
	Applied    Outcome = "applied"     // it happened; the result is given
	NotApplied Outcome = "not_applied" // it did not happen; it may be sent again
	CannotTell Outcome = "cannot_tell" // ask again later
)
