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
		info, err := askedAs(ctx, &tx.Snap, op)
		if err != nil {
			return err
		}
		if op.AgentID != v.AgentID || info.Item != v.ID || info.Attempt != v.Attempt {
			continue
		}
		said := reeve.Errorf(reeve.Denied, "%s", why)
		if err := takeBack(ctx, tx, op, said, unwanted(said)); err != nil {
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
		void, err := outlived(ctx, tx, op)
		if err == nil && void != nil {
			err = unask(ctx, tx, op, reeve.AsError(void))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unask is takeBack, unless a person was faster.
func unask(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error) error {
	if err := takeBack(ctx, tx, op, why, unwanted(why)); err != nil && reeve.CodeOf(err) != reeve.Conflict {
		return err
	}
	return nil
}

// takeBack denies an operation that waits for a person, or that one has let go and that has not begun. Its approval
// lapses.
func takeBack(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error, step reeve.Step) error {
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
	return deny(ctx, tx, op, why, step)
}

// unwanted is the step that refuses what nobody is asked about any more.
func unwanted(why *reeve.Error) reeve.Step {
	return reeve.Step{Name: "approval", Verdict: reeve.Refused, Why: why.Message}
}

// settled says why a call of a script must not run any more: a person has skipped its item, or begun it anew, while it
// waited.
func settled(ctx context.Context, tx *store.Tx, op reeve.Operation, info reeve.ActionInfo) (void, err error) {
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

// askedAs is what an operation's call said of itself.
func askedAs(ctx context.Context, s *store.Snap, op reeve.Operation) (info reeve.ActionInfo, err error) {
	c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return info, err
	}
	return c.RequestInfo()
}
