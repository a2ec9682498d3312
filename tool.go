package reeve

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"reeve/internal/canonjson"
)

// ToolKind says where a tool's handler comes from.
type ToolKind string

// The kinds of tool.
const (
	GoTool     ToolKind = "go"     // compiled in
	HTTPTool   ToolKind = "http"   // an endpoint described by its Spec
	ScriptTool ToolKind = "script" // computation in a sandbox, written down in its Spec
	MCPTool    ToolKind = "mcp"    // not in this build yet
)

// Retry is how a tool is tried again after an infrastructure error. Business errors are never tried again.
type Retry struct {
	Attempts int   `json:"attempts,omitempty" minimum:"1" maximum:"10" doc:"How often in all; 1 means never again"`
	DelayMS  int64 `json:"delay_ms,omitempty" minimum:"0" maximum:"60000" doc:"Before the second attempt; doubles each time"`
	MaxMS    int64 `json:"max_ms,omitempty" minimum:"0" maximum:"60000" doc:"The longest delay"`
}

// Tool is a row of the catalogue and, for one that is compiled in, its handler.
type Tool struct {
	ID           string          `json:"id" doc:"What callers say"`
	WorkspaceID  string          `json:"workspace_id,omitempty" doc:"Empty for tools that every workspace has"`
	Kind         ToolKind        `json:"kind"`
	Name         string          `json:"name" doc:"What people read"`
	Description  string          `json:"description" doc:"What a model reads"`
	Parameters   json.RawMessage `json:"parameters" doc:"JSON Schema of the arguments"`
	ConfigSchema json.RawMessage `json:"config_schema,omitempty" doc:"JSON Schema of the per-agent settings"`
	HandlerKey   string          `json:"handler_key"`
	Category     string          `json:"category"`
	Pack         string          `json:"pack,omitempty"`
	Tier         Tier            `json:"tier"`
	Effect       Effect          `json:"effect"`
	Capability   string          `json:"capability,omitempty" doc:"What an agent's profile must include; empty means nothing"`
	Risk         Risk            `json:"risk"`
	TimeoutMS    int64           `json:"timeout_ms"`
	Retry        Retry           `json:"retry"`
	Identity     []string        `json:"identity,omitempty" doc:"The arguments that say which thing is acted on; none means all"`
	Previews     bool            `json:"previews" doc:"True when previewOnly is understood"`
	Async        bool            `json:"async,omitempty" doc:"Its callers go on without waiting for it; its result comes later"`
	Cost         Amount          `json:"cost,omitzero" doc:"What one call may cost at the most, reserved before it runs"`
	Version      int             `json:"version"`
	Spec         json.RawMessage `json:"spec,omitempty" doc:"Of a user-defined tool: how it is reached"`
	Broken       string          `json:"broken,omitempty" doc:"Why it cannot be called"`
	CreatedAt    time.Time       `json:"created_at"`

	Handler Handler `json:"-"` // does the work
	// of a local tool: it begins something, and its callers wait for what that comes to, which is delivered later
	Awaits   bool          `json:"-"`
	Check    SecurityCheck `json:"-"` // security policy: refuses arguments before anything is run; may be nil
	Settings SecurityCheck `json:"-"` // refuses settings that name what there is not, when they are set; may be nil
	Preview  Previewer     `json:"-"` // says what would change; nil means no preview
	Verify   Verifier      `json:"-"` // of a verifiable tool: looks up what happened
	// of a category-bound tool: which categories a call touches; nil means not bound
	Categories Classifier `json:"-"`
	// of a tool with methods: which calls change nothing, so that scripts may make them anywhere; nil means none
	Reads ReadDetector `json:"-"`
	// the fields of its results that name files: only stored secrets are removed from them
	Names      []string `json:"-"`
	PassTokens bool     `json:"-"` // JSON Web Tokens in its results keep their signature, as confirm links need
}

// Handler does a tool's work. The value it returns is shown to the caller: a string as it is, anything else as JSON.
//
// An error of type *Error says what happened: InProgress (of an asynchronous tool, or one that awaits) that its outcome
// will be delivered from outside, under the operation's id, within RetryAfter if that is set, else within the tool's
// timeout; Unavailable means that nothing was sent and trying again may help, Timeout or UnknownOutcome that nobody can
// tell, anything else that the tool refused and had no effect. Context and network errors are understood by their type.
// Any other error is taken as the tool's own refusal.
type Handler func(ctx context.Context, inv *Invocation) (any, error)

// SecurityCheck refuses arguments that security policy forbids. It must not change anything.
type SecurityCheck func(ctx context.Context, inv *Invocation) error

// Previewer says what a call would change and what that is based on. It must not change anything.
type Previewer func(ctx context.Context, inv *Invocation) (Preview, error)

// Preview is the exact change a call would make.
type Preview struct {
	Change string // for people and models: a diff, a list
	Base   string // names the state it was computed from; a call with another base is refused as stale
}

// Verifier looks up what became of an earlier attempt. With Applied it also gives the result to record.
type Verifier func(ctx context.Context, inv *Invocation) (Outcome, any, error)

// Classifier gives the categories a call touches.
type Classifier func(ctx context.Context, inv *Invocation) ([]string, error)

// ReadDetector tells whether a call with these arguments changes nothing.
type ReadDetector func(args json.RawMessage) bool

var (
	toolIDPattern    = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,127}$`)
	slugPattern      = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,63}$`)
	reservedPrefixes = []string{"reeve_"}
)

// defaultTimeout is how long a tool may run when it does not say.
const defaultTimeout = 30 * time.Second

// WithDefaults fills what a tool left unsaid, always towards caution: no effect class means unsafe, and an unsafe tool
// with no tier is privileged.
func (t Tool) WithDefaults() Tool {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	set((*string)(&t.Kind), string(GoTool))
	set((*string)(&t.Effect), string(Unsafe))
	set(&t.Category, "general")
	set(&t.Name, t.ID)
	set(&t.HandlerKey, t.ID)
	tier, risk := SideEffecting, MediumRisk
	switch t.Effect {
	case Read:
		tier, risk = ReadOnly, LowRisk
	case Unsafe:
		tier = Privileged
	case Local, Keyed, Verifiable:
	}
	set((*string)(&t.Tier), string(tier))
	set((*string)(&t.Risk), string(risk))
	if t.TimeoutMS == 0 {
		t.TimeoutMS = defaultTimeout.Milliseconds()
	}
	if t.Retry.Attempts == 0 {
		t.Retry.Attempts = 1
	}
	if t.Version == 0 {
		t.Version = 1
	}
	t.Previews = t.Previews || t.Preview != nil
	return t
}

// Validate checks a tool's declaration. Its schemas are compiled by the catalogue, not here.
func (t Tool) Validate() error {
	var f []Field
	bad := func(path, expected, format string, args ...any) {
		f = append(f, Field{Path: path, Message: Errorf("", format, args...).Message, Expected: expected})
	}
	if !toolIDPattern.MatchString(t.ID) {
		bad("/id", toolIDPattern.String(), "%q is not a tool id", t.ID)
	}
	for _, p := range reservedPrefixes {
		if strings.HasPrefix(t.ID, p) {
			bad("/id", "another prefix", "ids that begin with %q are Reeve's own", p)
		}
	}
	if t.Description == "" {
		bad("/description", "a sentence or more", "a tool without a description cannot be chosen")
	}
	if !slugPattern.MatchString(t.Category) {
		bad("/category", slugPattern.String(), "%q is not a category", t.Category)
	}
	if t.Capability != "" && !slugPattern.MatchString(t.Capability) {
		bad("/capability", slugPattern.String(), "%q is not a capability", t.Capability)
	}
	if !slices.Contains(Effects(), t.Effect) {
		bad("/effect", "one of read, local, keyed, verifiable, unsafe", "%q is not an effect class", t.Effect)
	}
	if !slices.Contains(Tiers(), t.Tier) {
		bad("/tier", "one of read_only, side_effecting, privileged", "%q is not a tier", t.Tier)
	}
	if t.Effect.Mutates() && t.Tier == ReadOnly {
		bad("/tier", "side_effecting or privileged", "a tool that changes something cannot be read_only")
	}
	if t.Async && t.Effect == Local {
		bad("/async", "false", "a local tool's effect and record are one transaction; nothing of it can come later")
	}
	if t.Awaits && t.Effect != Local {
		bad("/effect", "local", "what a tool begins that awaits it is written with the call")
	}
	if !slices.Contains(Risks(), t.Risk) {
		bad("/risk", "one of low, medium, high", "%q is not a risk", t.Risk)
	}
	if t.TimeoutMS < 1 || t.TimeoutMS > 3_600_000 {
		bad("/timeout_ms", "1 to 3600000", "%d ms is not a timeout", t.TimeoutMS)
	}
	if t.Retry.Attempts < 1 || t.Retry.Attempts > 10 {
		bad("/retry/attempts", "1 to 10", "%d is not a number of attempts", t.Retry.Attempts)
	}
	if t.Retry.DelayMS < 0 || t.Retry.DelayMS > 60_000 || t.Retry.MaxMS < 0 || t.Retry.MaxMS > 60_000 {
		bad("/retry", "delays of 0 to 60000 ms", "a delay is out of range")
	}
	if c := t.Cost; c.Calls != 0 || c.Millis != 0 || c.Tokens < 0 || c.Micros < 0 {
		bad("/cost", "tokens and micros of 0 or more",
			"a call is one call, and takes the time it takes; only tokens and money can be declared")
	}
	if t.Kind == GoTool && t.Handler != nil && t.Effect == Verifiable && t.Verify == nil {
		bad("/effect", "a Verify function", "a verifiable tool must be able to look up what happened")
	}
	if len(f) == 0 {
		return nil
	}
	return &Error{Code: Validation, Message: "the tool " + t.ID + " is not declared well: " + f[0].Message, Fields: f}
}

// Timeout is how long a call may run.
func (t Tool) Timeout() time.Duration { return time.Duration(t.TimeoutMS) * time.Millisecond }

// Fingerprint is a hash of everything a caller or approver relies on. It changes when the contract does, and only then.
func (t Tool) Fingerprint() string {
	t.CreatedAt, t.Broken = time.Time{}, ""
	b, err := json.Marshal(t)
	if err != nil {
		return Hash([]byte(t.ID)) // a schema that is not JSON cannot be registered
	}
	if c, err := canonjson.Canonical(b); err == nil {
		b = c
	}
	return Hash(b)[:16]
}
