package gate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Inbox takes people's decisions: on approvals, on proposals, and on operations whose outcome is unknown.
type Inbox struct{ g *Gate }

// DecideApproval answers an approval. The first answer counts. An approved call is run by the loop, here or on another
// server. One that can run no more, because its run has ended, lapses instead.
func (i *Inbox) DecideApproval(ctx context.Context, workspace, id string, approve bool,
	by, comment string) (a reeve.Approval, err error) {
	var void error
	err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
		void = nil
		if err := checkNotHeld(ctx, &tx.Snap); err != nil {
			return err
		}
		if a, err = tx.Ledger().GetApproval(ctx, workspace, id); err != nil {
			return err
		}
		if err := checkAnswerable(a, tx.Now()); err != nil {
			return err
		}
		op, err := tx.Ledger().GetOperation(ctx, workspace, a.OperationID)
		if err != nil {
			return err
		}
		if approve && a.State == reeve.Pending {
			if err := checkShownCall(ctx, &tx.Snap, a, op); err != nil {
				return err
			}
			if void, err = whyObsolete(ctx, tx, op); err != nil {
				return err
			}
		}
		a.State, a.DecidedBy, a.Comment = reeve.Rejected, by, comment
		if void != nil {
			a.State = reeve.Lapsed
		} else if approve {
			a.State = reeve.Approved
		}
		if err := tx.Ledger().TransitionApproval(ctx, a, reeve.Pending); err != nil {
			return err
		}
		now := tx.Now()
		a.DecidedAt = &now
		if void != nil {
			return denyOperation(ctx, tx, op, reeve.AsError(void), reeve.Step{Name: "security", Verdict: reeve.Refused,
				Why: reeve.AsError(void).Message})
		}
		if approve {
			is := op
			is.State, is.Message, is.NextAttemptAt = reeve.Prepared, "", &now
			if is.Code != reeve.BudgetExceeded { // which tells the budget step what the person was asked
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
		said := reeve.Errorf(reeve.Denied, "%s", why)
		if err := denyOperation(ctx, tx, op, said, refusedApprovalStep(said)); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, a)
	})
	if err != nil {
		return a, err
	}
	if approve && void == nil {
		i.g.Wakeup()
		return a, nil
	}
	i.g.notifyChange() // the run that waits for the answer goes on
	if void != nil {
		err = reeve.Errorf(reeve.Conflict, "the approval is void: %s", reeve.AsError(void).Message).
			Hintf("nothing runs; wake the agent again to ask again")
	}
	return a, err
}

// checkAnswerable refuses an answer to what nobody asks any more, though nobody has answered it.
func checkAnswerable(a reeve.Approval, now time.Time) error {
	why := ""
	switch {
	case a.AsOf(now).State == reeve.Expired:
		why = "expired"
	case a.State == reeve.Lapsed && a.Comment != "":
		why = "lapsed: " + a.Comment
	case a.State == reeve.Lapsed:
		why = "lapsed"
	default:
		return nil
	}
	return reeve.Errorf(reeve.Conflict, "the approval has %s", why).Hintf("nothing runs; %s", askAgainHint)
}

// checkShownCall refuses the approval of a call that is not the one that the person is shown: somebody has changed a row of it.
// What an undo shows of its arguments is redacted, and proves nothing.
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
	switch asked := func(args string) bool { return info.Undoes != "" || reeve.Hash([]byte(args)) == op.ArgsHash }; {
	case a.Tool != op.Tool || info.Tool != op.Tool:
		differs = "tool"
	case a.AgentID != op.AgentID || c.Operation.AgentID != op.AgentID:
		differs = "agent"
	case a.CallID != op.CallID || a.ArgsHash != op.ArgsHash || !asked(a.Args) || !asked(c.Args):
		differs = "arguments"
	default:
		return nil
	}
	return reeve.Errorf(reeve.Conflict,
		"the approval does not show the call that would run: the %s of one of them was changed in the database",
		differs).
		Hintf("nothing runs; deny it, and have the call made again")
}

// whyObsolete says why a call of a brain that waited can run no more: its run has ended, or a person has settled the item
// that it was for.
func whyObsolete(ctx context.Context, tx *store.Tx, op reeve.Operation) (void, err error) {
	if op.RunID == "" {
		return nil, nil
	}
	info, err := getRequestInfo(ctx, &tx.Snap, op)
	if err != nil || !info.Via.FromBrain() {
		return nil, err
	}
	if void, err = whyItemObsolete(ctx, tx, op, info); void != nil || err != nil {
		return void, err
	}
	return whyRunEnded(ctx, &tx.Snap, op.WorkspaceID, op.RunID)
}

// denyOperation ends an operation that did not run, and tells the caller's thread why, and which step said so.
func denyOperation(ctx context.Context, tx *store.Tx, op reeve.Operation, why *reeve.Error, step reeve.Step) error {
	is := op
	is.State, is.Code, is.Message, is.Owner, is.NextAttemptAt = reeve.DeniedOp, why.Code, why.Message, "", nil
	r := newResult(tx, why.Message, reeve.ResultInfo{Status: "error", Code: why.Code, Message: why.Message,
		Hint: why.Hint, Fields: why.Fields,
		Step: step, Spent: op.Spent})
	is.ResultID = r.ID
	if err := tx.Ledger().TransitionOperation(ctx, op, is, r); err != nil {
		return err
	}
	return tx.Ledger().FinishAfterRun(ctx, op, is)
}

// newResult is the result of an operation that was ended by a person and not by its tool.
func newResult(tx *store.Tx, content string, info reeve.ResultInfo) *store.CallResult {
	return &store.CallResult{ID: tx.NewID(reeve.PrefixMessage), Content: content, Info: mustJSON(info)}
}

// askAgainHint is what to do about a call that nobody is asked about any more. The same key gives the same answer.
const askAgainHint = "make the call again, with a new Idempotency-Key if it had one, to ask again"

// expireApprovals closes approvals that nobody answered in time, some at a time, until there are none that can be closed: when
// the next one expires says nothing of those that are overdue.
func (i *Inbox) expireApprovals(ctx context.Context) error {
	for {
		closed, err := i.closeExpired(ctx, func(tx *store.Tx) ([]reeve.Approval, error) {
			return tx.Ledger().
				DueApprovals(ctx, 100)
		})
		if err != nil || closed == 0 {
			return err
		}
	}
}

// expireApprovalOf closes the approval of an operation that somebody has met before the loop has.
func (i *Inbox) expireApprovalOf(ctx context.Context, operation string) error {
	_, err := i.closeExpired(ctx, func(tx *store.Tx) ([]reeve.Approval, error) {
		a, asked, err := tx.Ledger().LastApproval(ctx, operation)
		if err != nil || !asked || !a.HasExpired(tx.Now()) {
			return nil, err
		}
		return []reeve.Approval{a}, nil
	})
	return err
}

// closeExpired closes approvals whose time is over, unless a person was faster, denies what they were for, and counts them.
func (i *Inbox) closeExpired(ctx context.Context, find func(*store.Tx) ([]reeve.Approval, error)) (closed int, err error) {
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
			if !ok { // nobody can tell what it is for
				continue
			}
			a.State = reeve.Expired
			if err := tx.Ledger().TransitionApproval(ctx, a, reeve.Pending); reeve.CodeOf(err) == reeve.Conflict {
				continue
			} else if err != nil {
				return err
			}
			why := reeve.Errorf(reeve.Denied, "nobody approved it in time").Hintf("%s", askAgainHint)
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

// Resolve takes a person's word on an operation of unknown outcome. It is about so many tries as they have seen, or as
// there are when they are heard: what somebody else had run again meanwhile, and is unknown once more, is another
// question.
func (i *Inbox) Resolve(ctx context.Context, workspace, id string, in reeve.ResolveRequest,
	by string) (op reeve.Operation, err error) {
	if in.Tries == nil {
		var now reeve.Operation
		if err := i.g.DB.View(ctx, func(s *store.Snap) (err error) {
			now, err = s.Ledger().
				GetOperation(ctx, workspace, id)
			return err
		}); err != nil {
			return op, err
		}
		in.Tries = &now.Tries
	}
	err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.Ledger().GetOperation(ctx, workspace, id)
		if err != nil {
			return err
		}
		if was.State != reeve.Unknown || was.Resolution != "" {
			return explainNotUnknown(ctx, &tx.Snap, was)
		}
		if was.Tries != *in.Tries {
			return reeve.Errorf(reeve.Stale,
				"operation %s was run again since: it has %d tries, and the answer is about %d", id, was.Tries,
				*in.Tries).Hintf("look what became of it this time, and answer that")
		}
		is := was
		is.Resolution, is.ResolvedBy = in.Resolution, by
		var r *store.CallResult
		switch in.Resolution {
		case reeve.Happened:
			is.State, is.Code, is.Message = reeve.Committed, "", ""
			r = newResult(tx, "A person confirmed that it happened; its output is not known.",
				reeve.ResultInfo{Status: "success", Spent: was.Spent})
		case reeve.SkipIt:
			r = newResult(tx, "A person chose to leave it; whether it happened is not known.",
				reeve.ResultInfo{Status: "error", Code: reeve.Skipped, Message: "a person chose to leave it",
					Spent: was.Spent})
		case reeve.RunAgain:
			info, err := getRequestInfo(ctx, &tx.Snap, was)
			if err != nil {
				return err
			}
			void, err := whyItemObsolete(ctx, tx, was, info)
			if err != nil {
				return err
			}
			if void != nil {
				return reeve.Errorf(reeve.Conflict, "it is not run again: %s", reeve.AsError(void).Message).
					Hintf("say whether it happened, or skip it")
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

// explainNotUnknown refuses a word on the outcome of an operation whose outcome nobody asks about, and says what it does wait
// for.
func explainNotUnknown(ctx context.Context, s *store.Snap, op reeve.Operation) error {
	switch op.State {
	case reeve.Parked:
		a, _, err := s.Ledger().LastApproval(ctx, op.ID)
		if err != nil {
			return err
		}
		return reeve.Errorf(reeve.Conflict, "operation %s has not run: it waits for the approval %s", op.ID, a.ID).
			Hintf("reeve approvals approve %s lets it run, reeve approvals deny %s refuses it", a.ID, a.ID)
	case reeve.ProposedOp:
		item, err := getProposalOf(ctx, s, op)
		if err != nil {
			return err
		}
		return reeve.Errorf(reeve.Conflict, "operation %s has only proposed something: the proposal %s is %s", op.ID,
			item.ID, item.State).Hintf("reeve proposals show %s says what it would change", item.SetID)
	case reeve.Prepared, reeve.Dispatched:
		return reeve.Errorf(reeve.Conflict, "operation %s is %s: it is under way, and waits for nobody's word", op.ID,
			op.State).Hintf("look at it again later; a person is asked if its outcome stays unknown")
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.Unknown:
	}
	return reeve.Errorf(reeve.Conflict, "operation %s is %s and waits for nobody's word", op.ID, op.State)
}
