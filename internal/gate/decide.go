package gate

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"reeve"
)

// decider runs the steps of the gate on a call and fills in the Decision.
type decider struct {
	*Decision
	skipToolChecks bool // do not run functions of the tool
}

// steps lists the steps of the gate in order. A step returns the reason why the call passes, or an error that refuses
// the call. Steps change nothing except the Decision, so Preview can run them without making the call. The names appear
// in records and explanations.
var steps = []struct {
	name string
	run  func(*decider, context.Context) (why string, err error)
}{
	{"lookup", (*decider).findTool},
	{"attachment", (*decider).checkAttachment},
	{"arguments", (*decider).checkArguments},
	{"capability", (*decider).checkCapability},
	{"scope", (*decider).checkScope},
	{"item", (*decider).checkItem},
	{"approval", (*decider).checkPolicy},
	{"security", (*decider).checkSecurity},
	{"preview", (*decider).computePreview},
	{"idempotency", (*decider).checkIdempotency},
	{"budget", (*decider).checkBudget},
}

// stepsAfterDecision lists the names of the phases that follow when all steps pass.
var stepsAfterDecision = []string{"timeout", "invoke", "scrub", "truncate", "record"}

// decide runs the steps on a call until one of them refuses it.
func (g *Gate) decide(ctx context.Context, req *request) *Decision {
	d := &decider{Decision: newDecision(req)}
	d.decide(ctx)
	return d.Decision
}

// decideWithoutTool is like decide but runs no function of the tool. It serves users who may not call the tool, because
// what the tool's checks return can reveal data.
func (g *Gate) decideWithoutTool(ctx context.Context, req *request) *Decision {
	d := &decider{Decision: newDecision(req), skipToolChecks: true}
	d.decide(ctx)
	return d.Decision
}

func newDecision(req *request) *Decision {
	return &Decision{request: req, steps: make([]reeve.Step, 0, len(steps))}
}

func (d *decider) decide(ctx context.Context) {
	d.refusal = d.runSteps(ctx)
	if d.refusal == nil && d.existing == nil {
		d.refusal = d.computePreviewForPerson(ctx)
	}
	if d.refusal == nil && d.leavesOperation() {
		d.policyHashAtDecision = d.policyHash()
	}
}

func (d *decider) runSteps(ctx context.Context) error {
	for _, s := range steps {
		waited := d.waitReason
		why, err := s.run(d, ctx)
		step := reeve.Step{Name: s.name, Why: why}
		switch {
		case errors.Is(err, errToolNotAsked):
			step.Verdict, step.Why, err = reeve.NotReached, errToolNotAsked.Error(), nil
		case err != nil:
			step.Verdict, step.Why = reeve.Refused, d.redactAndTruncate(reeve.AsError(err).Message)
		case d.waitReason != waited:
			step.Verdict = reeve.Waits
		}
		d.steps = append(d.steps, step)
		if err != nil {
			return err
		}
		if d.existing != nil && s.name == "idempotency" {
			return nil // the earlier call passed the remaining steps
		}
	}
	return nil
}

// truncateText returns the beginning of a text, sanitized, with an ellipsis if something was cut off.
func truncateText(text string, most int) string {
	if short := longestFittingPrefix(text, most); len(short) < len(text) {
		return reeve.SanitizeText(short) + "…"
	}
	return reeve.SanitizeText(text)
}

// findTool looks the tool up in the catalogue of the workspace.
func (d *decider) findTool(context.Context) (string, error) {
	e, ok := d.view.workspace.tools[d.call.Tool]
	if !ok {
		return "", toolNotFound(d.call.Tool)
	}
	if d.entry = e; d.resumed != nil && d.resumed.Resolution == reeve.ResolveRetry &&
		d.resumed.ToolVersion != e.fingerprint {
		return "", errToolChanged // the person asked to repeat the call as it was
	}
	return string(e.tool.Kind) + " tool, version " + strconv.Itoa(e.tool.Version), nil
}

var errToolChanged = reeve.Errorf(reeve.Stale,
	"the tool has changed since the call was made, so the call was not run again").Hintf("make a new call")

// toolNotFound returns the error for a tool that does not exist, belongs to another workspace or is not available to
// the agent. The error is the same in all three cases, so that it reveals nothing about other workspaces.
func toolNotFound(id string) error {
	return reeve.Errorf(reeve.NotFound, "tool %q not found", id).
		Hintf("list the agent's tools to see which it can call")
}

// checkAttachment checks that the agent has the tool. The tools listed in the call count first, then the agent's
// attachments, then the default tools.
func (d *decider) checkAttachment(context.Context) (string, error) {
	e := d.entry
	d.config = d.view.attached[e.tool.ID]
	why := d.view.grantReason(d.call.Tools, e.tool.ID)
	if disabled := d.view.disabledTools[e.tool.ID]; disabled != "" {
		d.entry = nil
		return "", reeve.Errorf(reeve.Unsupported, "the agent cannot call its tool %q: %s", e.tool.ID, disabled).
			Hintf("reeve doctor lists broken tools; to use the current tool %s, detach it and attach it again",
				e.tool.ID)
	}
	if why == "" {
		d.entry = nil
		if e.needsSettings && slices.Contains(d.call.Tools, e.tool.ID) {
			return "", reeve.Errorf(reeve.Unsupported,
				"the tool %q needs settings and the agent has none for it", e.tool.ID).
				Hintf("attach the tool to the agent with settings")
		}
		return "", toolNotFound(d.call.Tool)
	}
	if who := d.findPrincipalWithout(e.tool.ID); who != "" {
		d.entry = nil
		return "", reeve.Errorf(reeve.NotFound, "tool %q not found: %s, on whose behalf this runs, does not have it",
			d.call.Tool, who).Hintf("an agent that acts for another agent can call only tools that both have")
	}
	if e.tool.Broken != "" {
		return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot be called: %s", e.tool.ID, e.tool.Broken).
			Hintf("reeve doctor lists broken tools")
	}
	return why, nil
}

// OutputRead is the id of the tool that reads the rest of a truncated output.
const OutputRead = "output_read"

// DefaultTools lists the tools of an agent to which no tool was ever attached. They affect only the agent's own
// session.
func DefaultTools() []string { return []string{"list_files", OutputRead, "read_file", "write_file"} }

func isDefaultTool(id string) bool {
	for _, d := range DefaultTools() {
		if d == id {
			return true
		}
	}
	return false
}

// checkCapability checks that the kinds of the caller and of its principals have the capability that the tool needs.
func (d *decider) checkCapability(context.Context) (string, error) {
	need := d.tool().Capability
	if need == "" {
		return "the tool needs no capability", nil
	}
	views := []*agentView{d.view}
	for _, b := range d.principals() {
		views = append(views, b.agentView)
	}
	for _, v := range views {
		if !slices.Contains(v.profile.Capabilities, need) && !slices.Contains(v.profile.Capabilities, "*") {
			return "", reeve.Errorf(reeve.OutOfScope, "agents of kind %q do not have the capability %q", v.agent.Kind,
				need).Hintf("an owner can add the capability to the profile of the kind")
		}
	}
	return "agents of kind " + d.view.agent.Kind + " have " + need, nil
}

// checkScope checks that every category that the call touches is in the agent's scope.
func (d *decider) checkScope(ctx context.Context) (string, error) {
	if d.tool().Categories == nil {
		return "the tool does not use categories", nil
	}
	touched, err := runToolCheck(ctx, d, func(ctx context.Context, inv *reeve.Invocation) ([]string, error) {
		return d.tool().Categories(ctx, inv)
	})
	if err != nil {
		return "", err
	}
	have := d.allowedCategories()
	for _, c := range touched {
		if !slices.Contains(have, c) {
			return "", reeve.Errorf(reeve.OutOfScope, "category %q is outside the agent's scope", c).
				Hintf("the agent may use %d categories; a member can change its scope", len(have))
		}
	}
	return "all categories are in the agent's scope", nil
}

// checkItem applies the item rule to calls of scripts.
func (d *decider) checkItem(ctx context.Context) (string, error) {
	if d.call.Automation == "" {
		return "the call does not come from a script", nil
	}
	if d.g.ItemRule == nil {
		return "", reeve.Errorf(reeve.Denied, "scripts cannot call tools on this server")
	}
	op, err := d.g.ItemRule.CheckCall(ctx, d.call, *d.tool(), d.args)
	if op != "" {
		d.operation, d.hasCallerID = op, true
	}
	return "allowed by the item rule", err
}

// checkPolicy applies the kill switch, the agent's lifecycle, an earlier approval and the agent's policy.
func (d *decider) checkPolicy(ctx context.Context) (string, error) {
	mutates := d.tool().Effect.Mutates() && !d.call.PreviewOnly
	if mutates {
		if err := d.checkNotStopped(); err != nil {
			return "", err
		}
	}
	if err := d.checkLifecycle(mutates); err != nil {
		return "", err
	}
	if d.hasCallerID && d.leavesOperation() {
		if err := d.findExisting(ctx); err != nil {
			return "", err
		}
		if d.existing != nil {
			return "the operation already passed", nil
		}
	}
	if why, err := d.checkApproved(); why != "" || err != nil {
		return why, err
	}
	answer, why := d.policyAnswer(d.tool())
	if d.replaces != nil && answer != reeve.Deny {
		d.waitReason = "a person changed the arguments; the changed call needs its own approval"
		if d.replaces.edit.Args == nil {
			d.waitReason = "a person previewed the call again; it needs its own approval"
		}
		return d.waitReason, nil
	}
	switch answer {
	case reeve.Allow:
		return why, nil
	case reeve.Ask:
		if d.call.PreviewOnly {
			return "a preview changes nothing", nil
		}
		d.waitReason = why
		return why, nil
	case reeve.Propose:
		return d.checkProposal(ctx, why)
	case reeve.Deny:
	}
	return "", d.policyDenial(d.tool(), why)
}

// checkSecurity refuses calls in a run that has ended or waits for a person, then runs the tool's own check on the
// arguments. It repeats that check with the settings of each principal.
func (d *decider) checkSecurity(ctx context.Context) (string, error) {
	if d.call.Run != "" && d.existing == nil {
		if err := d.checkRun(ctx); err != nil {
			return "", err
		}
	}
	if d.tool().Check == nil {
		return "the tool has no check of its own", nil
	}
	check := func(ctx context.Context, inv *reeve.Invocation) (struct{}, error) {
		return struct{}{}, d.tool().Check(ctx, inv)
	}
	if _, err := runToolCheck(ctx, d, check); err != nil {
		return "", err
	}
	for _, b := range d.principals() { // an agent must not do through another what its own settings forbid
		if _, err := runToolCheck(ctx, d, func(ctx context.Context, inv *reeve.Invocation) (struct{}, error) {
			inv.Config, inv.CheckFor = b.attached[d.tool().ID], b.agent.ID
			return check(ctx, inv)
		}); err != nil {
			return "", err
		}
	}
	return "allowed by the tool's own check", nil
}
