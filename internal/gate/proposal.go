package gate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// checkProposal decides on a call that the agent may only propose. A call that changes nothing passes. The same call
// that a person has rejected is refused.
func (d *decider) checkProposal(ctx context.Context, why string) (string, error) {
	if !d.tool().Effect.Mutates() {
		return why + ", and the call changes nothing", nil
	}
	if d.call.PreviewOnly {
		return "a preview changes nothing", nil
	}
	err := d.g.DB.View(ctx, func(s *store.Snap) error {
		last, ok, err := d.findLastProposal(ctx, s)
		if err == nil && ok && last.State == reeve.ProposalRejected {
			return reeve.Errorf(reeve.Denied, "%s as proposal %s", describeVerdict(last, "rejected this"), last.ID).
				Hintf("propose something else, or ask a person to reopen the proposal")
		}
		return err
	})
	d.isProposal = err == nil
	return why, err
}

// describeVerdict returns a clause that says who made a decision on a proposal and when.
func describeVerdict(p reeve.Proposal, did string) string {
	by, on, why := p.DecidedBy, "", ""
	if by == "" {
		by = "a person"
	}
	if p.DecidedAt != nil {
		on = " on " + p.DecidedAt.UTC().Format(time.DateOnly)
	}
	if p.Comment != "" {
		why = " (" + p.Comment + ")"
	}
	return by + " " + did + on + why
}

// propose makes the call a proposal in the change set of its run or session. The proposal, the call and its result are
// one transaction. The caller continues and a person decides later. A proposal costs one call. The rest of the cost is
// charged when it is applied.
func (r *Recorder) propose(ctx context.Context) (res reeve.Result, err error) {
	detached := context.WithoutCancel(ctx)
	diff := r.previewOutput()
	err = r.g.DB.Update(detached, func(tx *store.Tx) error {
		if err := r.admit(detached, tx); err != nil {
			return err
		}
		item, text, err := r.findOrInsertProposal(detached, tx, diff)
		if err != nil {
			return err
		}
		var row *store.CallResult
		o := outcome{out: r.g.truncateOutput(text), spent: reeve.Amount{Calls: 1}, proposalID: item.ID}
		if row, res, err = r.writeResult(detached, tx, o); err != nil {
			return err
		}
		op := r.operationIn(reeve.ProposedOp)
		op.Spent, res.State = o.spent, op.State
		if err := r.insert(detached, tx, op, row); err != nil {
			return err
		}
		return r.budget.spendInTx(detached, tx, o.spent)
	})
	if err != nil {
		return reeve.Result{}, staleIfExhausted(err)
	}
	return res, nil
}

// findOrInsertProposal returns the open proposal of the same call, or inserts a new one. It also returns the text of
// the result.
func (r *Recorder) findOrInsertProposal(ctx context.Context, tx *store.Tx,
	diff output) (item reeve.Proposal, text string, err error) {
	// read the round before the proposals, so that a concurrent proposal conflicts with the new round
	round, err := tx.Ledger().LastRound(ctx, r.call.Agent, r.tool().ID, r.argsHash)
	if err != nil {
		return item, "", err
	}
	last, ok, err := r.findLastProposal(ctx, &tx.Snap)
	if err != nil {
		return item, "", err
	}
	if ok {
		switch last.State {
		case reeve.ProposalRejected:
			return item, "", store.ErrStaleDecision{} // rejected since the decision
		case reeve.ProposalAccepted:
			return last, fmt.Sprintf(
				"This is already item %d of change set %s. A person accepted it and it is being applied.",
				last.Ordinal, last.SetID), nil
		case reeve.ProposalPending:
			if r.matchesProposal(last) && last.Base == r.baseVersion() {
				return last, fmt.Sprintf(
					"This is already item %d of change set %s and waits for a person. Nothing has changed yet.",
					last.Ordinal, last.SetID), nil
			}
			was := last // its content stays as a person may have it open, but it cannot be accepted any more
			was.State, was.Comment = reeve.ProposalStale, "the agent proposed it again because its base had changed"
			if err := tx.Ledger().TransitionProposal(ctx, was, reeve.ProposalPending); err != nil {
				return item, "", err
			}
		// closed: insert a new proposal
		case reeve.ProposalApplied, reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalStale,
			reeve.ProposalUnknown:
		}
	}
	item = reeve.Proposal{ID: tx.NewID(reeve.PrefixProposal), WorkspaceID: r.call.Workspace, SetID: r.changeSetID(),
		Round: round + 1, AgentID: r.call.Agent, RunID: r.call.Run, ThreadID: r.thread, CallID: r.callID,
		Tool: r.tool().ID, Args: r.argsForPerson(), ArgsHash: r.argsHash, ToolVersion: r.entry.fingerprint,
		Settings: r.settingsHash(), Base: r.baseVersion(), Preview: diff.content, Reason: r.call.Reason,
		UserID: r.call.User, State: reeve.ProposalPending, PrivateTo: r.privateTo()}
	if item.Ordinal, err = tx.Ledger().LastOrdinal(ctx, item.SetID); err != nil {
		return item, "", err
	}
	item.Ordinal++
	if err := r.storeOutput(ctx, tx, diff); err != nil {
		return item, "", err
	}
	return item, fmt.Sprintf("Proposed as item %d of change set %s. It waits for a person. Nothing has changed yet.",
		item.Ordinal, item.SetID), tx.Ledger().InsertProposal(ctx, item)
}

// findLastProposal returns the latest proposal of the same call by the same agent for the same user. It never finds one
// for an undo. An undo that waits is found by its operation id, and one that was refused may be proposed again.
func (d *Decision) findLastProposal(ctx context.Context, s *store.Snap) (reeve.Proposal, bool, error) {
	if d.undoes != "" {
		return reeve.Proposal{}, false, nil
	}
	return s.Ledger().LastProposal(ctx, d.call.Agent, d.tool().ID, d.argsHash, d.call.User)
}

// getProposalOf returns the proposal that a call became.
func getProposalOf(ctx context.Context, s *store.Snap, op reeve.Operation) (reeve.Proposal, error) {
	c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return reeve.Proposal{}, err
	}
	res, err := storedResult(c)
	if err != nil {
		return reeve.Proposal{}, err
	}
	return s.Ledger().GetProposal(ctx, op.WorkspaceID, res.ProposalID)
}

// describeSinceProposed returns a clause about what happened to a proposal since its call returned. It is empty for a
// pending proposal.
func describeSinceProposed(item reeve.Proposal) string {
	switch item.State {
	case reeve.ProposalPending:
		return ""
	case reeve.ProposalRejected:
		return describeVerdict(item, "rejected it")
	case reeve.ProposalAccepted:
		return describeVerdict(item, "accepted it") + " and it is being applied"
	case reeve.ProposalApplied:
		return describeVerdict(item, "accepted it") + ", and it was applied as operation " + item.OperationID
	case reeve.ProposalStale:
		return "it is stale and was not applied: " + cmp.Or(item.Message, item.Comment, "its base has changed")
	case reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalUnknown:
	}
	return describeVerdict(item, "accepted it") + ", and it is " + string(item.State) + ": " + item.Message
}

// changeSetID returns the id of the change set that collects the proposals of a run or, outside of runs, of a session.
func (r *Recorder) changeSetID() string {
	if r.call.Run != "" {
		return reeve.ChangeSetKey(r.call.Workspace, r.call.Agent, "run", r.call.Run)
	}
	return reeve.ChangeSetKey(r.call.Workspace, r.call.Agent, "session", r.call.Session)
}

// matchesProposal reports whether the call has the arguments, tool version and settings of the proposal. computePreview
// compares the base, which is the previewed state.
func (d *Decision) matchesProposal(item reeve.Proposal) bool {
	return item.ArgsHash == d.argsHash && item.ToolVersion == d.entry.fingerprint && item.Settings == d.settingsHash()
}

// checkAccepted checks that the accepted proposal matches the call and that no policy denies the call now.
func (d *decider) checkAccepted() (string, error) {
	if !d.matchesProposal(*d.proposal) {
		return "", reeve.Errorf(reeve.Stale,
			"the tool or the agent's settings for it have changed since the proposal").
			Hintf("the agent must propose it again")
	}
	if answer, why := d.policyAnswer(d.tool()); answer == reeve.Deny {
		return "", d.policyDenial(d.tool(), why)
	}
	return "accepted by " + d.proposal.DecidedBy, nil
}
