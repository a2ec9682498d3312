package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// Explain says what each step said of a past call. The id is the call's or its operation's.
func (g *Gate) Explain(ctx context.Context, workspace, id string) (x reeve.Explanation, err error) {
	err = g.DB.View(ctx, func(s *store.Snap) error {
		op, found, err := s.Ledger().FindOperation(ctx, workspace, id)
		if err != nil {
			return err
		}
		call := id
		if found {
			call = op.CallID
		}
		c, err := s.Ledger().GetCall(ctx, workspace, call)
		if err != nil {
			return err
		}
		info, err := c.RequestInfo()
		if err != nil {
			return err
		}
		op = c.Operation
		x = reeve.Explanation{CallID: op.CallID, OperationID: op.ID, Agent: op.AgentID, Tool: info.Tool,
			Steps: info.Trail}
		var asked []reeve.Approval
		if op.ID != "" {
			shown, err := g.Redaction(ctx, s, workspace)
			if err != nil {
				return err
			}
			shown.Operation(&op)
			x.Operation = &op
			if asked, err = s.Ledger().ApprovalsOf(ctx, op.ID); err != nil {
				return err
			}
			if n := len(asked); n > 0 {
				x.Approval = new(asked[n-1].AsOf(s.Now()))
			}
		}
		var r reeve.ResultInfo
		if c.Result != nil {
			if r, err = c.Result.ResultInfo(); err != nil {
				return err
			}
		}
		addExecution(&x, info, r, c.Result, asked)
		if id := cmp.Or(info.ProposalID, r.ProposalID); id != "" {
			item, err := s.Ledger().GetProposal(ctx, workspace, id)
			x.Proposal = &item
			return err
		}
		return nil
	})
	return x, err
}

// Preview returns the gate's decision on a call without making the call.
func (g *Gate) Preview(ctx context.Context, c reeve.Call) (reeve.Explanation, error) {
	return g.explainDecision(ctx, c, g.decide)
}

// PreviewWithoutTool is Judge without the tool's own checks, for callers who may not call it: a tool looks at the data
// that the call is about, and its answer would tell what is there.
func (g *Gate) PreviewWithoutTool(ctx context.Context, c reeve.Call) (reeve.Explanation, error) {
	return g.explainDecision(ctx, c, g.decideWithoutTool)
}

func (g *Gate) explainDecision(ctx context.Context, c reeve.Call,
	decide func(context.Context, *request) *Decision) (reeve.Explanation, error) {
	g.viewCache.invalidateAgents(c.Workspace) // nothing is written that would find out that the view is old
	req, err := g.newRequest(ctx, c)
	if err != nil {
		return reeve.Explanation{}, err
	}
	d := decide(ctx, req)
	refusal := d.refusal
	if reeve.CodeOf(refusal) == reeve.Internal && refusal != nil {
		return reeve.Explanation{}, refusal
	}
	x := reeve.Explanation{Agent: d.call.Agent, Tool: c.Tool, Hypothetical: true, Steps: completeSteps(d.steps)}
	switch {
	case refusal != nil:
		x.Outcome = "It would be refused: " + reeve.AsError(refusal).Message
	case d.existing != nil:
		x.Outcome = "The stored result of operation " + d.existing.ID + " would be given."
	case d.isProposal:
		x.Outcome = "It would become an item of a change set, for a person to accept."
	case d.waitReason != "":
		x.Outcome = "It would wait for a person: " + d.waitReason
	default:
		x.Outcome = "It would run."
	}
	if refusal == nil && slices.ContainsFunc(d.steps,
		func(s reeve.Step) bool { return s.Verdict == reeve.NotReached }) {
		x.Outcome = "As far as the gate can tell without the tool: " + x.Outcome
	}
	for _, name := range stepsAfterDecision {
		x.Steps = append(x.Steps, reeve.Step{Name: name, Verdict: reeve.NotReached})
	}
	return x, nil
}

// completeSteps adds the verdicts and steps that records leave out.
func completeSteps(trail []reeve.Step) []reeve.Step {
	out := make([]reeve.Step, 0, len(steps)+len(stepsAfterDecision))
	for i, s := range steps {
		if i < len(trail) {
			t := trail[i]
			if t.Verdict == "" {
				t.Verdict = reeve.Passed
			}
			out = append(out, t)
			continue
		}
		out = append(out, reeve.Step{Name: s.name, Verdict: reeve.NotReached})
	}
	return out
}

// addExecution describes what came after the judgement.
func addExecution(x *reeve.Explanation, info reeve.ActionInfo, r reeve.ResultInfo, result *store.CallResult,
	asked []reeve.Approval) {
	answered, content := result != nil, ""
	if answered {
		content = result.Content
	}
	x.Steps = completeSteps(info.Trail)
	for _, a := range asked {
		applyApproval(x.Steps, a)
	}
	add := func(name string, v reeve.Verdict, format string, args ...any) {
		x.Steps = append(x.Steps, reeve.Step{Name: name, Verdict: v, Why: fmt.Sprintf(format, args...)})
	}
	applyRefusal(x.Steps, r.Step)
	x.Outcome = describeOutcome(*x, info, r, content, answered)
	switch {
	case answered && r.Attempts > 0:
		add("timeout", reeve.Passed, "took %d ms", r.Spent.Millis)
		add("invoke", reeve.Passed, "attempts: %d; %s", r.Attempts, r.Status)
		add("scrub", reeve.Passed, "")
		if r.Truncated {
			add("truncate", reeve.Passed, "cut from %d bytes; the whole is kept as %s", r.Size, r.Hash)
		} else {
			add("truncate", reeve.Passed, "%d bytes, not cut", r.Size)
		}
	case x.Operation != nil && (x.Operation.State == reeve.Dispatched || x.Operation.State == reeve.Unknown ||
		x.Operation.Resolution == reeve.Happened):
		add("timeout", reeve.Passed, "")
		add("invoke", reeve.Waits, "it was sent, and what became of it is not recorded")
		add("scrub", reeve.NotReached, "")
		add("truncate", reeve.NotReached, "")
	default:
		for _, name := range stepsAfterDecision[:len(stepsAfterDecision)-1] {
			add(name, reeve.NotReached, "")
		}
	}
	if answered {
		add("record", reeve.Passed, "as %s", result.ID)
	} else {
		add("record", reeve.NotReached, "")
	}
}

// applyApproval brings the steps up to what a person was asked and has said. A call that is asked about while no step waits
// was judged again when it was to run, and a budget had run out by then.
func applyApproval(list []reeve.Step, a reeve.Approval) {
	waits := func(s reeve.Step) bool { return s.Verdict == reeve.Waits }
	if i := slices.IndexFunc(list, func(s reeve.Step) bool { return s.Name == "budget" }); i >= 0 &&
		!slices.ContainsFunc(list, waits) {
		list[i] = reeve.Step{Name: "budget", Verdict: reeve.Waits, Why: a.Why}
	}
	for i, s := range list {
		if waits(s) && a.State == reeve.Approved {
			list[i].Verdict, list[i].Why = reeve.Passed, s.Why+"; approved by "+a.DecidedBy
		}
	}
}

// applyRefusal marks the step that refused a call which had been let through at first, such as one that nobody approved.
// What came after it when the call was first judged counts no more.
func applyRefusal(list []reeve.Step, by reeve.Step) {
	over := false
	for i, s := range list {
		switch {
		case s.Name == by.Name:
			list[i], over = by, true
		case over:
			list[i] = reeve.Step{Name: s.Name, Verdict: reeve.NotReached}
		}
	}
}

// describeOutcome says in a sentence what became of a call.
func describeOutcome(x reeve.Explanation, info reeve.ActionInfo, r reeve.ResultInfo, content string, answered bool) string {
	op := x.Operation
	switch {
	case !answered && x.Approval != nil && x.Approval.State == reeve.Expired:
		return "Nobody approved it in time: it will not run."
	case !answered && op != nil:
		return "It is " + string(op.State) + ", and has no result yet."
	case !answered:
		return "It has no result yet."
	case r.Attempts == 0 && op != nil && op.Resolution != "" && op.State != reeve.DeniedOp:
		return content
	case r.Attempts == 0 && r.Status == "error":
		return "It was refused: " + r.Message
	case r.ProposalID != "":
		return content
	case info.Preview:
		return "It showed what would change, and changed nothing."
	case r.Status == "error":
		return "It ran and failed: " + r.Message
	}
	return "It ran and succeeded."
}
