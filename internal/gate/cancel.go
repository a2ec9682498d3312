package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// CancelForItem cancels the calls of an automation's item that wait for a person or were approved and have not started.
// It is used when a person skips or restarts the item. The approvals lapse with the given reason.
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
		denial := reeve.Errorf(reeve.Denied, "%s", why)
		if err := cancelOperation(ctx, tx, op, denial, refusedApprovalStep(denial)); err != nil {
			return err
		}
	}
	return nil
}

// CancelForRun cancels the parked calls of a run that was cancelled. For a run that has ended it also cancels the
// operations that await an outcome from outside.
func (g *Gate) CancelForRun(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if run.State.IsFinal() && (run.State != reeve.RunCompleted || run.PendingCalls > 0) {
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
		if op.State != reeve.Parked { // the worker refuses an approved call when it resumes it
			continue
		}
		obsolete, err := whyObsolete(ctx, tx, op)
		if err == nil && obsolete != nil {
			err = cancelUnlessDecided(ctx, tx, op, reeve.AsError(obsolete))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cancelUnlessDecided is cancelOperation, except that it does nothing if a person has decided meanwhile.
func cancelUnlessDecided(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error) error {
	if err := cancelOperation(ctx, tx, op, why, refusedApprovalStep(why)); err != nil &&
		reeve.CodeOf(err) != reeve.Conflict {
		return err
	}
	return nil
}

// cancelOperation denies an operation that is parked, or prepared and not started. Its approval lapses.
func cancelOperation(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error, step reeve.Step) error {
	a, found, err := tx.Ledger().LastApproval(ctx, op.ID)
	if err != nil {
		return err
	}
	was := reeve.ApprovalPending
	if op.State == reeve.Prepared {
		was = reeve.ApprovalApproved
	}
	if found && a.State == was {
		// an approved one keeps the comment of the person
		if a.State = reeve.ApprovalLapsed; was == reeve.ApprovalPending {
			a.Comment = why.Message
		}
		if err := tx.Ledger().TransitionApproval(ctx, a, was); err != nil {
			return err
		}
	}
	return denyOperation(ctx, tx, op, why, step)
}

// refusedApprovalStep returns the approval step as it is recorded for a cancelled or denied operation.
func refusedApprovalStep(why *reeve.Error) reeve.Step {
	return reeve.Step{Name: "approval", Verdict: reeve.Refused, Why: why.Message}
}

// whyItemObsolete returns why a call of a script must not run any more, or nil. A person may have skipped or restarted
// its item while the call waited.
func whyItemObsolete(ctx context.Context, tx *store.Tx, op reeve.Operation,
	info reeve.ActionInfo) (obsolete, err error) {
	if info.Item == "" {
		return nil, nil
	}
	v, err := tx.Automations().GetItem(ctx, op.AgentID, info.Item)
	switch {
	case err != nil:
		return nil, err
	case v.State == reeve.ItemSkipped:
		return reeve.Errorf(reeve.Denied, "a person skipped the item %q of this call", v.ID), nil
	case v.Attempt != info.Attempt:
		return reeve.Errorf(reeve.Denied, "a person restarted the item %q of this call", v.ID), nil
	}
	return nil, nil
}

// getRequestInfo returns the stored request of an operation's call.
func getRequestInfo(ctx context.Context, s *store.Snap, op reeve.Operation) (info reeve.ActionInfo, err error) {
	c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return info, err
	}
	return c.RequestInfo()
}

// retiredAgent is an agent that was destroyed or removed. How holds the word for error messages.
type retiredAgent struct {
	reeve.Agent
	how string
}

// CancelForAgent cancels everything that waits for a person and was requested by a destroyed or removed agent, or on
// its behalf. Approvals lapse and proposals become stale. Calls that were approved before are refused when the worker
// resumes them. End says how the agent ended: "destroyed" or "removed".
func (g *Gate) CancelForAgent(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error {
	r := retiredAgent{a, end}
	parked, err := tx.Ledger().ParkedOperations(ctx, a.WorkspaceID)
	if err != nil {
		return err
	}
	ownerOf := func(op reeve.Operation) (agent, run string) { return op.AgentID, op.RunID }
	err = forEachActingFor(ctx, tx, r, parked, ownerOf, func(op reeve.Operation, why *reeve.Error) error {
		return cancelUnlessDecided(ctx, tx, op, why)
	})
	if err != nil {
		return err
	}
	return markProposalsStale(ctx, tx, r)
}

// markProposalsStale marks the pending proposals of an agent, and those made on its behalf, as stale.
func markProposalsStale(ctx context.Context, tx *store.Tx, r retiredAgent) error {
	for before := ""; ; {
		list, err := tx.Ledger().ListProposals(ctx, r.WorkspaceID, store.ProposalFilter{State: reeve.ProposalPending,
			Before: before, Limit: itemsPerPage})
		if err != nil || len(list) == 0 {
			return err
		}
		before = list[len(list)-1].ID
		err = forEachActingFor(ctx, tx, r, list, func(p reeve.Proposal) (string, string) { return p.AgentID, p.RunID },
			func(p reeve.Proposal, why *reeve.Error) error {
				p.State, p.Comment = reeve.ProposalStale, why.Message
				if err := tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending); !mustDecideAgain(err) {
					return err
				}
				return nil // a person has decided meanwhile
			})
		if err != nil {
			return err
		}
	}
}

// forEachActingFor calls do for each value that belongs to the agent or to a run on its behalf, with the reason for
// cancelling it.
func forEachActingFor[T any](ctx context.Context, tx *store.Tx, r retiredAgent, list []T,
	ownerOf func(T) (agent, run string),
	do func(v T, why *reeve.Error) error) error {
	var runs []string
	for _, v := range list {
		if _, run := ownerOf(v); run != "" {
			runs = append(runs, run)
		}
	}
	led, err := tx.Runs().RunsActingFor(ctx, r.ID, runs)
	for i := 0; i < len(list) && err == nil; i++ {
		switch agent, run := ownerOf(list[i]); {
		case agent == r.ID:
			err = do(list[i], reeve.Errorf(reeve.Denied, "the agent was %s", r.how))
		case led[run]:
			err = do(list[i], reeve.Errorf(reeve.Denied, "%s, on whose behalf this runs, was %s", r.Name, r.how))
		}
	}
	return err
}
