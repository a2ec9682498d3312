package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// MarkUncertainUnknown makes every operation of a restored database unknown that may have happened since the backup and
// whose tool cannot tell: a person says what became of it, and nothing is sent a second time. It is part of the
// transaction that resumes a held server.
func (g *Gate) MarkUncertainUnknown(ctx context.Context, tx *store.Tx) error {
	workspaces, err := tx.Agents().WorkspaceIDs(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		ops, err := tx.System().OperationsInProgress(ctx, w)
		if err != nil {
			return err
		}
		for _, op := range ops {
			if !op.IsUncertainAfterRestore() {
				continue
			}
			if op.State == reeve.Prepared { // it may have left since the backup
				sent := op
				sent.State = reeve.Dispatched
				if err := tx.Ledger().TransitionOperation(ctx, op, sent, nil); err != nil {
					return err
				}
				op = sent
			}
			if err := g.setUnknown(ctx, tx, op,
				"the server was restored from a backup, and this may have been done since"); err != nil {
				return err
			}
		}
	}
	return nil
}

// setUnknown leaves an operation to a person, without asking anybody what became of it. It holds on to no budget.
func (g *Gate) setUnknown(ctx context.Context, tx *store.Tx, op reeve.Operation, why string) error {
	is := op
	is.State, is.Code, is.Message, is.Resolution = reeve.Unknown, reeve.UnknownOutcome, why, ""
	is.Owner, is.NextAttemptAt, is.TimeoutAt = "", nil, nil
	is.Tries++
	if err := tx.Ledger().Spend(ctx, op.WorkspaceID, nil, op.CallID, reeve.Amount{}); err != nil {
		return err
	}
	if err := tx.Ledger().TransitionOperation(ctx, op, is, nil); err != nil {
		return err
	}
	return g.notifyUnknown(ctx, tx, is)
}

// checkNotHeld refuses what only a person may let go on while the server is held.
func checkNotHeld(ctx context.Context, s *store.Snap) error {
	hold, err := s.System().Hold(ctx)
	if err == nil && hold != nil {
		err = hold.Err()
	}
	return err
}
