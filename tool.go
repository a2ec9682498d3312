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

// ToolKind says how a tool is implemented.
type ToolKind string

// The kinds of tool.
const (
	GoTool     ToolKind = "go"     // compiled in
	HTTPTool   ToolKind = "http"   // an HTTP endpoint described by Spec
	ScriptTool ToolKind = "script" // a sandboxed script in Spec
	MCPTool    ToolKind = "mcp"    // not in this build yet
)

// Retry is the retry policy of a tool for infrastructure errors. Other errors are never retried.
type Retry struct {
	Attempts int   `json:"attempts,omitempty" minimum:"1" maximum:"10" doc:"Attempts in total; 1 means no retry"`
	DelayMS  int64 `json:"delay_ms,omitempty" minimum:"0" maximum:"60000" doc:"Delay before the first retry; doubles each time"`
	MaxMS    int64 `json:"max_ms,omitempty" minimum:"0" maximum:"60000" doc:"Maximum delay"`
}

// Tool is an entry of the tool catalogue and, if the tool is compiled in, its handler.
type Tool struct {
	ID           string          `json:"id" doc:"Name that callers use"`
	WorkspaceID  string          `json:"workspace_id,omitempty" doc:"Empty for tools of all workspaces"`
	Kind         ToolKind        `json:"kind"`
	Name         string          `json:"name" doc:"Name shown to people"`
	Description  string          `json:"description" doc:"Description for models"`
	Parameters   json.RawMessage `json:"parameters" doc:"JSON Schema of the arguments"`
	ConfigSchema json.RawMessage `json:"config_schema,omitempty" doc:"JSON Schema of the settings per agent"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" doc:"JSON Schema of the result"`
	HandlerKey   string          `json:"handler_key"`
	Category     string          `json:"category"`
	Pack         string          `json:"pack,omitempty"`
	Tier         Tier            `json:"tier"`
	Effect       Effect          `json:"effect"`
	Capability   string          `json:"capability,omitempty" doc:"Capability that the agent's profile must have"`
	Risk         Risk            `json:"risk"`
	TimeoutMS    int64           `json:"timeout_ms"`
	Retry        Retry           `json:"retry"`
	Identity     []string        `json:"identity,omitempty" doc:"Arguments that identify the target; empty means all"`
	Previews     bool            `json:"previews" doc:"True if the tool supports previews"`
	Async        bool            `json:"async,omitempty" doc:"Callers do not wait; the result is delivered later"`
	Cost         Amount          `json:"cost,omitzero" doc:"Maximum cost of a call, reserved before it runs"`
	Version      int             `json:"version"`
	Spec         json.RawMessage `json:"spec,omitempty" doc:"User-defined tools only: implementation"`
	Broken       string          `json:"broken,omitempty" doc:"Why the tool cannot be called"`
	CreatedAt    time.Time       `json:"created_at"`

	outputFromType bool // the schema describes the Go type of the results, so they need no check

	Handler       Handler       `json:"-"` // executes a call
	Check         SecurityCheck `json:"-"` // rejects arguments by security policy, before the handler runs; may be nil
	CheckSettings SecurityCheck `json:"-"` // rejects settings that refer to missing objects, when they are set; may be nil
	Preview       Previewer     `json:"-"` // computes what would change; nil means no preview
	Verify        Verifier      `json:"-"` // looks up the outcome of an attempt; verifiable tools only

	// Undoable is set for a tool whose calls record how to undo them; see [Invocation.UndoWith].
	Undoable bool `json:"-"`
	// AwaitsOutcome is set for a local tool that starts work whose outcome is delivered later. Its callers wait for it.
	AwaitsOutcome bool `json:"-"`
	// Categories returns the categories that a call accesses. Nil means that the tool is not bound to categories.
	Categories Classifier `json:"-"`
	// Private is set for a tool that works on private data of the user for whom it is called. Such a call, its
	// approval, its proposal and its output are visible only to this user and to owners, and only they decide on it.
	Private bool `json:"-"`
	// IsRead reports whether a call changes nothing although the tool can change something. Scripts may make such calls
	// outside of items. Nil means that every call changes something.
	IsRead ReadDetector `json:"-"`
	// FileNameFields lists the fields of results that have file names. Only stored secrets are redacted in them.
	FileNameFields []string `json:"-"`
	// KeepTokenSignatures keeps the signature of JSON Web Tokens in results, which confirmation links need.
	KeepTokenSignatures bool `json:"-"`
}

// Handler executes a call of a tool. The caller receives the returned value, a string as is and anything else as JSON.
//
// The code of a returned *Error says what happened:
//
//   - InProgress: the outcome will be delivered from outside under the operation's id, within RetryAfter or, if that is
//     not set, within the tool's timeout. Only for asynchronous tools and tools with Awaits.
//   - Unavailable: nothing was sent, and a retry may help.
//   - Timeout, UnknownOutcome: the effect may have happened.
//   - Any other code: the tool refused, without effect.
//
// Context and network errors are classified by their type. Any other error means that the tool refused.
type Handler func(ctx context.Context, inv *Invocation) (any, error)

// SecurityCheck returns an error if security policy forbids the arguments. It must not change anything.
type SecurityCheck func(ctx context.Context, inv *Invocation) error

// Previewer returns what a call would change. It must not change anything.
type Previewer func(ctx context.Context, inv *Invocation) (Preview, error)

// Preview is the exact change a call would make.
type Preview struct {
	Change string // text for people and models, such as a diff
	Base   string // identifies the state it is based on; a call with another base is refused as stale
}

// Verifier looks up the outcome of an earlier attempt. With Applied it also returns the result to record.
type Verifier func(ctx context.Context, inv *Invocation) (Outcome, any, error)

// Classifier returns the categories that a call accesses.
type Classifier func(ctx context.Context, inv *Invocation) ([]string, error)

// ReadDetector reports whether a call with these arguments changes nothing.
type ReadDetector func(args json.RawMessage) bool

var (
	toolIDPattern    = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,127}$`)
	slugPattern      = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,63}$`)
	reservedPrefixes = []string{"reeve_"}
)

// defaultTimeout is the time limit of a tool that declares none.
const defaultTimeout = 30 * time.Second

// WithDefaults returns the tool with unset fields set to cautious defaults. The default effect is unsafe, and the
// default tier of an unsafe tool is privileged.
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

// Validate checks a tool's declaration, except for its schemas, which the catalogue compiles.
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
			bad("/id", "another prefix", "the prefix %q is reserved", p)
		}
	}
	if t.Description == "" {
		bad("/description", "a sentence or more", "the description is empty; models need it to choose the tool")
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
		bad("/async", "false", "a local tool cannot be asynchronous: its effect and record are one transaction")
	}
	if t.AwaitsOutcome && t.Effect != Local {
		bad("/effect", "local", "a tool with Awaits must be local: the work it starts is written with the call")
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
			"calls and time cannot be declared as cost; declare tokens and micros only")
	}
	if t.Kind == GoTool && t.Handler != nil && t.Effect == Verifiable && t.Verify == nil {
		bad("/effect", "a Verify function", "a verifiable tool needs a Verify function to look up outcomes")
	}
	if len(f) == 0 {
		return nil
	}
	return &Error{Code: Validation, Message: "the declaration of tool " + t.ID + " is not valid: " + f[0].Message,
		Fields: f}
}

// ChecksOutput reports whether results must be checked against the tool's output schema. A schema that [NewTool] infers
// from the Go type of the results needs no check.
func (t Tool) ChecksOutput() bool { return len(t.OutputSchema) > 0 && !t.outputFromType }

// ReturnsOutsideText reports whether all results of the tool are text from outside: web pages, mails, and answers of
// endpoints that users defined.
func (t Tool) ReturnsOutsideText() bool {
	return t.Pack == "web" || t.Pack == "mail" || t.Kind == HTTPTool || t.Kind == MCPTool
}

// Timeout returns the time limit of a call.
func (t Tool) Timeout() time.Duration { return time.Duration(t.TimeoutMS) * time.Millisecond }

// Fingerprint returns a hash of the tool's contract: everything that a caller or an approver relies on.
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
