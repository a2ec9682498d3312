package gate

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// Undo makes the call that undoes an operation. The call passes the gate like any other and has the user of the
// operation, not the user who requests the undo. The tool refuses it with Stale if the
// target has changed since. Repeating an undo returns the first result. An undo that failed, was refused or was itself
// undone can be made again.
func (g *Gate) Undo(ctx context.Context, workspace, id, by string, via reeve.Via) (reeve.Result, error) {
	var op reeve.Operation
	var info reeve.ActionInfo
	key := ""
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if op, err = s.Ledger().GetOperation(ctx, workspace, id); err != nil {
			return err
		}
		if key, err = nextUsableID(ctx, s, workspace, undoKey(id)); err != nil {
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
			Hintf("only committed operations whose tool provides an undo can be undone")
	}
	return g.call(ctx, reeve.Call{Workspace: workspace, Agent: op.AgentID, Tool: op.Undo.Tool, Args: op.Undo.Args,
		Tools: []string{op.Undo.Tool}, Session: info.Session, Run: op.RunID,
		Operation: key, User: info.User, Via: via, Reason: "undo of " + op.ID + ", requested by " + by},
		origin{undoes: op.ID})
}

// explainOnlyProposed returns the conflict for undoing a call that was only proposed. The hint says what to do instead.
func explainOnlyProposed(ctx context.Context, s *store.Snap, op reeve.Operation) error {
	item, err := getProposalOf(ctx, s, op)
	if err != nil {
		return err
	}
	hint := "nothing was applied, so there is nothing to undo"
	switch item.State {
	case reeve.ProposalApplied:
		hint = "undo the applied operation: reeve operations undo " + item.OperationID
	case reeve.ProposalPending:
		hint = "reject it: reeve proposals reject " + item.ID
	case reeve.ProposalAccepted, reeve.ProposalUnknown:
		hint = "check the operation that applies it: reeve operations show " + item.OperationID
	case reeve.ProposalRejected, reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalStale:
	}
	return reeve.Errorf(reeve.Conflict, "operation %s is only the proposal %s: %s", op.ID, item.ID,
		cmp.Or(describeSinceProposed(item), "it waits for a person")).Hintf("%s", hint)
}

func undoKey(operation string) string {
	return reeve.DeriveID(reeve.PrefixOperation, "undo", operation)
}

// nextUsableID returns the operation id for an action that can be repeated after it failed or was undone. Such an
// attempt uses up its id. nextUsableID returns the first id of the sequence that is unused or whose operation is not
// void.
func nextUsableID(ctx context.Context, s *store.Snap, workspace, first string) (string, error) {
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

// isVoid reports whether an operation has ended without a lasting effect, because it was refused, failed or was undone.
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
	case reeve.Parked: // void if its approval has expired
		a, _, err := s.Ledger().LastApproval(ctx, op.ID)
		return a.HasExpired(s.Now()), err
	case reeve.Prepared, reeve.Dispatched, reeve.Unknown:
	}
	return false, nil
}

// wasUndone reports whether a committed operation is undone at present. An undo that was itself undone does not count.
func wasUndone(ctx context.Context, s *store.Snap, op reeve.Operation) (bool, error) {
	key, err := nextUsableID(ctx, s, op.WorkspaceID, undoKey(op.ID))
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
