package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// Explain returns the result of each step for a past call. The id is that of the call or of its operation.
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
			TraceID: info.TraceID, Steps: info.Trace}
		var approvals []reeve.Approval
		if op.ID != "" {
			shown, err := g.Redaction(ctx, s, workspace)
			if err != nil {
				return err
			}
			shown.Operation(&op)
			x.Operation = &op
			if approvals, err = s.Ledger().ApprovalsOf(ctx, op.ID); err != nil {
				return err
			}
			if n := len(approvals); n > 0 {
				x.Approval = new(approvals[n-1].AsOf(s.Now()))
			}
		}
		var r reeve.ResultInfo
		if c.Result != nil {
			if r, err = c.Result.ResultInfo(); err != nil {
				return err
			}
		}
		addExecution(&x, info, r, c.Result, approvals)
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

// PreviewWithoutTool is Preview without the tool's own checks. It serves users who may not call the tool, because the
// checks read data and their results could reveal it.
func (g *Gate) PreviewWithoutTool(ctx context.Context, c reeve.Call) (reeve.Explanation, error) {
	return g.explainDecision(ctx, c, g.decideWithoutTool)
}

func (g *Gate) explainDecision(ctx context.Context, c reeve.Call,
	decide func(context.Context, *request) *Decision) (reeve.Explanation, error) {
	g.viewCache.invalidateAgents(c.Workspace) // no write follows that would detect an outdated view
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
		x.Outcome = "The call would be refused: " + reeve.AsError(refusal).Message
	case d.existing != nil:
		x.Outcome = "The stored result of operation " + d.existing.ID + " would be returned."
	case d.isProposal:
		x.Outcome = "The call would become a proposal for a person to accept."
	case d.waitReason != "":
		x.Outcome = "The call would wait for a person: " + d.waitReason
	default:
		x.Outcome = "The call would run."
	}
	if refusal == nil && slices.ContainsFunc(d.steps,
		func(s reeve.Step) bool { return s.Verdict == reeve.NotReached }) {
		x.Outcome = "Without the tool's own checks: " + x.Outcome
	}
	for _, name := range stepsAfterDecision {
		x.Steps = append(x.Steps, reeve.Step{Name: name, Verdict: reeve.NotReached})
	}
	return x, nil
}

// completeSteps adds the verdicts and steps that records leave out. A step that did not exist when the call was decided
// is not reached.
func completeSteps(trail []reeve.Step) []reeve.Step {
	out := make([]reeve.Step, 0, len(steps)+len(stepsAfterDecision))
	for _, s := range steps {
		i := slices.IndexFunc(trail, func(t reeve.Step) bool { return t.Name == s.name })
		if i < 0 {
			out = append(out, reeve.Step{Name: s.name, Verdict: reeve.NotReached})
			continue
		}
		t := trail[i]
		if t.Verdict == "" {
			t.Verdict = reeve.Passed
		}
		out = append(out, t)
	}
	return out
}

// addExecution adds the steps after the decision, the decisions of people and the outcome to an explanation.
func addExecution(x *reeve.Explanation, info reeve.ActionInfo, r reeve.ResultInfo, result *store.CallResult,
	approvals []reeve.Approval) {
	hasResult, content := result != nil, ""
	if hasResult {
		content = result.Content
	}
	x.Steps = completeSteps(info.Trace)
	for _, a := range approvals {
		applyApproval(x.Steps, a)
	}
	add := func(name string, v reeve.Verdict, format string, args ...any) {
		x.Steps = append(x.Steps, reeve.Step{Name: name, Verdict: v, Why: fmt.Sprintf(format, args...)})
	}
	applyRefusal(x.Steps, r.Step)
	x.Outcome = describeOutcome(*x, info, r, content, hasResult)
	switch {
	case hasResult && r.Attempts > 0:
		add("timeout", reeve.Passed, "took %d ms", r.Spent.Millis)
		add("invoke", reeve.Passed, "attempts: %d; %s", r.Attempts, r.Status)
		add("scrub", reeve.Passed, "")
		if r.Truncated {
			add("truncate", reeve.Passed, "truncated from %d bytes; the full output is stored as %s", r.Size, r.Hash)
		} else {
			add("truncate", reeve.Passed, "%d bytes, not truncated", r.Size)
		}
	case x.Operation != nil && (x.Operation.State == reeve.Dispatched || x.Operation.State == reeve.Unknown ||
		x.Operation.Resolution == reeve.ResolveHappened):
		add("timeout", reeve.Passed, "")
		add("invoke", reeve.Waits, "the call was sent and its outcome is not recorded")
		add("scrub", reeve.NotReached, "")
		add("truncate", reeve.NotReached, "")
	default:
		for _, name := range stepsAfterDecision[:len(stepsAfterDecision)-1] {
			add(name, reeve.NotReached, "")
		}
	}
	if hasResult {
		add("record", reeve.Passed, "as %s", result.ID)
	} else {
		add("record", reeve.NotReached, "")
	}
}

// applyApproval updates the steps with an approval and its decision. If there is an approval but no step waits, the
// call was decided again when it was resumed and a budget was exhausted by then.
func applyApproval(list []reeve.Step, a reeve.Approval) {
	waits := func(s reeve.Step) bool { return s.Verdict == reeve.Waits }
	if i := slices.IndexFunc(list, func(s reeve.Step) bool { return s.Name == "budget" }); i >= 0 &&
		!slices.ContainsFunc(list, waits) {
		list[i] = reeve.Step{Name: "budget", Verdict: reeve.Waits, Why: a.Why}
	}
	for i, s := range list {
		if waits(s) && a.State == reeve.ApprovalApproved {
			list[i].Verdict, list[i].Why = reeve.Passed, s.Why+"; approved by "+a.DecidedBy
		}
	}
}

// applyRefusal marks the step that refused a call after the call had passed at first, for example because its approval
// was denied. The steps after it count as not reached.
func applyRefusal(list []reeve.Step, by reeve.Step) {
	isAfter := false
	for i, s := range list {
		switch {
		case s.Name == by.Name:
			list[i], isAfter = by, true
		case isAfter:
			list[i] = reeve.Step{Name: s.Name, Verdict: reeve.NotReached}
		}
	}
}

// describeOutcome returns a sentence about the outcome of a call.
func describeOutcome(x reeve.Explanation, info reeve.ActionInfo, r reeve.ResultInfo, content string,
	hasResult bool) string {
	op := x.Operation
	switch {
	case !hasResult && x.Approval != nil && x.Approval.State == reeve.ApprovalExpired:
		return "The approval expired. The call will not run."
	case !hasResult && op != nil:
		return "The operation is " + string(op.State) + " and has no result yet."
	case !hasResult:
		return "The call has no result yet."
	case r.Attempts == 0 && op != nil && op.Resolution != "" && op.State != reeve.DeniedOp:
		return content
	case r.Attempts == 0 && r.Status == "error":
		return "The call was refused: " + r.Message
	case r.ProposalID != "":
		return content
	case info.Preview:
		return "The call previewed its change and changed nothing."
	case r.Status == "error":
		return "The call ran and failed: " + r.Message
	}
	return "The call ran and succeeded."
}
