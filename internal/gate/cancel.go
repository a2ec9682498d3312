package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// CancelForItem takes back the calls of an automation's item that wait for a person, or that were approved and have not
// begun: a person has settled the item otherwise. Their approvals lapse, and say why.
func (g *Gate) CancelForItem(ctx context.Context, tx *store.Tx, v reeve.Item, why string) error {
	list, err := tx.Ledger().WaitingOperations(ctx, v.WorkspaceID, v.LastRun)
	if err != nil {
		return err
	}
	for _, op := range list {
		info, err := getRequestInfo(ctx, &tx.Snap, op)
		if err != nil {
			return err
		}
		if op.AgentID != v.AgentID || info.Item != v.ID || info.Attempt != v.Attempt {
			continue
		}
		said := reeve.Errorf(reeve.Denied, "%s", why)
		if err := cancelOperation(ctx, tx, op, said, refusedApprovalStep(said)); err != nil {
			return err
		}
	}
	return nil
}

// CancelForRun takes back the calls that wait for a person of a run that was cancelled: nobody is asked about what can
// run no more. What a run that is over waits for from outside, it does not wait for any more.
func (g *Gate) CancelForRun(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if run.State.Final() && (run.State != reeve.RunCompleted || run.Pending > 0) {
		if err := tx.Ledger().CancelAwaited(ctx, run); err != nil {
			return err
		}
	}
	if run.State != reeve.RunCancelled {
		return nil
	}
	list, err := tx.Ledger().WaitingOperations(ctx, run.WorkspaceID, run.ID)
	if err != nil {
		return err
	}
	for _, op := range list {
		if op.State != reeve.Parked { // what was approved is refused when its turn comes
			continue
		}
		void, err := whyObsolete(ctx, tx, op)
		if err == nil && void != nil {
			err = cancelUnlessDecided(ctx, tx, op, reeve.AsError(void))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cancelUnlessDecided is takeBack, unless a person was faster.
func cancelUnlessDecided(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error) error {
	if err := cancelOperation(ctx, tx, op, why, refusedApprovalStep(why)); err != nil && reeve.CodeOf(err) != reeve.Conflict {
		return err
	}
	return nil
}

// cancelOperation denies an operation that waits for a person, or that one has let go and that has not begun. Its approval
// lapses.
func cancelOperation(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error, step reeve.Step) error {
	a, asked, err := tx.Ledger().LastApproval(ctx, op.ID)
	if err != nil {
		return err
	}
	was := reeve.Pending
	if op.State == reeve.Prepared {
		was = reeve.Approved
	}
	if asked && a.State == was {
		if a.State = reeve.Lapsed; was == reeve.Pending { // otherwise what the person said stays
			a.Comment = why.Message
		}
		if err := tx.Ledger().TransitionApproval(ctx, a, was); err != nil {
			return err
		}
	}
	return denyOperation(ctx, tx, op, why, step)
}

// refusedApprovalStep is the step that refuses what nobody is asked about any more.
func refusedApprovalStep(why *reeve.Error) reeve.Step {
	return reeve.Step{Name: "approval", Verdict: reeve.Refused, Why: why.Message}
}

// whyItemObsolete says why a call of a script must not run any more: a person has skipped its item, or begun it anew, while it
// waited.
func whyItemObsolete(ctx context.Context, tx *store.Tx, op reeve.Operation, info reeve.ActionInfo) (void, err error) {
	if info.Item == "" {
		return nil, nil
	}
	v, err := tx.Automations().GetItem(ctx, op.AgentID, info.Item)
	switch {
	case err != nil:
		return nil, err
	case v.State == reeve.ItemSkipped:
		return reeve.Errorf(reeve.Denied, "the item %q that it was for was skipped by a person", v.ID), nil
	case v.Attempt != info.Attempt:
		return reeve.Errorf(reeve.Denied, "the item %q that it was for was begun anew by a person", v.ID), nil
	}
	return nil, nil
}

// getRequestInfo is what an operation's call said of itself.
func getRequestInfo(ctx context.Context, s *store.Snap, op reeve.Operation) (info reeve.ActionInfo, err error) {
	c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return info, err
	}
	return c.RequestInfo()
}

// retiredAgent is an agent that is gone, or about to be, and how it ended.
type retiredAgent struct {
	reeve.Agent
	how string
}

// CancelForAgent takes back what waits for a person of an agent that was destroyed or removed, as end says, and what
// others asked for or proposed on its behalf: none of it can run any more. Approvals lapse, and proposals are stale.
// What a person has answered before is refused when it is taken up.
func (g *Gate) CancelForAgent(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error {
	r := retiredAgent{a, end}
	parked, err := tx.Ledger().ParkedOperations(ctx, a.WorkspaceID)
	if err != nil {
		return err
	}
	err = forEachActingFor(ctx, tx, r, parked, func(op reeve.Operation) (string, string) { return op.AgentID, op.RunID },
		func(op reeve.Operation, why *reeve.Error) error {
			return cancelUnlessDecided(ctx, tx, op, why)
		})
	if err != nil {
		return err
	}
	return markProposalsStale(ctx, tx, r)
}

// markProposalsStale makes stale what was proposed by an agent, or on its behalf, and nobody has answered.
func markProposalsStale(ctx context.Context, tx *store.Tx, r retiredAgent) error {
	for before := ""; ; {
		list, err := tx.Ledger().
			ListProposals(ctx, r.WorkspaceID, store.ProposalFilter{State: reeve.ProposalPending, Before: before,
				Limit: itemsPerPage})
		if err != nil || len(list) == 0 {
			return err
		}
		before = list[len(list)-1].ID
		err = forEachActingFor(ctx, tx, r, list, func(p reeve.Proposal) (string, string) { return p.AgentID, p.RunID },
			func(p reeve.Proposal, why *reeve.Error) error {
				p.State, p.Comment = reeve.ProposalStale, why.Message
				// by a person's answer
				if err := tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending); !mustDecideAgain(err) {
					return err
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
}

// forEachActingFor does something with those of a list that end with an agent: its own, and those of runs that there are on its
// behalf.
func forEachActingFor[T any](ctx context.Context, tx *store.Tx, r retiredAgent, list []T, whose func(T) (agent, run string),
	do func(v T, why *reeve.Error) error) error {
	var runs []string
	for _, v := range list {
		if _, run := whose(v); run != "" {
			runs = append(runs, run)
		}
	}
	led, err := tx.Runs().RunsActingFor(ctx, r.ID, runs)
	for i := 0; i < len(list) && err == nil; i++ {
		switch agent, run := whose(list[i]); {
		case agent == r.ID:
			err = do(list[i], reeve.Errorf(reeve.Denied, "the agent was %s", r.how))
		case led[run]:
			err = do(list[i], reeve.Errorf(reeve.Denied, "%s, on whose behalf this runs, was %s", r.Name, r.how))
		}
	}
	return err
}
