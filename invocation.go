package reeve

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"reeve/internal/redact"
)

// Invocation is one attempt at a call, as its handler sees it: who asks, for what, with which settings. The gate makes
// it; nothing a handler does with it after its context ended has an effect.
type Invocation struct {
	Workspace string
	Agent     string
	User      string
	Session   string
	Thread    string
	Run       string
	CallID    string
	Operation string          // operation id; also the idempotency key for the far side
	Attempt   int             // counts from 1
	Args      json.RawMessage // validated, canonical JSON
	Config    json.RawMessage // the agent's settings for this tool, or null
	Base      string          // what a preview was based on, if the caller said

	Categories []string   // what the agent may touch; empty means nothing
	Ancestors  []Ancestor // of a call in a run: who led to it, the run itself last; of any other, the agent
	// of a check: the agent on whose behalf the call is made, whose settings these are; empty means the agent itself
	CheckFor string

	ForApprover bool // of a preview: it is shown to a person who decides on the call, and not to the caller

	// the settings for this tool of those on whose behalf the call is made: what they do not grant, the agent's own do
	// not either
	DelegatorConfigs []json.RawMessage

	// Redactor removes the workspace's secrets from texts; see [Invocation.RedactedSlice]. It may be nil.
	Redactor *redact.Redactor

	// Delegators is what [Invocation.OnBehalfOf] calls. It may be nil.
	Delegators func(self bool) []Delegator

	// Fits tells whether callers are shown all of a result; see [Page]. It may be nil.
	Fits func(result any) bool

	afterCommit func()

	mu      sync.Mutex
	closed  bool
	changed []Token
	undo    *Undo
	spent   Amount
}

type invocationKey struct{}

// WithInvocation attaches an invocation to a context, for typed handlers.
func WithInvocation(ctx context.Context, inv *Invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, inv)
}

// InvocationFrom gives the invocation a handler runs in. Outside one it gives an empty invocation.
func InvocationFrom(ctx context.Context) *Invocation {
	if inv, ok := ctx.Value(invocationKey{}).(*Invocation); ok {
		return inv
	}
	return &Invocation{}
}

// OnBehalfOf lists the agents whose rights limit what the call leaves behind to act later, such as a schedule. With
// self the calling agent is one of them.
func (i *Invocation) OnBehalfOf(self bool) []Delegator {
	if i.Delegators == nil {
		return nil
	}
	return i.Delegators(self)
}

// Emit notes that something changed. Subscriptions see it once the call has committed. What is no token (see
// [Token.Check]) fails a local call; of any other it is left out, and logged.
func (i *Invocation) Emit(class TokenClass, name string) {
	i.update(func() { i.changed = append(i.changed, Token{Class: class, Name: name}) })
}

// EmitAll is Emit for several tokens.
func (i *Invocation) EmitAll(tokens []Token) {
	i.update(func() { i.changed = append(i.changed, tokens...) })
}

// UndoWith names the call that takes this one back.
func (i *Invocation) UndoWith(tool string, args any) {
	b, err := json.Marshal(args)
	if err != nil {
		return
	}
	i.update(func() { i.undo = &Undo{Tool: tool, Args: b} })
}

// Settings reads an agent's settings for a tool into v. They were checked when the tool was attached.
func Settings(tool string, config json.RawMessage, v any) error {
	if len(config) == 0 {
		return nil
	}
	if err := json.Unmarshal(config, v); err != nil {
		return Errorf(Validation, "the agent's settings for %s are not valid: %s", tool,
			strings.TrimPrefix(err.Error(), "json: ")).
			Hintf("take the tool away from the agent and attach it again with them")
	}
	return nil
}

// Spend reports what the call cost beyond its time. Nothing costs less than nothing.
func (i *Invocation) Spend(tokens, micros int64) {
	i.update(func() { i.spent = i.spent.Plus(Amount{Tokens: max(0, tokens), Micros: max(0, micros)}) })
}

// AfterCommit has something done once what the call did is committed, if it is.
func (i *Invocation) AfterCommit(f func()) {
	i.update(func() { i.afterCommit = f })
}

// RunAfterCommit does what was to be done then.
func (i *Invocation) RunAfterCommit() {
	if i.afterCommit != nil {
		i.afterCommit()
	}
}

// Close ends the invocation and gives what the handler reported. Later reports are dropped.
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
