package reeve

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"reeve/internal/redact"
)

// Invocation is one attempt at a call, as passed to the tool's handler. The gate creates and closes it. Reports that a
// handler makes after the gate closed it are dropped.
type Invocation struct {
	Workspace string
	Agent     string
	User      string
	Session   string
	Thread    string
	Run       string
	CallID    string
	Operation string          // operation id; also the idempotency key to send
	Attempt   int             // from 1
	Args      json.RawMessage // validated, canonical JSON
	Config    json.RawMessage // the agent's settings for the tool, or null
	Base      string          // base of an earlier preview, if the caller passed one

	Categories []string   // categories that the agent may access; empty means none
	Ancestors  []Ancestor // the runs that led to the call, its own run last; outside a run only the agent

	// CheckFor is set while Tool.Check runs with the settings of another agent that the call is made for. Empty means
	// the calling agent.
	CheckFor string

	ForApprover bool // the preview is shown to the person who decides on the call, not to the caller

	// DelegatorConfigs has the settings for this tool of all agents that the call is made for. The call may do only
	// what each of them permits too.
	DelegatorConfigs []json.RawMessage

	// Redactor removes the workspace's secrets from texts; see [Invocation.RedactedSlice]. It may be nil.
	Redactor *redact.Redactor

	// Delegators implements [Invocation.OnBehalfOf]. It may be nil.
	Delegators func(self bool) []Delegator

	// FitsOutput reports whether a result can be returned without truncation; see [Page]. It may be nil.
	FitsOutput func(result any) bool

	afterCommit func()

	mu      sync.Mutex
	closed  bool
	changed []Token
	undo    *Undo
	spent   Amount
	charged Amount

	untrusted bool
}

type invocationKey struct{}

// WithInvocation returns a context that carries inv, for typed handlers.
func WithInvocation(ctx context.Context, inv *Invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, inv)
}

// InvocationFrom returns the invocation in ctx, or an empty one.
func InvocationFrom(ctx context.Context) *Invocation {
	if inv, ok := ctx.Value(invocationKey{}).(*Invocation); ok {
		return inv
	}
	return &Invocation{}
}

// OnBehalfOf returns the agents whose rights must limit what the call creates to act later, such as a schedule. If self
// is true, the calling agent is included.
func (i *Invocation) OnBehalfOf(self bool) []Delegator {
	if i.Delegators == nil {
		return nil
	}
	return i.Delegators(self)
}

// HasLimitedTools reports whether the call's turn was limited to some of the agent's tools. What the call creates to
// act later must then have the same limit; see [Invocation.OnBehalfOf].
func (i *Invocation) HasLimitedTools() bool {
	n := len(i.Ancestors)
	return n > 0 && i.Ancestors[n-1].Tools != nil
}

// Emit reports a change. Subscriptions receive the token once the call has committed. An invalid token (see
// [Token.Check]) fails a local call. In other calls it is logged and dropped.
func (i *Invocation) Emit(class TokenClass, name string) {
	i.update(func() { i.changed = append(i.changed, Token{Class: class, Name: name}) })
}

// EmitAll is Emit for several tokens.
func (i *Invocation) EmitAll(tokens []Token) {
	i.update(func() { i.changed = append(i.changed, tokens...) })
}

// UndoWith sets the call that undoes this one.
func (i *Invocation) UndoWith(tool string, args any) {
	b, err := json.Marshal(args)
	if err != nil {
		return
	}
	i.update(func() { i.undo = &Undo{Tool: tool, Args: b} })
}

// DecodeSettings decodes an agent's settings for a tool into v. They were validated when the tool was attached.
func DecodeSettings(tool string, config json.RawMessage, v any) error {
	if len(config) == 0 {
		return nil
	}
	if err := json.Unmarshal(config, v); err != nil {
		return Errorf(Validation, "the agent's settings for %s are not valid: %s", tool,
			strings.TrimPrefix(err.Error(), "json: ")).
			Hintf("detach the tool from the agent and attach it again with valid settings")
	}
	return nil
}

// Spend adds to the cost of the call. Negative values count as zero. The gate measures time itself.
func (i *Invocation) Spend(tokens, micros int64) {
	i.update(func() { i.spent = i.spent.Plus(Amount{Tokens: max(0, tokens), Micros: max(0, micros)}) })
}

// SpendCharged is Spend for a cost that the budgets were charged already, as the gate does when a tool asks a model.
// The call shows it and is not charged again.
func (i *Invocation) SpendCharged(a Amount) {
	a.Calls, a.Millis = 0, 0
	i.update(func() { i.spent, i.charged = i.spent.Plus(a), i.charged.Plus(a) })
}

// Charged returns the part of the cost that the budgets were charged already.
func (i *Invocation) Charged() Amount {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.charged
}

// MarkUntrusted reports that the result has text from outside. What the run writes down after that may repeat the text.
func (i *Invocation) MarkUntrusted() { i.update(func() { i.untrusted = true }) }

// IsUntrusted reports whether the handler called [Invocation.MarkUntrusted].
func (i *Invocation) IsUntrusted() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.untrusted
}

// AfterCommit sets a function that runs after the call's transaction has committed.
func (i *Invocation) AfterCommit(f func()) {
	i.update(func() { i.afterCommit = f })
}

// RunAfterCommit runs the function set by [Invocation.AfterCommit], if any.
func (i *Invocation) RunAfterCommit() {
	if i.afterCommit != nil {
		i.afterCommit()
	}
}

// Close ends the invocation and returns what the handler reported. Later reports are dropped.
func (i *Invocation) Close() (changed []Token, undo *Undo, spent Amount) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	return i.changed, i.undo, i.spent
}

func (i *Invocation) update(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.closed {
		f()
	}
}
