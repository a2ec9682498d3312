package gate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Inbox applies the decisions of people on approvals, proposals and operations of unknown outcome.
type Inbox struct{ g *Gate }

// DecideApproval approves or rejects a pending approval. The first decision counts. A worker of this or another process
// runs an approved call. If the call can no longer run, for example because its run has ended, the approval lapses and
// DecideApproval returns a conflict. If shown is not empty, it is the hash of what the person saw, and the decision
// fails with Stale if the approval shows something else, or if the call would run nothing; see Gate.WhyStale.
func (i *Inbox) DecideApproval(ctx context.Context, workspace, id string, approve bool,
	by, comment, shown string) (a reeve.Approval, err error) {
	if approve && shown != "" {
		why, err := i.g.WhyStale(ctx, workspace, id)
		if err != nil {
			return a, err
		}
		if why != "" {
			return a, reeve.Errorf(reeve.Stale, "%s; nothing was decided", why).
				Hintf("preview the call again, then decide")
		}
	}
	var obsolete error
	err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
		obsolete = nil
		if err := checkNotHeld(ctx, &tx.Snap); err != nil {
			return err
		}
		if a, err = tx.Ledger().GetApproval(ctx, workspace, id); err != nil {
			return err
		}
		if err := checkAnswerable(a, tx.Now()); err != nil {
			return err
		}
		if shown != "" && shown != a.ShownHash() {
			return reeve.Errorf(reeve.Stale, "the approval no longer shows what the person saw").
				Hintf("read the approval again, then decide")
		}
		op, err := tx.Ledger().GetOperation(ctx, workspace, a.OperationID)
		if err != nil {
			return err
		}
		if approve && a.State == reeve.ApprovalPending {
			if err := checkShownCall(ctx, &tx.Snap, a, op); err != nil {
				return err
			}
			if obsolete, err = whyObsolete(ctx, tx, op); err != nil {
				return err
			}
		}
		a.State, a.DecidedBy, a.Comment = reeve.ApprovalDenied, by, comment
		if obsolete != nil {
			a.State = reeve.ApprovalLapsed
		} else if approve {
			a.State = reeve.ApprovalApproved
		}
		if err := tx.Ledger().TransitionApproval(ctx, a, reeve.ApprovalPending); err != nil {
			return err
		}
		now := tx.Now()
		a.DecidedAt = &now
		if obsolete != nil {
			return denyOperation(ctx, tx, op, reeve.AsError(obsolete),
				reeve.Step{Name: "security", Verdict: reeve.Refused, Why: reeve.AsError(obsolete).Message})
		}
		if approve {
			is := op
			is.State, is.Message, is.NextAttemptAt = reeve.Prepared, "", &now
			if is.Code != reeve.BudgetExceeded { // the budget step reads this code; see ignoresAskingBudgets
				is.Code = ""
			}
			if err := tx.Ledger().TransitionOperation(ctx, op, is, nil); err != nil {
				return err
			}
			return tx.Ledger().SaveResponse(ctx, a)
		}
		why := "a person denied it"
		if comment != "" {
			why += ": " + comment
		}
		denial := reeve.Errorf(reeve.Denied, "%s", why)
		if err := denyOperation(ctx, tx, op, denial, refusedApprovalStep(denial)); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, a)
	})
	if err != nil {
		return a, err
	}
	if approve && obsolete == nil {
		i.g.Wakeup()
		return a, nil
	}
	i.g.notifyChange() // the waiting run can continue
	if obsolete != nil {
		err = reeve.Errorf(reeve.Conflict, "the approval has lapsed: %s", reeve.AsError(obsolete).Message).
			Hintf("nothing was executed; wake the agent again to make a new call")
	}
	return a, err
}

// checkAnswerable returns a conflict for an approval that has expired or lapsed.
func checkAnswerable(a reeve.Approval, now time.Time) error {
	why := ""
	switch {
	case a.AsOf(now).State == reeve.ApprovalExpired:
		why = "expired"
	case a.State == reeve.ApprovalLapsed && a.Comment != "":
		why = "lapsed: " + a.Comment
	case a.State == reeve.ApprovalLapsed:
		why = "lapsed"
	case a.State == reeve.ApprovalReplaced:
		return reeve.Errorf(reeve.Conflict, "a person replaced this call").
			Hintf("decide on the call that replaces it; see reeve inbox")
	default:
		return nil
	}
	return reeve.Errorf(reeve.Conflict, "the approval has %s", why).Hintf("nothing was executed; %s", askAgainHint)
}

// checkShownCall returns a conflict if the approval shows a different call from the one that would run. That happens
// only if a row was edited outside Reeve. The arguments of an undo are shown redacted, so they are not compared.
func checkShownCall(ctx context.Context, s *store.Snap, a reeve.Approval, op reeve.Operation) error {
	c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return err
	}
	info, err := c.RequestInfo()
	if err != nil {
		return err
	}
	differs := ""
	matches := func(args string) bool { return info.Undoes != "" || reeve.Hash([]byte(args)) == op.ArgsHash }
	switch {
	case a.Tool != op.Tool || info.Tool != op.Tool:
		differs = "tool"
	case a.AgentID != op.AgentID || c.Operation.AgentID != op.AgentID:
		differs = "agent"
	case a.CallID != op.CallID || a.ArgsHash != op.ArgsHash || !matches(a.Args) || !matches(c.Args):
		differs = "arguments"
	default:
		return nil
	}
	return reeve.Errorf(reeve.Conflict,
		"the approval does not match the call that would run: its %s changed in the database", differs).
		Hintf("nothing was executed; deny the approval and make the call again; forgetting a note also erases its " +
			"text from calls that wait")
}

// whyObsolete returns why a parked call of a model or script can no longer run, or nil if it can. Either its run has
// ended or a person has decided on its item.
func whyObsolete(ctx context.Context, tx *store.Tx, op reeve.Operation) (obsolete, err error) {
	if op.RunID == "" {
		return nil, nil
	}
	info, err := getRequestInfo(ctx, &tx.Snap, op)
	if err != nil || !info.Via.IsFromBrain() {
		return nil, err
	}
	if obsolete, err = whyItemObsolete(ctx, tx, op, info); obsolete != nil || err != nil {
		return obsolete, err
	}
	return whyRunEnded(ctx, &tx.Snap, op.WorkspaceID, op.RunID)
}

// denyOperation ends an operation that did not run. The result in the caller's thread holds the reason and the step
// that refused the call.
func denyOperation(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error, step reeve.Step) error {
	return denyReplaced(ctx, tx, op, why, step, "")
}

// denyReplaced is denyOperation for an operation that another one replaces. Its id is empty if none does.
func denyReplaced(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error, step reeve.Step,
	by string) error {
	is := op
	is.State, is.Code, is.Message, is.Owner, is.NextAttemptAt = reeve.DeniedOp, why.Code, why.Message, "", nil
	r := newResult(tx, why.Message, reeve.ResultInfo{Status: "error", Code: why.Code, Message: why.Message,
		Hint: why.Hint, Fields: why.Fields, Step: step, Spent: op.Spent, ReplacedBy: by})
	is.ResultID = r.ID
	if err := tx.Ledger().TransitionOperation(ctx, op, is, r); err != nil {
		return err
	}
	return tx.Ledger().FinishAfterRun(ctx, op, is)
}

// newResult returns a result row that was not produced by an attempt.
func newResult(tx *store.Tx, content string, info reeve.ResultInfo) *store.CallResult {
	return &store.CallResult{ID: tx.NewID(reeve.PrefixMessage), Content: content, Info: mustJSON(info)}
}

// askAgainHint is the hint for a call whose approval is closed. The same Idempotency-Key would return the stored
// result.
const askAgainHint = "to request a new approval, make the call again, with a new Idempotency-Key if it had one"

// expireApprovals closes the approvals that have expired, in batches, until none is left that can be closed.
func (i *Inbox) expireApprovals(ctx context.Context) error {
	for {
		closed, err := i.closeExpired(ctx, func(tx *store.Tx) ([]reeve.Approval, error) {
			return tx.Ledger().DueApprovals(ctx, 100)
		})
		if err != nil || closed == 0 {
			return err
		}
	}
}

// expireApprovalOf closes the approval of an operation if it has expired.
func (i *Inbox) expireApprovalOf(ctx context.Context, operation string) error {
	_, err := i.closeExpired(ctx, func(tx *store.Tx) ([]reeve.Approval, error) {
		a, found, err := tx.Ledger().LastApproval(ctx, operation)
		if err != nil || !found || !a.HasExpired(tx.Now()) {
			return nil, err
		}
		return []reeve.Approval{a}, nil
	})
	return err
}

// closeExpired closes the approvals that find returns and denies their operations. It skips approvals that a person has
// decided on meanwhile and returns how many it closed.
func (i *Inbox) closeExpired(ctx context.Context,
	find func(*store.Tx) ([]reeve.Approval, error)) (closed int, err error) {
	err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
		closed = 0
		due, err := find(tx)
		if err != nil {
			return err
		}
		for _, a := range due {
			op, ok, err := tx.Ledger().ApprovedOperation(ctx, a)
			if err != nil {
				return err
			}
			if !ok { // its operation does not exist
				continue
			}
			a.State = reeve.ApprovalExpired
			if err := tx.Ledger().TransitionApproval(ctx, a,
				reeve.ApprovalPending); reeve.CodeOf(err) == reeve.Conflict {
				continue
			} else if err != nil {
				return err
			}
			why := reeve.Errorf(reeve.Denied, "the approval expired").Hintf("%s", askAgainHint)
			if err := denyOperation(ctx, tx, op, why, refusedApprovalStep(why)); err != nil {
				return err
			}
			closed++
		}
		return nil
	})
	if err == nil && closed > 0 {
		i.g.notifyChange()
	}
	return closed, err
}

// Resolve applies a person's resolution of an operation of unknown outcome. in.Attempts is the number of attempts that
// the person saw; nil means the current number. It fails with Stale if the operation was retried since and is unknown
// again.
func (i *Inbox) Resolve(ctx context.Context, workspace, id string, in reeve.ResolveRequest,
	by string) (op reeve.Operation, err error) {
	if in.Attempts == nil {
		var now reeve.Operation
		if err := i.g.DB.View(ctx, func(s *store.Snap) (err error) {
			now, err = s.Ledger().GetOperation(ctx, workspace, id)
			return err
		}); err != nil {
			return op, err
		}
		in.Attempts = &now.Attempts
	}
	err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.Ledger().GetOperation(ctx, workspace, id)
		if err != nil {
			return err
		}
		if was.State != reeve.Unknown || was.Resolution != "" {
			return explainNotUnknown(ctx, &tx.Snap, was)
		}
		if was.Attempts != *in.Attempts {
			return reeve.Errorf(reeve.Stale,
				"operation %s was retried meanwhile: it has %d tries and the resolution is for %d", id, was.Attempts,
				*in.Attempts).Hintf("check the outcome of the latest try, then resolve that one")
		}
		is := was
		is.Resolution, is.ResolvedBy = in.Resolution, by
		var r *store.CallResult
		switch in.Resolution {
		case reeve.ResolveHappened:
			is.State, is.Code, is.Message = reeve.Committed, "", ""
			r = newResult(tx, "A person confirmed that the call took effect; its output is not known.",
				reeve.ResultInfo{Status: "success", Spent: was.Spent})
		case reeve.ResolveSkip:
			r = newResult(tx, "A person skipped the operation; whether it took effect is not known.",
				reeve.ResultInfo{Status: "error", Code: reeve.Skipped, Message: "a person skipped the operation",
					Spent: was.Spent})
		case reeve.ResolveRetry:
			info, err := getRequestInfo(ctx, &tx.Snap, was)
			if err != nil {
				return err
			}
			obsolete, err := whyItemObsolete(ctx, tx, was, info)
			if err != nil {
				return err
			}
			if obsolete != nil {
				return reeve.Errorf(reeve.Conflict, "the operation cannot be retried: %s", reeve.AsError(obsolete).
					Message).Hintf("resolve it with happened or skip")
			}
			now := tx.Now()
			is.State, is.NextAttemptAt = reeve.Prepared, &now
		default:
			return invalidField("/resolution", "happened, retry or skip", "%q is not a resolution", in.Resolution)
		}
		if r != nil {
			is.ResultID = r.ID
		}
		op = is
		if err := tx.Ledger().TransitionOperation(ctx, was, is, r); err != nil {
			return err
		}
		if err := tx.Ledger().FinishAfterRun(ctx, was, is); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, op)
	})
	if err == nil {
		i.g.Wakeup()
		i.g.notifyChange()
	}
	return op, err
}

// explainNotUnknown returns the conflict for resolving an operation that is not unknown. It names what the operation
// waits for.
func explainNotUnknown(ctx context.Context, s *store.Snap, op reeve.Operation) error {
	switch op.State {
	case reeve.Parked:
		a, _, err := s.Ledger().LastApproval(ctx, op.ID)
		if err != nil {
			return err
		}
		return reeve.Errorf(reeve.Conflict, "operation %s has not run: it waits for the approval %s", op.ID, a.ID).
			Hintf("decide with reeve approvals approve %s or reeve approvals deny %s", a.ID, a.ID)
	case reeve.ProposedOp:
		item, err := getProposalOf(ctx, s, op)
		if err != nil {
			return err
		}
		return reeve.Errorf(reeve.Conflict, "operation %s has not run: the proposal %s is %s", op.ID,
			item.ID, item.State).Hintf("reeve proposals show %s shows what it would change", item.SetID)
	case reeve.Prepared, reeve.Dispatched:
		return reeve.Errorf(reeve.Conflict, "operation %s is %s: it is still in progress", op.ID,
			op.State).Hintf("check it later; it appears in the inbox if its outcome stays unknown")
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.Unknown:
	}
	return reeve.Errorf(reeve.Conflict, "operation %s is %s and cannot be resolved", op.ID, op.State)
}
