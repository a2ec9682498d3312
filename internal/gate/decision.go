package gate

import (
	"encoding/json"

	"reeve"
)

// Decision is what the gate decided on a call, and what it was decided by. Nothing changes it once decide has returned
// it.
type Decision struct {
	*request
	entry    *entry          // the tool; nil if the agent has no such tool
	args     json.RawMessage // canonical; nil if they could not be read
	argsHash string
	config   json.RawMessage // the agent's settings for the tool
	policy   string          // hash of the policy; see policyHash
	steps    []reeve.Step    // what each step of the gate said

	refusal    error            // why the call is refused; nil means that it is not
	existing   *reeve.Operation // an earlier operation with the same id, whose result counts
	othersID   bool             // that operation was made on behalf of another user
	expired    string           // an operation in the way of this call, whose approval has expired
	waits      string           // why a person must be asked; empty means that nobody is asked
	overBudget bool             // the call waits because a budget ran out
	proposes   bool             // the call becomes an item of a change set
	inOpenRun  bool             // the run of the call must still be open when the call is written

	preview   *reeve.Preview // what the call would change, where that was asked for or needed
	forPerson bool           // the preview was made for a person who decides on the call
}

func (d *Decision) tool() *reeve.Tool { return &d.entry.tool }

// base returns the version that the change is based on, if the tool or the caller can tell.
func (d *Decision) base() string {
	switch {
	case d.call.Base != "":
		return d.call.Base
	case d.preview != nil && d.preview.Base != "":
		return d.preview.Base
	case d.resumed != nil:
		return d.resumed.Base
	}
	return ""
}

// leavesOperation reports whether the call has an operation: it changes something, or goes on after its caller was
// answered.
func (d *Decision) leavesOperation() bool {
	return !d.call.PreviewOnly && (d.tool().Effect.Mutates() || d.tool().Async)
}

// runsAsRead reports whether the call runs now and leaves no operation.
func (d *Decision) runsAsRead() bool {
	return d.refusal == nil && d.expired == "" && d.existing == nil && !d.proposes && d.waits == "" &&
		d.resumed == nil &&
		!d.call.PreviewOnly && d.tool().Effect == reeve.Read && !d.tool().Async
}

// invocation returns the call as a tool sees it. Attempt 0 stands for a question to the tool, which is not an attempt.
func (d *Decision) invocation(callID string, attempt int) *reeve.Invocation {
	var lent []json.RawMessage
	for _, p := range d.principals() {
		lent = append(lent, p.attached[d.tool().ID])
	}
	return &reeve.Invocation{Workspace: d.call.Workspace, Agent: d.call.Agent, User: d.call.User, Session: d.session,
		Thread: d.thread, Run: d.call.Run, CallID: callID, Operation: d.operation, Attempt: attempt, Args: d.args,
		Config: d.config, Base: d.base(), Categories: d.categories(), Ancestors: d.ancestors(), DelegatorConfigs: lent,
		Redactor: d.redactor(), Fits: d.fits, Delegators: d.delegators}
}

// operationIn returns the operation of the call in a state. The empty state stands for a call that leaves no operation;
// its row has no operation id.
func (d *Decision) operationIn(s reeve.State, callID string) reeve.Operation {
	o := reeve.Operation{WorkspaceID: d.call.Workspace, AgentID: d.call.Agent, CallID: callID, ThreadID: d.thread,
		RunID: d.call.Run, Tool: d.call.Tool, State: s, ArgsHash: d.argsHash, Base: d.base()}
	if d.entry != nil {
		o.Tool, o.ToolVersion, o.Effect = d.tool().ID, d.entry.fingerprint, d.tool().Effect
	}
	if s != "" {
		o.ID, o.Policy = d.operation, d.policy
	}
	return o
}

// policyHash identifies the policy that decides on this agent's calls of this tool. An approval given under one policy
// does not hold under another.
func (d *Decision) policyHash() string {
	answer, _ := d.policyAnswer(d.tool())
	b, _ := json.Marshal([]any{answer, d.view.agent.Kind, d.categories(), d.view.profile.Capabilities, string(d.config),
		d.call.Tools})
	return reeve.Hash(b)[:16]
}

// settingsHash identifies the agent's settings for the tool.
func (d *Decision) settingsHash() string { return reeve.Hash(d.config)[:16] }

// requestInfo returns the stored form of the request: who asked for the call, how and why, and what each step decided.
func (d *Decision) requestInfo() json.RawMessage {
	info := reeve.ActionInfo{Type: "tool_call", Tool: d.call.Tool, ArgsHash: d.argsHash, Categories: d.categories(),
		Via: d.call.Via, User: d.call.User, Session: d.call.Session, Reason: d.call.Reason, Ref: d.call.Ref,
		Item:    d.call.Item,
		Attempt: d.call.Attempt, Preview: d.call.PreviewOnly, Tools: d.call.Tools, Base: d.call.Base, Undoes: d.undoes,
		Trail: d.steps}
	if d.entry != nil {
		info.ToolVersion = d.entry.fingerprint
	}
	return mustJSON(info)
}

// refusedBy returns the step that refused the call. The zero Step means that all let it pass.
func (d *Decision) refusedBy() reeve.Step {
	if last := len(d.steps) - 1; last >= 0 && d.steps[last].Verdict == reeve.Refused {
		return d.steps[last]
	}
	return reeve.Step{}
}

// announce reports that what the call changed is committed.
func (d *Decision) announce() {
	if d.view.workspace.watched && d.g.OnChange != nil {
		d.g.OnChange()
	}
}

// brief returns a text from outside in the form that records of steps hold: without secrets, and cut.
func (d *Decision) brief(text string) string { return clip(d.redact(text), 1000) }

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("gate: " + err.Error()) // our own types marshal
	}
	return b
}
