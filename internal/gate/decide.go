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
	withoutTool bool // the tool itself is not asked anything
}

// steps lists the steps of the gate in their order. A step returns why it lets a call pass, or refuses it with an
// error. No step changes anything outside the Decision, so a call can be explained without being made. Records and
// explanations use the names of the steps.
var steps = []struct {
	name string
	run  func(*decider, context.Context) (why string, err error)
}{
	{"lookup", (*decider).lookup},
	{"attachment", (*decider).attachment},
	{"arguments", (*decider).validate},
	{"capability", (*decider).capability},
	{"scope", (*decider).scope},
	{"item", (*decider).item},
	{"approval", (*decider).tier},
	{"security", (*decider).security},
	{"preview", (*decider).previewStep},
	{"idempotency", (*decider).idempotency},
	{"budget", (*decider).budget},
}

// after lists the steps that follow once a call is let through.
var after = []string{"timeout", "invoke", "scrub", "truncate", "record"}

// decide runs the steps on a call, up to the one that refuses it.
func (g *Gate) decide(ctx context.Context, req *request) *Decision {
	d := &decider{Decision: newDecision(req)}
	d.decide(ctx)
	return d.Decision
}

// decideWithoutTool is decide for a person who may not call the tool: the tool's own answers would tell what is there.
func (g *Gate) decideWithoutTool(ctx context.Context, req *request) *Decision {
	d := &decider{Decision: newDecision(req), withoutTool: true}
	d.decide(ctx)
	return d.Decision
}

func newDecision(req *request) *Decision {
	return &Decision{request: req, steps: make([]reeve.Step, 0, len(steps))}
}

func (d *decider) decide(ctx context.Context) {
	d.refusal = d.runSteps(ctx)
	if d.refusal == nil && d.existing == nil {
		d.refusal = d.previewForPerson(ctx)
	}
	if d.refusal == nil && d.leavesOperation() {
		d.policy = d.policyHash()
	}
}

func (d *decider) runSteps(ctx context.Context) error {
	for _, s := range steps {
		waited := d.waits
		why, err := s.run(d, ctx)
		step := reeve.Step{Name: s.name, Why: why}
		switch {
		case errors.Is(err, errUnasked):
			step.Verdict, step.Why, err = reeve.NotReached, errUnasked.Error(), nil
		case err != nil:
			step.Verdict, step.Why = reeve.Refused, d.brief(reeve.AsError(err).Message)
		case d.waits != waited:
			step.Verdict = reeve.Waits
		}
		d.steps = append(d.steps, step)
		if err != nil {
			return err
		}
		if d.existing != nil && s.name == "idempotency" {
			return nil // the earlier call has been through the rest
		}
	}
	return nil
}

// clip returns the beginning of a text.
func clip(text string, most int) string {
	if short := head(text, most); len(short) < len(text) {
		return reeve.SanitizeText(short) + "…"
	}
	return reeve.SanitizeText(text)
}

// lookup finds the tool in the workspace's catalogue.
func (d *decider) lookup(context.Context) (string, error) {
	e, ok := d.view.workspace.tools[d.call.Tool]
	if !ok {
		return "", noTool(d.call.Tool)
	}
	if d.entry = e; d.resumed != nil && d.resumed.Resolution == reeve.RunAgain &&
		d.resumed.ToolVersion != e.fingerprint {
		return "", errToolChanged // a person asked to repeat what was done, not to do another thing
	}
	return string(e.tool.Kind) + " tool, version " + strconv.Itoa(e.tool.Version), nil
}

var errToolChanged = reeve.Errorf(reeve.Stale,
	"the tool has changed since the call was made, so that it was not run again; make the call anew")

// noTool returns the one refusal for a tool that does not exist, is another workspace's, or is not the agent's.
func noTool(id string) error {
	return reeve.Errorf(reeve.NotFound, "tool %q not found", id).
		Hintf("list the agent's tools to see which it can call")
}

// attachment checks that the agent has the tool: by the call's own list, else by its attachments, else by default.
func (d *decider) attachment(context.Context) (string, error) {
	e := d.entry
	d.config = d.view.attached[e.tool.ID]
	why := d.view.granted(d.call.Tools, e.tool.ID)
	if barred := d.view.barred[e.tool.ID]; barred != "" {
		d.entry = nil
		return "", reeve.Errorf(reeve.Unsupported, "the tool %q that the agent has cannot be called: %s", e.tool.ID,
			barred).
			Hintf("reeve doctor lists broken tools; to give the agent the one that is called %s now, detach it and "+
				"attach it again", e.tool.ID)
	}
	if why == "" {
		d.entry = nil
		if e.needs && slices.Contains(d.call.Tools, e.tool.ID) {
			return "", reeve.Errorf(reeve.Unsupported,
				"the tool %q cannot be called without settings, and the agent has none for it", e.tool.ID).
				Hintf("attach it to the agent with its settings")
		}
		return "", noTool(d.call.Tool)
	}
	if who := d.lacking(e.tool.ID); who != "" {
		d.entry = nil
		return "", reeve.Errorf(reeve.NotFound, "tool %q not found: %s, on whose behalf this runs, does not have it",
			d.call.Tool, who).
			Hintf("an agent that another calls has only what both have")
	}
	if e.tool.Broken != "" {
		return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot be called: %s", e.tool.ID, e.tool.Broken).
			Hintf("reeve doctor lists broken tools")
	}
	return why, nil
}

// OutputRead is the tool that reads the rest of an output that was cut.
const OutputRead = "output_read"

// DefaultTools is what an agent has that no tool was ever attached to: tools that touch nothing but its own session.
func DefaultTools() []string { return []string{"list_files", OutputRead, "read_file", "write_file"} }

func isDefault(id string) bool {
	for _, d := range DefaultTools() {
		if d == id {
			return true
		}
	}
	return false
}

// capability checks the profile of the agent's kind.
func (d *decider) capability(context.Context) (string, error) {
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
				need).
				Hintf("an owner can add it to the profile of the kind")
		}
	}
	return "agents of kind " + d.view.agent.Kind + " have " + need, nil
}

// scope checks the categories the call touches against the agent's.
func (d *decider) scope(ctx context.Context) (string, error) {
	if d.tool().Categories == nil {
		return "the tool is not bound to categories", nil
	}
	touched, err := ask(ctx, d, func(ctx context.Context, inv *reeve.Invocation) ([]string, error) {
		return d.tool().Categories(ctx, inv)
	})
	if err != nil {
		return "", err
	}
	have := d.categories()
	for _, c := range touched {
		if !slices.Contains(have, c) {
			return "", reeve.Errorf(reeve.OutOfScope, "category %q is outside the agent's scope", c).
				Hintf("the agent may touch %d categories", len(have))
		}
	}
	return "every category touched is the agent's", nil
}

// item asks the item rule about calls of scripts.
func (d *decider) item(ctx context.Context) (string, error) {
	if d.call.Automation == "" {
		return "not a script's call", nil
	}
	if d.g.ItemRule == nil {
		return "", reeve.Errorf(reeve.Denied, "scripts cannot call tools here")
	}
	op, err := d.g.ItemRule.CheckCall(ctx, d.call, *d.tool(), d.args)
	if op != "" {
		d.operation, d.chosen = op, true
	}
	return "allowed by the item rule", err
}

// tier applies the kill switch, the agent's lifecycle and its policy.
func (d *decider) tier(ctx context.Context) (string, error) {
	mutates := d.tool().Effect.Mutates() && !d.call.PreviewOnly
	if mutates {
		if err := d.stopped(); err != nil {
			return "", err
		}
	}
	if err := d.inactive(mutates); err != nil {
		return "", err
	}
	if d.chosen && d.leavesOperation() {
		if err := d.findExisting(ctx); err != nil {
			return "", err
		}
		if d.existing != nil {
			return "the operation was let through before", nil
		}
	}
	if why, err := d.approved(); why != "" || err != nil {
		return why, err
	}
	answer, why := d.policyAnswer(d.tool())
	switch answer {
	case reeve.Allow:
		return why, nil
	case reeve.Ask:
		if d.call.PreviewOnly {
			return "a preview changes nothing", nil
		}
		d.waits = why
		return why, nil
	case reeve.Propose:
		return d.proposed(ctx, why)
	case reeve.Deny:
	}
	return "", d.forbidden(d.tool(), why)
}

// security asks the tool's own policy about the arguments, and refuses to go on in a run that waits for a person, or is
// over.
func (d *decider) security(ctx context.Context) (string, error) {
	if d.call.Run != "" && d.existing == nil {
		if err := d.checkRun(ctx); err != nil {
			return "", err
		}
	}
	if d.tool().Check == nil {
		return "the tool has no policy of its own", nil
	}
	check := func(ctx context.Context, inv *reeve.Invocation) (struct{}, error) {
		return struct{}{}, d.tool().Check(ctx, inv)
	}
	if _, err := ask(ctx, d, check); err != nil {
		return "", err
	}
	for _, b := range d.principals() { // what its own settings forbid, it cannot have another do
		if _, err := ask(ctx, d, func(ctx context.Context, inv *reeve.Invocation) (struct{}, error) {
			inv.Config, inv.CheckFor = b.attached[d.tool().ID], b.agent.ID
			return check(ctx, inv)
		}); err != nil {
			return "", err
		}
	}
	return "allowed by the tool's own policy", nil
}
