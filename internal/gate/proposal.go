package gate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// checkProposal judges a call that the agent may only propose. What changes nothing passes, and what a person rejected stays
// rejected.
func (d *decider) checkProposal(ctx context.Context, why string) (string, error) {
	if !d.tool().Effect.Mutates() {
		return why + ", and it changes nothing", nil
	}
	if d.call.PreviewOnly {
		return "a preview changes nothing", nil
	}
	err := d.g.DB.View(ctx, func(s *store.Snap) error {
		last, ok, err := d.findLastProposal(ctx, s)
		if err == nil && ok && last.State == reeve.ProposalRejected {
			return reeve.Errorf(reeve.Denied, "%s as proposal %s", describeVerdict(last, "rejected this"), last.ID).
				Hintf("propose something else, unless a person reopens it")
		}
		return err
	})
	d.isProposal = err == nil
	return why, err
}

// describeVerdict says who decided on a proposal, what and when.
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

// propose makes the call an item of its thread's change set. The item, the action and its result are one transaction;
// the caller goes on, and a person decides when they like. The call costs one call and nothing else: what it would do
// is paid for when it is applied.
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

// findOrInsertProposal finds the item that says the same and is still open, or writes a new one, and says which.
func (r *Recorder) findOrInsertProposal(ctx context.Context, tx *store.Tx, diff output) (item reeve.Proposal, text string, err error) {
	// before the items are looked at: one that comes after has taken the next round
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
			return item, "", store.ErrStaleDecision{} // a person was faster: it is judged again
		case reeve.ProposalAccepted:
			return last, fmt.Sprintf(
				"This is item %d of change set %s already, and a person accepted it: it is being applied.",
				last.Ordinal, last.SetID), nil
		case reeve.ProposalPending:
			if r.matchesProposal(last) && last.Base == r.baseVersion() {
				return last, fmt.Sprintf(
					"This is item %d of change set %s already: a person decides. Nothing has changed yet.",
					last.Ordinal, last.SetID), nil
			}
			was := last // what a person may be looking at is left as it is, and cannot be accepted any more
			was.State, was.Comment = reeve.ProposalStale,
				"the agent proposed it again: what it was based on had changed"
			if err := tx.Ledger().TransitionProposal(ctx, was, reeve.ProposalPending); err != nil {
				return item, "", err
			}
		// over: this is another
		case reeve.ProposalApplied, reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalStale,
			reeve.ProposalUnknown:
		}
	}
	item = reeve.Proposal{ID: tx.NewID(reeve.PrefixProposal), WorkspaceID: r.call.Workspace, SetID: r.changeSetID(),
		Round:   round + 1,
		AgentID: r.call.Agent, RunID: r.call.Run, ThreadID: r.thread, CallID: r.callID, Tool: r.tool().
				ID, Args: r.argsForPerson(), ArgsHash: r.argsHash,
		ToolVersion: r.entry.fingerprint, Settings: r.settingsHash(), Base: r.baseVersion(), Preview: diff.content,
		Reason: r.call.Reason, UserID: r.call.User,
		State: reeve.ProposalPending}
	if item.Ordinal, err = tx.Ledger().LastOrdinal(ctx, item.SetID); err != nil {
		return item, "", err
	}
	item.Ordinal++
	if err := r.storeOutput(ctx, tx, diff); err != nil {
		return item, "", err
	}
	return item, fmt.Sprintf("Proposed as item %d of change set %s: a person decides. Nothing has changed yet.",
		item.Ordinal, item.SetID), tx.Ledger().InsertProposal(ctx, item)
}

// findLastProposal is the item that says the same: by the same agent, and on behalf of the same person. What is one
// person's own is not the other's. No item says the same as an undo: that is about one operation, and whoever asks for
// it again, once it came to nothing, asks anew. While it waits it is found by its operation, and is not proposed a
// second time.
func (d *Decision) findLastProposal(ctx context.Context, s *store.Snap) (reeve.Proposal, bool, error) {
	if d.undoes != "" {
		return reeve.Proposal{}, false, nil
	}
	return s.Ledger().LastProposal(ctx, d.call.Agent, d.tool().ID, d.argsHash, d.call.User)
}

// getProposalOf is the item of a change set that a call became.
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

// describeSinceProposed says what has become of a proposal since its call was answered.
func describeSinceProposed(item reeve.Proposal) string {
	switch item.State {
	case reeve.ProposalPending:
		return ""
	case reeve.ProposalRejected:
		return describeVerdict(item, "rejected it")
	case reeve.ProposalAccepted:
		return describeVerdict(item, "accepted it") + ": it is being applied"
	case reeve.ProposalApplied:
		return describeVerdict(item, "accepted it") + ", and it was applied as operation " + item.OperationID
	case reeve.ProposalStale:
		return "it is stale, and nothing was applied: " + cmp.Or(item.Message, item.Comment,
			"what it was made for has changed")
	case reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalUnknown:
	}
	return describeVerdict(item, "accepted it") + ", and it is " + string(item.State) + ": " + item.Message
}

// changeSetID collects what one run proposes; outside runs, what is proposed in one session.
func (r *Recorder) changeSetID() string {
	if r.call.Run != "" {
		return reeve.ChangeSetKey(r.call.Workspace, r.call.Agent, "run", r.call.Run)
	}
	return reeve.ChangeSetKey(r.call.Workspace, r.call.Agent, "session", r.call.Session)
}

// matchesProposal tells whether a proposal is for what would run now. Its base is compared with the preview's; see previewed.
func (d *Decision) matchesProposal(item reeve.Proposal) bool {
	return item.ArgsHash == d.argsHash && item.ToolVersion == d.entry.fingerprint && item.Settings == d.settingsHash()
}

// checkAccepted checks that what a person accepted is what would run, and that the agent may still do it at all.
func (d *decider) checkAccepted() (string, error) {
	if !d.matchesProposal(*d.proposal) {
		return "", reeve.Errorf(reeve.Stale,
			"the tool or the agent's settings for it have changed since it was proposed").
			Hintf("the agent must propose it again")
	}
	if answer, why := d.policyAnswer(d.tool()); answer == reeve.Deny {
		return "", d.policyDenial(d.tool(), why)
	}
	return "accepted by " + d.proposal.DecidedBy, nil
}
