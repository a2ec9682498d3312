package gate

import (
	"context"
	"errors"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// findExisting looks up what the operation id was used for before, and on whose behalf. Ids that Reeve itself has made
// are of the one thing they were made for, whoever it is done for: a script's items are done once, in whichever of its
// runs that was, and so is an undo.
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
		if d.call.Via.FromBrain() || d.undoes != "" {
			return nil
		}
		info, err := getRequestInfo(ctx, s, op)
		d.existingOfOtherUser = info.User != d.call.User
		return err
	})
}

// findExpiredApproval notes an operation that waits for an approval whose time is over.
func (d *decider) findExpiredApproval(ctx context.Context, s *store.Snap, operation string) error {
	a, _, err := s.Ledger().LastApproval(ctx, operation)
	if err == nil && a.HasExpired(s.Now()) {
		d.expiredOperation = operation
	}
	return err
}

// checkIdempotency lets an operation id be used for one call only: the same again gives the stored result, another is a
// conflict.
func (d *decider) checkIdempotency(context.Context) (string, error) {
	switch {
	case !d.leavesOperation():
		return "it changes nothing", nil
	case d.idUsedElsewhere:
		return "", errIDUsed
	case d.resumed != nil:
		return "the operation takes up where it was", nil
	case d.existing == nil:
		return "the operation is new", nil
	case d.existingOfOtherUser: // before all else: that the arguments differ, or not, tells of them
		return "", errIDOfOtherUser
	case d.existing.AgentID != d.call.Agent || d.existing.Tool != d.tool().ID || d.existing.ArgsHash != d.argsHash:
		return "", errIDUsed
	// a script's items are done once, in whichever of its runs that was
	case !d.call.Via.FromBrain() && d.existing.ThreadID != d.thread:
		return "", idUsedInThread(d.existing.ThreadID, d.call.Agent)
	}
	return "the same call was made before: its stored result counts", nil
}

var errIDUsed = reeve.Errorf(reeve.Conflict, "the operation id was used before, for another call").
	Hintf("use a new Idempotency-Key for a new call; nothing was done")

var errIDOfOtherUser = reeve.Errorf(reeve.Conflict,
	"the operation id was used before, for a call on behalf of somebody else").
	Hintf("use a new Idempotency-Key for a call of your own; nothing was done")

// idUsedInThread refuses a call that was made before in another session or run: nothing was done in this one.
func idUsedInThread(thread, agent string) error {
	kind, name, _ := strings.Cut(strings.TrimPrefix(thread, agent+":"), ":")
	return reeve.Errorf(reeve.Conflict, "the operation id was used before, for this call in the %s %q", kind, name).
		Hintf("use a new Idempotency-Key to make it in another session or run; nothing was done")
}

// syncAfterConflict makes sure that what overtook a call can be seen when it is judged again: where commits are shared it may
// have been written but not committed when we met it, and an update of our own returns only after it. It tells whether
// the operation id was taken by another workspace, which no judging again would show.
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

func (g *Gate) syncCommits(ctx context.Context, workspace string, look func(*store.Tx) error) error {
	defer g.viewCache.invalidate(workspace)
	return g.DB.Update(ctx, look)
}

// replay answers a call that was made before, without writing anything.
func (d *Decision) replay(ctx context.Context) (res reeve.Result, err error) {
	err = d.g.DB.View(ctx, func(s *store.Snap) error {
		res, err = currentResult(ctx, s, *d.existing)
		return err
	})
	return res, err
}

// CurrentResult is what whoever makes a call again is told: what has become of its operation. If nobody approved it in
// time and the loop has not noticed yet, what it would have done counts.
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
	op = c.Operation // what is told is of one moment
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

// storedResult is the result of a call as its caller was shown it.
func storedResult(c store.Call) (reeve.Result, error) {
	info, err := c.Result.ResultInfo()
	if err != nil {
		return reeve.Result{}, err
	}
	return reeve.Result{CallID: c.Operation.CallID, OperationID: c.Operation.ID, State: c.Operation.State,
		Content: c.Result.Content, IsError: info.Status == "error", Code: info.Code,
		Message: info.Message, Hint: info.Hint, Fields: info.Fields, Truncated: info.Truncated, Size: info.Size,
		Hash: info.Hash, Undo: info.Undo,
		Changed: info.Changed, Spent: info.Spent, ProposalID: info.ProposalID}, nil
}

// checkRun refuses calls of a run that waits for a person, and new calls in one that has ended. That this still holds
// is checked again when the call is written: see Recorder.insert.
func (d *decider) checkRun(ctx context.Context) error {
	brain := d.call.Via.FromBrain()
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
		parked, err := s.Ledger().RunIsParked(ctx, d.call.Workspace, d.call.Run)
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

// whyRunEnded returns the refusal of a call in a run that is over, or nil.
func whyRunEnded(ctx context.Context, s *store.Snap, workspace, run string) (over, err error) {
	state, err := s.Runs().RunState(ctx, workspace, run)
	if err == nil && state != "" && state.Final() {
		over = reeve.Errorf(reeve.Conflict, "the run has ended: it is %s", state).
			Hintf("nothing more is done in it; make the call in another run or in a session, or wake the agent again")
	}
	return over, err
}
