package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// park writes a call that waits for a person: the call, its operation and an approval in one transaction. The result of
// the call is written when it has run, is denied or expires.
func (r *Recorder) park(ctx context.Context) (res reeve.Result, err error) {
	detached := context.WithoutCancel(ctx)
	diff := r.previewOutput()
	err = r.g.DB.Update(detached, func(tx *store.Tx) error {
		r.assignID(tx)
		op := r.operationIn(reeve.Parked)
		op.Code, op.Message = reeve.ApprovalRequired, r.waitReason
		if r.overBudget { // see Decision.ignoresAskingBudgets
			op.Code = reeve.BudgetExceeded
		}
		a := reeve.Approval{ID: tx.NewID(reeve.PrefixApproval), WorkspaceID: op.WorkspaceID, OperationID: op.ID,
			CallID: r.callID, AgentID: op.AgentID, Tool: op.Tool, Args: r.argsForPerson(), ArgsHash: op.ArgsHash,
			ToolVersion: op.ToolVersion, Policy: op.Policy, Why: r.waitReason, Reason: r.call.Reason,
			Preview: diff.content, State: reeve.ApprovalPending, ExpiresAt: tx.Now().Add(r.g.ApprovalTTL),
			PrivateTo: op.PrivateTo}
		res = pendingResult(op)
		res.ApprovalID, res.Message = a.ID, r.waitReason
		if err := r.writeParked(detached, tx, op); err != nil {
			return err
		}
		if err := r.storeOutput(detached, tx, diff); err != nil {
			return err
		}
		if err := tx.Ledger().InsertApproval(detached, a); err != nil || r.replaces == nil {
			return err
		}
		return r.replaces.inTx(detached, tx, op, a)
	})
	if err != nil {
		return reeve.Result{}, err
	}
	if r.g.ApprovalTTL < pollInterval {
		r.g.Wakeup() // the approval expires before the next poll
	}
	return res, nil
}

// writeParked inserts the operation of a new call. A call that was approved and then exceeded a budget is parked again:
// its operation exists, so it is updated.
func (r *Recorder) writeParked(ctx context.Context, tx *store.Tx, op reeve.Operation) error {
	if r.resumed != nil {
		op.Spent, op.Attempts, op.ResolvedBy, op.Resolution = r.resumed.Spent, r.resumed.Attempts, r.resumed.ResolvedBy,
			r.resumed.Resolution
		return tx.Ledger().TransitionOperation(ctx, *r.resumed, op, nil)
	}
	return r.insert(ctx, tx, op, nil)
}

// checkApproved returns why a resumed call may run. It checks that the call is still the one that the person approved.
// For a new call it returns an empty string.
func (d *decider) checkApproved() (string, error) {
	if d.resumed == nil {
		return "", nil
	}
	if d.proposal != nil {
		if why, err := d.checkAccepted(); err != nil || d.approval == nil {
			return why, err
		}
	}
	if d.approval == nil {
		return d.checkResumed()
	}
	if d.approval.State != reeve.ApprovalApproved {
		return "", reeve.Errorf(reeve.Denied, "the approval is %s", d.approval.State).Hintf("%s", askAgainHint)
	}
	if d.approval.ArgsHash != d.argsHash || d.approval.ToolVersion != d.entry.fingerprint ||
		d.approval.Policy != d.policyHash() {
		return "", reeve.Errorf(reeve.Stale, "the tool or the policy has changed since the approval was requested").
			Hintf("make the call again to request a new approval")
	}
	return "approved by " + d.approval.DecidedBy, nil
}

// checkResumed returns why a resumed call without an approval may run. The call passed the gate before, so only a
// policy that denies it now can refuse it.
func (d *decider) checkResumed() (string, error) {
	if answer, why := d.policyAnswer(d.tool()); answer == reeve.Deny {
		return "", d.policyDenial(d.tool(), why)
	}
	if d.resumed.Resolution == reeve.ResolveRetry {
		return "a person chose to retry the operation", nil
	}
	return "passed when the call was made; it runs asynchronously", nil
}
