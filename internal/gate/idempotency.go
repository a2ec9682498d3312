package gate

import (
	"context"
	"errors"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// findExisting looks up an earlier operation with the same id and whether it belongs to another user. The ids of undos
// and of calls by models and scripts are derived by Reeve from what they do, so the user does not matter for them.
func (d *decider) findExisting(ctx context.Context) error {
	return d.g.DB.View(ctx, func(s *store.Snap) error {
		op, ok, err := s.Ledger().FindOperation(ctx, d.call.Workspace, d.operation)
		if err != nil || !ok {
			return err
		}
		d.existing = &op
		if op.State == reeve.Parked {
			if err := d.findExpiredApproval(ctx, s, op.ID); err != nil {
				return err
			}
		}
		if d.call.Via.IsFromBrain() || d.undoes != "" {
			return nil
		}
		info, err := getRequestInfo(ctx, s, op)
		d.existingOfOtherUser = info.User != d.call.User
		return err
	})
}

// findExpiredApproval sets expiredOperation if the approval of a parked operation has expired.
func (d *decider) findExpiredApproval(ctx context.Context, s *store.Snap, operation string) error {
	a, _, err := s.Ledger().LastApproval(ctx, operation)
	if err == nil && a.HasExpired(s.Now()) {
		d.expiredOperation = operation
	}
	return err
}

// checkIdempotency makes sure that an operation id is used for one call only. Repeating the same call returns the
// stored result. Any other call with the id is a conflict.
func (d *decider) checkIdempotency(context.Context) (string, error) {
	switch {
	case !d.leavesOperation():
		return "the call leaves no operation", nil
	case d.idUsedElsewhere:
		return "", errIDUsed
	case d.resumed != nil:
		return "the operation is resumed", nil
	case d.existing == nil:
		return "the operation is new", nil
	case d.existingOfOtherUser: // first, so that the error does not reveal whether the arguments are the same
		return "", errIDOfOtherUser
	case d.existing.AgentID != d.call.Agent || d.existing.Tool != d.tool().ID || d.existing.ArgsHash != d.argsHash:
		return "", errIDUsed
	// an item of a script is processed once, in any of its runs
	case !d.call.Via.IsFromBrain() && d.existing.ThreadID != d.thread:
		return "", idUsedInThread(d.existing.ThreadID, d.call.Agent)
	}
	return "the same call was made before; its stored result is returned", nil
}

var errIDUsed = reeve.Errorf(reeve.Conflict, "the operation id was used before, for another call").
	Hintf("nothing was executed; use a new Idempotency-Key for a new call")

var errIDOfOtherUser = reeve.Errorf(reeve.Conflict,
	"the operation id was used before, for a call of another user").
	Hintf("nothing was executed; use a new Idempotency-Key for your own call")

// idUsedInThread returns the conflict for an operation id that was used for the same call in another session or run.
func idUsedInThread(thread, agent string) error {
	kind, name, _ := strings.Cut(strings.TrimPrefix(thread, agent+":"), ":")
	return reeve.Errorf(reeve.Conflict, "the operation id was used before, for this call in the %s %q", kind, name).
		Hintf("nothing was executed; use a new Idempotency-Key to make the call in another session or run")
}

// syncAfterConflict waits until the write that conflicted with this call is committed and visible, so that the next
// decision takes it into account. It returns true if the operation id belongs to another workspace, which a new
// decision cannot see.
func (d *Decision) syncAfterConflict(ctx context.Context, by error) (elsewhere bool, err error) {
	err = d.g.syncCommits(ctx, d.call.Workspace, func(tx *store.Tx) error {
		if errors.As(by, new(store.ErrDuplicateOperation)) {
			_, mine, err := tx.Ledger().FindOperation(ctx, d.call.Workspace, d.operation)
			elsewhere = !mine
			return err
		}
		return nil
	})
	return elsewhere, err
}

// syncCommits runs look in an update and invalidates the cached views of the workspace. With group commit, a
// conflicting write may not be committed yet when it is detected. An update of our own returns only after it.
func (g *Gate) syncCommits(ctx context.Context, workspace string, look func(*store.Tx) error) error {
	defer g.viewCache.invalidate(workspace)
	return g.DB.Update(ctx, look)
}

// replay returns the current result of a call that was made before, without writing anything.
func (d *Decision) replay(ctx context.Context) (res reeve.Result, err error) {
	err = d.g.DB.View(ctx, func(s *store.Snap) error {
		res, err = currentResult(ctx, s, *d.existing)
		return err
	})
	return res, err
}

// CurrentResult returns the current result of an operation, as a repeated call with the same id would get it. It first
// closes the operation's approval if that has expired.
func (g *Gate) CurrentResult(ctx context.Context, workspace, operation string) (res reeve.Result, err error) {
	if err := g.Inbox.expireApprovalOf(ctx, operation); err != nil {
		return res, err
	}
	err = g.DB.View(ctx, func(s *store.Snap) error {
		op, err := s.Ledger().GetOperation(ctx, workspace, operation)
		if err == nil {
			res, err = currentResult(ctx, s, op)
		}
		return err
	})
	return res, err
}

func currentResult(ctx context.Context, s *store.Snap, op reeve.Operation) (res reeve.Result, err error) {
	c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return res, err
	}
	op = c.Operation // consistent with c.Result
	switch {
	case c.Result != nil:
		res, err = storedResult(c)
		if err == nil && op.State == reeve.ProposedOp {
			var item reeve.Proposal
			item, err = s.Ledger().GetProposal(ctx, op.WorkspaceID, res.ProposalID)
			if since := describeSinceProposed(item); err == nil && since != "" {
				res.Content += "\nSince then: " + since + "."
			}
		}
	default:
		if res = pendingResult(op); op.State == reeve.Parked {
			var a reeve.Approval
			a, _, err = s.Ledger().LastApproval(ctx, op.ID)
			res.ApprovalID = a.ID
		}
	}
	res.Replayed = true
	return res, err
}

// storedResult returns the recorded result of a call.
func storedResult(c store.Call) (reeve.Result, error) {
	info, err := c.Result.ResultInfo()
	if err != nil {
		return reeve.Result{}, err
	}
	return reeve.Result{CallID: c.Operation.CallID, OperationID: c.Operation.ID, State: c.Operation.State,
		Content: c.Result.Content, IsError: info.Status == "error", Code: info.Code, Message: info.Message,
		Hint: info.Hint, Fields: info.Fields, Truncated: info.Truncated, Size: info.Size, Hash: info.Hash,
		Undo: info.Undo, Changed: info.Changed, Spent: info.Spent, ProposalID: info.ProposalID,
		Warnings: info.Warnings}, nil
}

// checkRun refuses calls in a run that waits for a person, and new calls in a run that has ended. Recorder.insert
// checks again that the run is open. An undo is a person's call and may follow the end of the run. A call that replaces
// a parked one does not wait for that one.
func (d *decider) checkRun(ctx context.Context) error {
	if d.undoes != "" {
		return nil
	}
	brain := d.call.Via.IsFromBrain()
	return d.g.DB.View(ctx, func(s *store.Snap) error {
		if brain || d.resumed == nil {
			over, err := whyRunEnded(ctx, s, d.call.Workspace, d.call.Run)
			if err != nil {
				return err
			}
			if over != nil {
				return over
			}
		}
		if d.resumed != nil {
			return nil
		}
		d.requiresOpenRun = true
		parked, err := s.Ledger().FindParkedOperation(ctx, d.call.Workspace, d.call.Run)
		if d.replaces != nil && parked == d.replaces.approval.OperationID {
			parked = ""
		}
		if err == nil && parked != "" {
			err = d.findExpiredApproval(ctx, s, parked)
		}
		if err == nil && parked != "" {
			err = reeve.Errorf(reeve.Conflict, "the run waits for a person to decide on operation %s", parked).
				Hintf("see reeve inbox")
		}
		return err
	})
}

// whyRunEnded returns the refusal of a call in a run that has ended, or nil if the run is open.
func whyRunEnded(ctx context.Context, s *store.Snap, workspace, run string) (over, err error) {
	state, err := s.Runs().RunState(ctx, workspace, run)
	if err == nil && state != "" && state.IsFinal() {
		over = reeve.Errorf(reeve.Conflict, "the run has ended: it is %s", state).
			Hintf("make the call in another run or in a session, or wake the agent again")
	}
	return over, err
}
