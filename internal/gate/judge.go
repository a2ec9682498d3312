package gate

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"reeve"
)

// steps is the order of the gate. Each says why it lets a call pass, or refuses it; none changes anything, so that a call can
// be explained without being made. Step names are what records and explanations use.
var steps = []struct {
	name string
	run  func(*pass, context.Context) (why string, err error)
}{
	{"lookup", (*pass).lookup},
	{"attachment", (*pass).attachment},
	{"arguments", (*pass).validate},
	{"capability", (*pass).capability},
	{"scope", (*pass).scope},
	{"item", (*pass).item},
	{"approval", (*pass).tier},
	{"security", (*pass).security},
	{"preview", (*pass).previewed},
	{"idempotency", (*pass).idempotency},
	{"budget", (*pass).budget},
}

// after is what follows once a call is let through.
var after = []string{"timeout", "invoke", "scrub", "truncate", "record"}

// judge takes the call through the steps, up to the one that refuses it.
func (p *pass) judge(ctx context.Context) error {
	p.trail = make([]reeve.Step, 0, len(steps))
	for _, s := range steps {
		waited := p.waits
		why, err := s.run(p, ctx)
		step := reeve.Step{Name: s.name, Why: why}
		switch {
		case errors.Is(err, errUnasked):
			step.Verdict, step.Why, err = reeve.NotReached, errUnasked.Error(), nil
		case err != nil:
			step.Verdict, step.Why = reeve.Refused, p.brief(reeve.AsError(err).Message)
		case p.waits != waited:
			step.Verdict = reeve.Waits
		}
		p.trail = append(p.trail, step)
		if err != nil {
			return err
		}
		if p.existing != nil && s.name == "idempotency" {
			return nil // an earlier call has been through the rest
		}
	}
	return nil
}

// brief redacts and shortens a text with foreign parts for the decision trace.
func (p *pass) brief(text string) string { return clip(p.redact(text), 1000) }

// clip gives the beginning of a text.
func clip(text string, most int) string {
	if short := head(text, most); len(short) < len(text) {
		return reeve.Clean(short) + "…"
	}
	return reeve.Clean(text)
}

// refusedBy is the step that refused the call; none if all let it pass.
func (p *pass) refusedBy() reeve.Step {
	if last := len(p.trail) - 1; last >= 0 && p.trail[last].Verdict == reeve.Refused {
		return p.trail[last]
	}
	return reeve.Step{}
}

// lookup finds the tool in the workspace's catalogue.
func (p *pass) lookup(context.Context) (string, error) {
	e, ok := p.view.workspace.tools[p.call.Tool]
	if !ok {
		return "", noTool(p.call.Tool)
	}
	if p.entry = e; p.resumed != nil && p.resumed.Resolution == reeve.RunAgain && p.resumed.ToolVersion != e.fingerprint {
		return "", reeve.Errorf(reeve.Stale, "the tool has changed since the call was made, so that it was not run again; make the call anew") // a person said to repeat what was done, and not another thing
	}
	return string(e.tool.Kind) + " tool, version " + strconv.Itoa(e.tool.Version), nil
}

// noTool is the one answer for a tool that does not exist, is another workspace's, or is not the agent's.
func noTool(id string) error {
	return reeve.Errorf(reeve.NotFound, "tool %q not found", id).Hintf("list the agent's tools to see which it can call")
}

// attachment checks that the agent has the tool: by the call's own list, else by its attachments, else by default.
func (p *pass) attachment(context.Context) (string, error) {
	e := p.entry
	p.config = p.view.attached[e.tool.ID]
	why := p.view.granted(p.call.Tools, e.tool.ID)
	if barred := p.view.barred[e.tool.ID]; barred != "" {
		p.entry = nil
		return "", reeve.Errorf(reeve.Unsupported, "the tool %q that the agent has cannot be called: %s", e.tool.ID, barred).
			Hintf("reeve doctor lists broken tools; to give the agent the one that is called %s now, detach it and attach it again", e.tool.ID)
	}
	if why == "" {
		p.entry = nil
		if e.needs && slices.Contains(p.call.Tools, e.tool.ID) {
			return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot be called without settings, and the agent has none for it", e.tool.ID).
				Hintf("attach it to the agent with its settings")
		}
		return "", noTool(p.call.Tool)
	}
	if who := p.lacking(e.tool.ID); who != "" {
		p.entry = nil
		return "", reeve.Errorf(reeve.NotFound, "tool %q not found: %s, on whose behalf this runs, does not have it", p.call.Tool, who).
			Hintf("an agent that another calls has only what both have")
	}
	if e.tool.Broken != "" {
		return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot be called: %s", e.tool.ID, e.tool.Broken).Hintf("reeve doctor lists broken tools")
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
func (p *pass) capability(context.Context) (string, error) {
	need := p.tool().Capability
	if need == "" {
		return "the tool needs no capability", nil
	}
	views := []*agentView{p.view}
	for _, b := range p.lenders() {
		views = append(views, b.agentView)
	}
	for _, v := range views {
		if v.profile.Broken != "" {
			return "", reeve.Errorf(reeve.OutOfScope, "nobody can tell whether agents of kind %q have the capability %q: the profile of the kind grants nothing, because %s", v.agent.Kind, need, v.profile.Broken).
				Hintf("an owner mends it by setting it again: reeve profiles set %s", v.agent.Kind)
		}
		if !slices.Contains(v.profile.Capabilities, need) && !slices.Contains(v.profile.Capabilities, "*") {
			return "", reeve.Errorf(reeve.OutOfScope, "agents of kind %q do not have the capability %q", v.agent.Kind, need).
				Hintf("an owner can add it to the profile of the kind")
		}
	}
	return "agents of kind " + p.view.agent.Kind + " have " + need, nil
}

// scope checks the categories the call touches against the agent's.
func (p *pass) scope(ctx context.Context) (string, error) {
	if p.tool().Categories == nil {
		return "the tool is not bound to categories", nil
	}
	touched, err := ask(ctx, p, func(ctx context.Context, inv *reeve.Invocation) ([]string, error) {
		return p.tool().Categories(ctx, inv)
	})
	if err != nil {
		return "", err
	}
	have := p.categories()
	for _, c := range touched {
		if !slices.Contains(have, c) {
			return "", reeve.Errorf(reeve.OutOfScope, "category %q is outside the agent's scope", c).Hintf("the agent may touch %d categories", len(have))
		}
	}
	return "every category touched is the agent's", nil
}

// item asks the item rule about calls of scripts.
func (p *pass) item(ctx context.Context) (string, error) {
	if p.call.Automation == "" {
		return "not a script's call", nil
	}
	if p.g.ItemRule == nil {
		return "", reeve.Errorf(reeve.Denied, "scripts cannot call tools here")
	}
	op, err := p.g.ItemRule.Allow(ctx, p.call, *p.tool(), p.args)
	if op != "" {
		p.op, p.chose = op, true
	}
	return "allowed by the item rule", err
}

// tier applies the kill switch, the agent's lifecycle and its policy.
func (p *pass) tier(ctx context.Context) (string, error) {
	mutates := p.tool().Effect.Mutates() && !p.call.PreviewOnly
	if mutates {
		if err := p.stopped(); err != nil {
			return "", err
		}
	}
	if err := p.resting(mutates); err != nil {
		return "", err
	}
	if p.chose && p.leavesOperation() {
		if err := p.findExisting(ctx); err != nil {
			return "", err
		}
		if p.existing != nil {
			return "the operation was let through before", nil
		}
	}
	if why, err := p.resumedBy(); why != "" || err != nil {
		return why, err
	}
	answer, why := p.answer()
	switch answer {
	case reeve.Allow:
		return why, nil
	case reeve.Ask:
		if p.call.PreviewOnly {
			return "a preview changes nothing", nil
		}
		p.waits = why
		return why, nil
	case reeve.Propose:
		return p.proposed(ctx, why)
	case reeve.Deny:
	}
	return "", p.forbidden(why)
}

// security asks the tool's own policy about the arguments, and refuses to go on in a run that waits for a person, or is over.
func (p *pass) security(ctx context.Context) (string, error) {
	if p.call.Run != "" && p.existing == nil {
		if err := p.standing(ctx); err != nil {
			return "", err
		}
	}
	if p.tool().Check == nil {
		return "the tool has no policy of its own", nil
	}
	check := func(ctx context.Context, inv *reeve.Invocation) (struct{}, error) {
		return struct{}{}, p.tool().Check(ctx, inv)
	}
	if _, err := ask(ctx, p, check); err != nil {
		return "", err
	}
	for _, b := range p.lenders() { // what its own settings forbid, it cannot have another do
		if _, err := ask(ctx, p, func(ctx context.Context, inv *reeve.Invocation) (struct{}, error) {
			inv.Config, inv.Behalf = b.attached[p.tool().ID], b.agent.ID
			return check(ctx, inv)
		}); err != nil {
			return "", err
		}
	}
	return "allowed by the tool's own policy", nil
}
