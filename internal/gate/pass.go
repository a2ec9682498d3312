package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

// pass is one call on its way through the gate.
type pass struct {
	g        *Gate
	call     reeve.Call
	id       string // of the call; see name
	op       string // operation id
	undoes   string // the operation that it takes back
	foreign  bool   // the operation id is another workspace's
	chose    bool   // the caller chose the operation id, so it may have been used before
	guarded  bool   // its run must not have ended when the call is written; see standing
	anothers bool   // the operation id was used on behalf of somebody else
	nothing  bool   // it was refused, and is no operation; the same may be asked for again
	alone    bool   // its tool is not asked anything

	view     *agentView
	behalf   []behalf // on whose behalf the call is made, the first one first
	given    []reeve.Delegator
	session  string          // see sessionOf
	home     string          // the thread that the run's own messages are in
	entry    *entry          // the tool
	args     json.RawMessage // canonical
	argsHash string
	config   json.RawMessage // the agent's settings for the tool
	preview  *reeve.Preview
	decides  bool              // preview was made for a person who decides on the call
	existing *reeve.Operation  // what the operation id was used for before
	resumed  *reeve.Operation  // the operation this pass takes up again
	approval *reeve.Approval   // the approval it was resumed by
	proposal *reeve.Proposal   // the proposal it applies
	late     string            // an operation in the way of this one, which waits for an approval whose time is over
	waits    string            // why a person must be asked; empty means not
	proposes bool              // it becomes an item of a change set
	began    *reeve.Invocation // the attempt that went well
	trail    []reeve.Step
	info     json.RawMessage // the request; see ready
	policy   string          // hash of the policy; see ready

	held    string        // the id under which amounts are reserved; empty means none are
	allowed time.Duration // what budgets leave of time; 0 means that none limits it
	spent   reeve.Amount  // by the attempts that were made
	short   bool          // it waits because a budget ran out
	earlier int           // how often it was sent before this pass
	doubt   bool          // whether one of those may have had its effect
	lapses  int64         // of the lease, when it began
	brought bool          // its outcome is brought from outside
}

// begin finds out who calls, and prepares the pass. It fails only when there is nobody to record the call for, or nothing to judge it by.
func (g *Gate) begin(ctx context.Context, c reeve.Call) (*pass, error) {
	v, err := g.views.agent(ctx, g, c.Workspace, c.Agent)
	if err == nil && (v.runsFirst(c) || v.damaged() != nil) {
		v, err = g.views.current(ctx, g, v, c.Agent)
	}
	if err == nil {
		err = v.damaged()
	}
	if err != nil {
		return nil, err
	}
	c.Agent = v.agent.ID
	if c.Session == "" && c.Run == "" {
		c.Session = reeve.DefaultSession(c.User)
	}
	if err := checkName("session", c.Session); err != nil {
		return nil, err
	}
	if err := checkName("run", c.Run); err != nil {
		return nil, err
	}
	p := &pass{g: g, call: c, id: g.DB.NewID(reeve.PrefixMessage), op: c.Operation, chose: c.Operation != "", view: v, session: sessionOf(c), lapses: g.lease.lapses.Load()}
	if err := p.trace(ctx); err != nil {
		return nil, err
	}
	if !p.chose {
		p.op = g.DB.NewID(reeve.PrefixOperation)
	}
	return p, nil
}

// name gives the call its id in the transaction that writes it. A thread is read in the order of ids, so they must be made in the order
// in which calls are written, not in that in which they came in.
func (p *pass) name(tx *store.Tx) {
	if p.resumed == nil {
		p.id = tx.NewID(reeve.PrefixMessage)
	}
}

// checkName refuses what could not be part of a thread's name.
func checkName(what, s string) error {
	if len(s) > 128 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return &reeve.Error{Code: reeve.Validation, Message: "the " + what + " is not a name",
			Fields: []reeve.Field{{Path: "/" + what, Message: "too long, or holds control characters", Expected: "at most 128 printable characters"}}}
	}
	return nil
}

func (p *pass) tool() *reeve.Tool { return &p.entry.tool }

// thread is where the call's messages go: a run's own thread, unless the run is a turn of a session.
func (p *pass) thread() string {
	if p.home != "" {
		return p.home
	}
	return p.session
}

// sessionOf is what session-scoped tools keep their things under: one agent's, in one session or run.
func sessionOf(c reeve.Call) string {
	if c.Run != "" && c.Session == "" {
		return reeve.RunThread(c.Agent, c.Run)
	}
	return reeve.SessionThread(c.Agent, c.Session)
}

// base is what the change that is judged rests on, where its tool or the caller can say.
func (p *pass) base() string {
	switch {
	case p.call.Base != "":
		return p.call.Base
	case p.preview != nil && p.preview.Base != "":
		return p.preview.Base
	case p.resumed != nil:
		return p.resumed.Base
	}
	return ""
}

// invocation is one attempt, as the handler sees it.
func (p *pass) invocation(attempt int) *reeve.Invocation {
	var lent []json.RawMessage
	for _, b := range p.lenders() {
		lent = append(lent, b.attached[p.tool().ID])
	}
	return &reeve.Invocation{Workspace: p.call.Workspace, Agent: p.call.Agent, User: p.call.User, Session: p.session, Thread: p.thread(),
		Run: p.call.Run, CallID: p.id, Operation: p.op, Attempt: attempt, Args: p.args, Config: p.config, Base: p.base(),
		Categories: p.categories(), Ancestors: p.ancestors(), Lent: lent, Redactor: p.redactor(), Fits: p.fits,
		Delegators: p.delegators}
}

// operation is the operation that the pass leaves in a state. The empty state is that of a call that is none, which has no operation id.
func (p *pass) operation(s reeve.State) reeve.Operation {
	o := reeve.Operation{WorkspaceID: p.call.Workspace, AgentID: p.call.Agent, CallID: p.id, ThreadID: p.thread(), RunID: p.call.Run,
		Tool: p.call.Tool, State: s, ArgsHash: p.argsHash, Base: p.base()}
	if p.entry != nil {
		o.Tool, o.ToolVersion, o.Effect = p.tool().ID, p.entry.fingerprint, p.tool().Effect
	}
	if s != "" {
		o.ID, o.Policy = p.op, p.policyHash()
	}
	return o
}

// policyHash names the policy that judges this agent's calls of this tool: an approval given under it holds under no other.
func (p *pass) policyHash() string {
	if p.policy != "" {
		return p.policy
	}
	own := len(p.lenders()) == 0
	if last, ok := p.view.hashed.Load(p.tool().ID); ok && own && last.(policy).of(p) {
		p.policy = last.(policy).hash
		return p.policy
	}
	answer, _ := p.answer()
	b, _ := json.Marshal([]any{answer, p.view.agent.Kind, p.categories(), p.view.profile.Capabilities, string(p.config), p.call.Tools})
	p.policy = reeve.Hash(b)[:16]
	if own {
		p.view.hashed.Store(p.tool().ID, policy{p.tool().Tier, p.config, slices.Clone(p.call.Tools), p.policy})
	}
	return p.policy
}

// policy is a hash of one, and what it was made of beside what is known of the agent.
type policy struct {
	tier   reeve.Tier
	config json.RawMessage
	tools  []string
	hash   string
}

func (y policy) of(p *pass) bool {
	return y.tier == p.tool().Tier && bytes.Equal(y.config, p.config) && slices.Equal(y.tools, p.call.Tools) && (y.tools == nil) == (p.call.Tools == nil)
}

// ready computes what the row of a judged call needs ahead of the transaction that writes it: on SQLite everybody waits for its turn.
func (p *pass) ready() {
	p.info = p.request()
	p.policyHash()
}

// request says who asked for the call, how and why, and what each step decided.
func (p *pass) request() json.RawMessage {
	info := reeve.ActionInfo{Type: "tool_call", Tool: p.call.Tool, ArgsHash: p.argsHash, Categories: p.categories(), Via: p.call.Via,
		User: p.call.User, Session: p.call.Session, Reason: p.call.Reason, Ref: p.call.Ref, Item: p.call.Item, Attempt: p.call.Attempt,
		Preview: p.call.PreviewOnly, Tools: p.call.Tools, Base: p.call.Base, Undoes: p.undoes, Trail: p.trail}
	if p.entry != nil {
		info.ToolVersion = p.entry.fingerprint
	}
	return mustJSON(info)
}

// operationID is empty for calls that change nothing.
func (p *pass) operationID() string {
	if p.resumed != nil || (p.entry != nil && p.leavesOperation() && !p.nothing) {
		return p.op
	}
	return ""
}

// insert writes the row of a call, under what it was judged by.
func (p *pass) insert(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	args, request := p.shownArgs(), p.info
	if p.args == nil { // they could not be read
		args = p.g.readable(p.redact(string(p.call.Args)))
	}
	if request == nil {
		request = p.request()
	}
	if err := tx.InsertCall(ctx, store.Call{Operation: op, Args: args, Request: request, Result: result}, p.judged()); err != nil {
		return err
	}
	return p.holdRun(ctx, tx)
}

// judged is what the call was judged by.
func (p *pass) judged() store.Judged {
	j := store.Judged{Revision: p.view.ws.Revision}
	if p.guarded && p.call.Via.Brain() {
		j.Run, j.Automation = p.call.Run, p.call.Agent
	}
	return j
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("gate: " + err.Error()) // our own types marshal
	}
	return b
}
