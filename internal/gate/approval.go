package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// park writes the call down to wait for a person: an operation, an action and an approval, in one transaction. Its
// result comes when it has run, or when it is denied or expires.
func (r *Recorder) park(ctx context.Context) (res reeve.Result, err error) {
	detached := context.WithoutCancel(ctx)
	diff := r.previewOutput()
	err = r.g.DB.Update(detached, func(tx *store.Tx) error {
		r.assignID(tx)
		op := r.operationIn(reeve.Parked)
		op.Code, op.Message = reeve.ApprovalRequired, r.waitReason
		if r.overBudget { // what the person is asked about; see letPast
			op.Code = reeve.BudgetExceeded
		}
		a := reeve.Approval{ID: tx.NewID(reeve.PrefixApproval), WorkspaceID: op.WorkspaceID, OperationID: op.ID,
			CallID: r.callID, AgentID: op.AgentID,
			Tool: op.Tool, Args: r.argsForPerson(), ArgsHash: op.ArgsHash, ToolVersion: op.ToolVersion, Policy: op.Policy,
			Why:    r.waitReason,
			Reason: r.call.Reason, Preview: diff.content, State: reeve.Pending, ExpiresAt: tx.Now().
				Add(r.g.ApprovalTTL)}
		res = pendingResult(op)
		res.ApprovalID, res.Message = a.ID, r.waitReason
		if err := r.writeParked(detached, tx, op); err != nil {
			return err
		}
		if err := r.storeOutput(detached, tx, diff); err != nil {
			return err
		}
		return tx.Ledger().InsertApproval(detached, a)
	})
	if err != nil {
		return reeve.Result{}, err
	}
	if r.g.ApprovalTTL < pollInterval {
		r.g.Wakeup() // its time is up before the loop would look
	}
	return res, nil
}

// writeParked writes the operation: a new one, or one that was approved once but for which a budget ran out since.
func (r *Recorder) writeParked(ctx context.Context, tx *store.Tx, op reeve.Operation) error {
	if r.resumed != nil {
		op.Spent, op.Tries, op.ResolvedBy, op.Resolution = r.resumed.Spent, r.resumed.Tries, r.resumed.ResolvedBy,
			r.resumed.Resolution
		return tx.Ledger().TransitionOperation(ctx, *r.resumed, op, nil)
	}
	return r.insert(ctx, tx, op, nil)
}

// checkApproved returns why a resumed call may run: a person let it through. It checks that what the person saw is what
// would run.
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
	if d.approval.State != reeve.Approved {
		return "", reeve.Errorf(reeve.Denied, "the approval is %s", d.approval.State).Hintf("%s", askAgainHint)
	}
	if d.approval.ArgsHash != d.argsHash || d.approval.ToolVersion != d.entry.fingerprint ||
		d.approval.Policy != d.policyHash() {
		return "", reeve.Errorf(reeve.Stale, "the tool or the policy has changed since a person was asked").
			Hintf("make the call again to ask again")
	}
	return "approved by " + d.approval.DecidedBy, nil
}

// checkResumed says why a call that nobody approved is taken up: it was let through before. What is forbidden by now is
// not, whoever says so.
func (d *decider) checkResumed() (string, error) {
	if answer, why := d.policyAnswer(d.tool()); answer == reeve.Deny {
		return "", d.policyDenial(d.tool(), why)
	}
	if d.resumed.Resolution == reeve.RunAgain {
		return "a person said to run it again", nil
	}
	return "let through when it was asked for; its caller does not wait", nil
}
