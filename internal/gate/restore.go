package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// MarkUncertainUnknown marks operations as unknown after a restore from a backup, if they may have been executed since
// the backup and their tools cannot verify that. A person then resolves them, and nothing is sent twice. It is part of
// the transaction that resumes a held server.
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
			if op.State == reeve.Prepared { // it may have been dispatched since the backup
				sent := op
				sent.State = reeve.Dispatched
				if err := tx.Ledger().TransitionOperation(ctx, op, sent, nil); err != nil {
					return err
				}
				op = sent
			}
			if err := g.setUnknown(ctx, tx, op,
				"the server was restored from a backup; the call may have been executed since"); err != nil {
				return err
			}
		}
	}
	return nil
}

// setUnknown marks an operation as unknown without calling its tool, and releases its budget reservation.
func (g *Gate) setUnknown(ctx context.Context, tx *store.Tx, op reeve.Operation, why string) error {
	is := op
	is.State, is.Code, is.Message, is.Resolution = reeve.Unknown, reeve.UnknownOutcome, why, ""
	is.Owner, is.NextAttemptAt, is.TimeoutAt = "", nil, nil
	is.Attempts++
	if err := tx.Ledger().Spend(ctx, op.WorkspaceID, nil, op.CallID, reeve.Amount{}); err != nil {
		return err
	}
	if err := tx.Ledger().TransitionOperation(ctx, op, is, nil); err != nil {
		return err
	}
	return g.notifyUnknown(ctx, tx, is)
}

// checkNotHeld returns an error while the server is held.
func checkNotHeld(ctx context.Context, s *store.Snap) error {
	hold, err := s.System().Hold(ctx)
	if err == nil && hold != nil {
		err = hold.Err()
	}
	return err
}
