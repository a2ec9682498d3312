package gate

import (
	"context"
	"encoding/json"
	"fmt"

	"reeve"
	"reeve/internal/store"
)

// Explain says what each step said of a past call. The id is the call's or its operation's.
func (g *Gate) Explain(ctx context.Context, workspace, id string) (x reeve.Explanation, err error) {
	err = g.DB.View(ctx, func(s *store.Snap) error {
		op, found, err := s.FindOperation(ctx, workspace, id)
		if err != nil {
			return err
		}
		call := id
		if found {
			call = op.CallID
		}
		m, err := s.GetMessage(ctx, workspace, call)
		if err != nil || m.Kind != reeve.Action {
			return reeve.Errorf(reeve.NotFound, "call %q not found", id)
		}
		if !found && m.OperationID != "" {
			if op, found, err = s.FindOperation(ctx, workspace, m.OperationID); err != nil {
				return err
			}
		}
		var info reeve.ActionInfo
		if err := json.Unmarshal(m.Metadata, &info); err != nil {
			return err
		}
		x = reeve.Explanation{CallID: m.ID, OperationID: m.OperationID, Agent: m.AgentID, Tool: info.Tool, Steps: info.Trail}
		if found && op.CallID == m.ID {
			x.Operation = &op
			if a, ok, err := s.LastApproval(ctx, op.ID); err != nil {
				return err
			} else if ok {
				x.Approval = &a
			}
		}
		res, answered, err := s.GetResult(ctx, m.ID)
		if err != nil {
			return err
		}
		return complete(&x, info, res, answered)
	})
	return x, err
}

// Judge says what the gate would say of a call now, and makes it not.
func (g *Gate) Judge(ctx context.Context, c reeve.Call) (reeve.Explanation, error) {
	g.views.forget(c.Workspace) // nothing is written, so nothing would find out that the view is old
	p, err := g.begin(ctx, c)
	if err != nil {
		return reeve.Explanation{}, err
	}
	refusal := p.judge(ctx)
	if reeve.CodeOf(refusal) == reeve.Internal && refusal != nil {
		return reeve.Explanation{}, refusal
	}
	x := reeve.Explanation{Agent: p.call.Agent, Tool: c.Tool, Hypothetical: true, Steps: fill(p.trail)}
	switch {
	case refusal != nil:
		x.Outcome = "It would be refused: " + reeve.AsError(refusal).Message
	case p.existing != nil:
		x.Outcome = "The stored result of operation " + p.existing.ID + " would be given."
	case p.waits != "":
		x.Outcome = "It would wait for a person: " + p.waits
	default:
		x.Outcome = "It would run."
	}
	for _, name := range after {
		x.Steps = append(x.Steps, reeve.Step{Name: name, Verdict: reeve.NotReached})
	}
	return x, nil
}

// fill adds the verdicts and steps that records leave out.
func fill(trail []reeve.Step) []reeve.Step {
	out := make([]reeve.Step, 0, len(steps)+len(after))
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

// complete describes what came after the judgement.
func complete(x *reeve.Explanation, info reeve.ActionInfo, m reeve.Message, answered bool) error {
	x.Steps = fill(info.Trail)
	add := func(name string, v reeve.Verdict, format string, args ...any) {
		x.Steps = append(x.Steps, reeve.Step{Name: name, Verdict: v, Why: fmt.Sprintf(format, args...)})
	}
	if !answered {
		state := "It has no result yet."
		if x.Operation != nil {
			state = "It is " + string(x.Operation.State) + ", and has no result yet."
		}
		for _, name := range after {
			add(name, reeve.NotReached, "")
		}
		x.Outcome = state
		return nil
	}
	var r reeve.ResultInfo
	if err := json.Unmarshal(m.Metadata, &r); err != nil {
		return err
	}
	if r.Step.Name != "" || r.Attempts == 0 {
		for _, name := range after[:len(after)-1] {
			add(name, reeve.NotReached, "")
		}
		add("record", reeve.Passed, "as %s", m.ID)
		x.Outcome = "It ran nothing."
		if r.Status == "error" {
			x.Outcome = "It was refused: " + r.Message
		} else if info.Preview {
			x.Outcome = "It showed what would change, and changed nothing."
		} else if x.Operation != nil && x.Operation.Resolution != "" {
			x.Outcome = m.Content
		}
		return nil
	}
	add("timeout", reeve.Passed, "took %d ms", r.Spent.Millis)
	add("invoke", reeve.Passed, "%d attempts, %s", r.Attempts, r.Status)
	add("scrub", reeve.Passed, "")
	if r.Truncated {
		add("truncate", reeve.Passed, "cut from %d bytes; the whole is kept as %s", r.Size, r.Hash)
	} else {
		add("truncate", reeve.Passed, "%d bytes, not cut", r.Size)
	}
	add("record", reeve.Passed, "as %s", m.ID)
	x.Outcome = "It ran and succeeded."
	if r.Status == "error" {
		x.Outcome = "It ran and failed: " + r.Message
	}
	return nil
}
