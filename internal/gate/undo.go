package gate

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// Undo makes the call that takes an operation back, through the gate like any other, on behalf of the one whom the
// operation was for: whoever asks for it, it is their things that were changed. Doing it twice does it once; one that
// came to nothing, or that was taken back in its turn, can be made again.
func (g *Gate) Undo(ctx context.Context, workspace, id, by string, via reeve.Via) (reeve.Result, error) {
	var op reeve.Operation
	var info reeve.ActionInfo
	key := ""
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if op, err = s.Ledger().GetOperation(ctx, workspace, id); err != nil {
			return err
		}
		if key, err = currentKey(ctx, s, workspace, undoKey(id)); err != nil {
			return err
		}
		if op.State == reeve.ProposedOp {
			return explainOnlyProposed(ctx, s, op)
		}
		info, err = getRequestInfo(ctx, s, op)
		return err
	})
	if err != nil {
		return reeve.Result{}, err
	}
	if op.State != reeve.Committed || op.Undo == nil {
		return reeve.Result{}, reeve.Errorf(reeve.Unsupported, "operation %s cannot be undone", id).
			Hintf("only committed operations whose tool says how can be")
	}
	return g.call(ctx, reeve.Call{Workspace: workspace, Agent: op.AgentID, Tool: op.Undo.Tool, Args: op.Undo.Args,
		Tools: []string{op.Undo.Tool}, Session: info.Session, Run: op.RunID,
		Operation: key, User: info.User, Via: via, Reason: "undo of " + op.ID + ", asked for by " + by}, op.ID)
}

// explainOnlyProposed says why a call that was only proposed cannot be taken back, and what can.
func explainOnlyProposed(ctx context.Context, s *store.Snap, op reeve.Operation) error {
	item, err := getProposalOf(ctx, s, op)
	if err != nil {
		return err
	}
	hint := "nothing was applied, and there is nothing to take back"
	switch item.State {
	case reeve.ProposalApplied:
		hint = "take that one back: reeve operations undo " + item.OperationID
	case reeve.ProposalPending:
		hint = "reject it: reeve proposals reject " + item.ID
	case reeve.ProposalAccepted, reeve.ProposalUnknown:
		hint = "see what becomes of it: reeve operations get " + item.OperationID
	case reeve.ProposalRejected, reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalStale:
	}
	return reeve.Errorf(reeve.Conflict, "operation %s only proposed something, as %s: %s", op.ID, item.ID,
		cmp.Or(describeSinceProposed(item), "it waits for a person")).Hintf("%s", hint)
}

func undoKey(operation string) string { return reeve.Key(reeve.PrefixOperation, "undo", operation) }

// currentKey gives an operation's id, or the next of those under which it is made again: the first that was not used, or
// whose operation did not come to nothing.
func currentKey(ctx context.Context, s *store.Snap, workspace, first string) (string, error) {
	for again, key := 1, first; ; again++ {
		op, used, err := s.Ledger().FindOperation(ctx, workspace, key)
		if err != nil || !used {
			return key, err
		}
		void, err := isVoid(ctx, s, op)
		if err != nil || !void {
			return key, err
		}
		key = reeve.RetryKey(first, again)
	}
}

// isVoid tells whether an operation is over and nothing is left of it: it was refused, has failed, or was taken
// back.
func isVoid(ctx context.Context, s *store.Snap, op reeve.Operation) (bool, error) {
	switch op.State {
	case reeve.DeniedOp, reeve.Failed:
		return true, nil
	case reeve.Committed:
		return wasUndone(ctx, s, op)
	case reeve.ProposedOp:
		item, err := getProposalOf(ctx, s, op)
		if err != nil || item.State != reeve.ProposalApplied {
			return item.State.IsVoid(), err
		}
		applied, err := s.Ledger().GetOperation(ctx, op.WorkspaceID, item.OperationID)
		if err != nil {
			return false, err
		}
		return wasUndone(ctx, s, applied)
	case reeve.Parked: // it is over if nobody has answered in time
		a, _, err := s.Ledger().LastApproval(ctx, op.ID)
		return a.HasExpired(s.Now()), err
	case reeve.Prepared, reeve.Dispatched, reeve.Unknown:
	}
	return false, nil
}

// wasUndone tells whether an operation that was committed has been taken back, and that has not been taken back in its
// turn.
func wasUndone(ctx context.Context, s *store.Snap, op reeve.Operation) (bool, error) {
	key, err := currentKey(ctx, s, op.WorkspaceID, undoKey(op.ID))
	if err != nil {
		return false, err
	}
	undo, made, err := s.Ledger().FindOperation(ctx, op.WorkspaceID, key)
	if err != nil || !made || undo.State != reeve.ProposedOp {
		return made && undo.State == reeve.Committed, err
	}
	item, err := getProposalOf(ctx, s, undo)
	return item.State == reeve.ProposalApplied, err
}
