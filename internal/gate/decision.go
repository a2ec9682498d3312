package gate

import (
	"context"
	"encoding/json"

	"reeve"
)

// Decision is the result of the gate's steps on a call, with the inputs that led to it. It does not change after decide
// has returned it.
type Decision struct {
	*request
	entry                *entry          // the tool; nil if the agent has no such tool
	args                 json.RawMessage // canonical; nil if they are not valid JSON
	argsHash             string
	config               json.RawMessage // the agent's settings for the tool
	policyHashAtDecision string          // see policyHash
	steps                []reeve.Step    // the result of each step that ran

	refusal             error            // why the call is refused; nil if it passes
	existing            *reeve.Operation // the earlier operation with the same id; its result is returned
	existingOfOtherUser bool             // the existing operation belongs to another user
	expiredOperation    string           // a parked operation that blocks this call and whose approval has expired
	waitReason          string           // why a person must approve the call; empty if no approval is needed
	overBudget          bool             // the call waits because a budget ran out
	isProposal          bool             // the call becomes an item of a change set
	requiresOpenRun     bool             // the run of the call must still be open when the call is written

	preview            *reeve.Preview // what the call would change; nil if no preview was needed
	previewIsForPerson bool           // the preview was made for a person who decides on the call
}

func (d *Decision) tool() *reeve.Tool { return &d.entry.tool }

// baseVersion returns the version that the change is based on. It is empty if neither the caller nor the tool names
// one.
func (d *Decision) baseVersion() string {
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

// leavesOperation reports whether the call has an operation. It has one if it changes something or runs asynchronously.
func (d *Decision) leavesOperation() bool {
	return !d.call.PreviewOnly && (d.tool().Effect.Mutates() || d.tool().Async)
}

// runsAsRead reports whether the call runs now and leaves no operation.
func (d *Decision) runsAsRead() bool {
	return d.refusal == nil && d.expiredOperation == "" && d.existing == nil && !d.isProposal && d.waitReason == "" &&
		d.resumed == nil &&
		!d.call.PreviewOnly && d.tool().Effect == reeve.Read && !d.tool().Async
}

// invocation returns the call as the tool's functions see it. Attempt is 0 for the tool's checks and its preview, which
// are not attempts.
func (d *Decision) invocation(callID string, attempt int) *reeve.Invocation {
	var lent []json.RawMessage
	for _, p := range d.principals() {
		lent = append(lent, p.attached[d.tool().ID])
	}
	return &reeve.Invocation{Workspace: d.call.Workspace, Agent: d.call.Agent, User: d.call.User, Session: d.session,
		Thread: d.thread, Run: d.call.Run, CallID: callID, Operation: d.operation, Attempt: attempt, Args: d.args,
		Config: d.config, Base: d.baseVersion(), Categories: d.allowedCategories(), Ancestors: d.ancestors(),
		DelegatorConfigs: lent, Redactor: d.redactor(), FitsOutput: d.fitsOutputCap, Delegators: d.delegators}
}

// operationIn returns the operation of the call in a state. With an empty state the row gets no operation id, which is
// the form of a call that leaves no operation.
func (d *Decision) operationIn(s reeve.State, callID string) reeve.Operation {
	o := reeve.Operation{WorkspaceID: d.call.Workspace, AgentID: d.call.Agent, CallID: callID, ThreadID: d.thread,
		RunID: d.call.Run, Tool: d.call.Tool, State: s, ArgsHash: d.argsHash, Base: d.baseVersion(),
		PrivateTo: d.privateTo()}
	if d.entry != nil {
		o.Tool, o.ToolVersion, o.Effect = d.tool().ID, d.entry.fingerprint, d.tool().Effect
	}
	if s != "" {
		o.ID, o.Policy = d.operation, d.policyHashAtDecision
	}
	return o
}

// privateTo returns the user to whom the call is private. It looks the tool up by its name, because a refused call may
// have no entry.
func (d *Decision) privateTo() string {
	if e, ok := d.view.workspace.tools[d.call.Tool]; ok && e.tool.Private {
		return d.call.User
	}
	return ""
}

// policyHash returns a hash of everything in the agent's policy and settings that affects calls of this tool. An
// approval is valid only as long as this hash stays the same.
func (d *Decision) policyHash() string {
	answer, _ := d.policyAnswer(d.tool())
	b, _ := json.Marshal([]any{answer, d.view.agent.Kind, d.allowedCategories(), d.view.profile.Capabilities,
		string(d.config),
		d.call.Tools})
	return reeve.Hash(b)[:16]
}

// settingsHash returns a hash of the agent's settings for the tool.
func (d *Decision) settingsHash() string { return reeve.Hash(d.config)[:16] }

// requestInfo returns the request as it is stored with the call: its origin, its reason, its trace and the result of
// each step.
func (d *Decision) requestInfo(ctx context.Context) json.RawMessage {
	info := reeve.ActionInfo{Type: "tool_call", Tool: d.call.Tool, ArgsHash: d.argsHash,
		Categories: d.allowedCategories(), Via: d.call.Via, User: d.call.User, Session: d.call.Session,
		Reason: d.call.Reason, Ref: d.call.Ref, Item: d.call.Item, Attempt: d.call.Attempt, Preview: d.call.PreviewOnly,
		Tools: d.call.Tools, Base: d.call.Base, Undoes: d.undoes, TraceID: traceID(ctx),
		Trace: d.steps}
	if d.replaces != nil {
		info.Replaces = d.replaces.approval.ID
	}
	if d.entry != nil {
		info.ToolVersion = d.entry.fingerprint
	}
	return mustJSON(info)
}

// refusedBy returns the step that refused the call, or the zero Step if all steps passed.
func (d *Decision) refusedBy() reeve.Step {
	if last := len(d.steps) - 1; last >= 0 && d.steps[last].Verdict == reeve.Refused {
		return d.steps[last]
	}
	return reeve.Step{}
}

// notifyWatchers calls OnChange after a commit if the workspace has subscriptions.
func (d *Decision) notifyWatchers() {
	if d.view.workspace.isWatched && d.g.OnChange != nil {
		d.g.OnChange()
	}
}

// redactAndTruncate prepares a text for the record of a step. It removes secrets and cuts the text after 1000 bytes.
func (d *Decision) redactAndTruncate(text string) string { return truncateText(d.redact(text), 1000) }

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("gate: " + err.Error()) // all callers pass types of this module, which can be encoded
	}
	return b
}
