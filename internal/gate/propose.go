package gate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// proposed judges a call that the agent may only propose. What changes nothing passes, and what a person rejected stays rejected.
func (p *pass) proposed(ctx context.Context, why string) (string, error) {
	if !p.tool().Effect.Mutates() {
		return why + ", and it changes nothing", nil
	}
	if p.call.PreviewOnly {
		return "a preview changes nothing", nil
	}
	err := p.g.DB.View(ctx, func(s *store.Snap) error {
		last, ok, err := p.lastProposal(ctx, s)
		if err == nil && ok && last.State == reeve.ProposalRejected {
			return reeve.Errorf(reeve.Denied, "%s as proposal %s", verdictOn(last, "rejected this"), last.ID).Hintf("propose something else, unless a person reopens it")
		}
		return err
	})
	p.proposes = err == nil
	return why, err
}

// verdictOn says who decided on a proposal, what and when.
func verdictOn(p reeve.Proposal, did string) string {
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

// propose makes the call an item of its thread's change set. The item, the action and its result are one transaction; the caller
// goes on, and a person decides when they like. The call costs one call and nothing else: what it would do is paid for when it is
// applied.
func (p *pass) propose(ctx context.Context) (res reeve.Result, err error) {
	keep := context.WithoutCancel(ctx)
	diff, err := p.decidable(ctx)
	if err != nil {
		return p.refuse(ctx, err)
	}
	p.ready()
	err = p.g.DB.Update(keep, func(tx *store.Tx) error {
		if err := p.admit(keep, tx); err != nil {
			return err
		}
		item, text, err := p.enter(keep, tx, diff)
		if err != nil {
			return err
		}
		var r *store.CallResult
		o := outcome{out: p.g.cut(text), spent: reeve.Amount{Calls: 1}, proposal: item.ID}
		if r, res, err = p.conclusion(keep, tx, o); err != nil {
			return err
		}
		op := p.operation(reeve.ProposedOp)
		op.Spent, res.State = o.spent, op.State
		if err := p.insert(keep, tx, op, r); err != nil {
			return err
		}
		return p.spend(keep, tx, o.spent)
	})
	if err != nil {
		return p.notReserved(err)
	}
	return res, nil
}

// enter finds the item that says the same and is still open, or writes a new one, and says which.
func (p *pass) enter(ctx context.Context, tx *store.Tx, diff output) (item reeve.Proposal, text string, err error) {
	round, err := tx.LastRound(ctx, p.call.Agent, p.tool().ID, p.argsHash) // before the items are looked at: one that comes after has taken the next round
	if err != nil {
		return item, "", err
	}
	last, ok, err := p.lastProposal(ctx, &tx.Snap)
	if err != nil {
		return item, "", err
	}
	if ok {
		switch last.State {
		case reeve.ProposalRejected:
			return item, "", store.Stale{} // a person was faster: it is judged again
		case reeve.ProposalAccepted:
			return last, fmt.Sprintf("This is item %d of change set %s already, and a person accepted it: it is being applied.", last.Ordinal, last.SetID), nil
		case reeve.ProposalPending:
			if p.isBound(last) && last.Base == p.base() {
				return last, fmt.Sprintf("This is item %d of change set %s already: a person decides. Nothing has changed yet.", last.Ordinal, last.SetID), nil
			}
			was := last // what a person may be looking at is left as it is, and cannot be accepted any more
			was.State, was.Comment = reeve.ProposalStale, "the agent proposed it again: what it was based on had changed"
			if err := tx.MoveProposal(ctx, was, reeve.ProposalPending); err != nil {
				return item, "", err
			}
		case reeve.ProposalApplied, reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalStale, reeve.ProposalUnknown: // over: this is another
		}
	}
	item = reeve.Proposal{ID: tx.NewID(reeve.PrefixProposal), WorkspaceID: p.call.Workspace, SetID: p.changeSet(), Round: round + 1,
		AgentID: p.call.Agent, RunID: p.call.Run, ThreadID: p.thread(), CallID: p.id, Tool: p.tool().ID, Args: p.decidedArgs(), ArgsHash: p.argsHash,
		ToolVersion: p.entry.fingerprint, Settings: p.settingsHash(), Base: p.base(), Preview: diff.content, Reason: p.call.Reason, UserID: p.call.User,
		State: reeve.ProposalPending}
	if item.Ordinal, err = tx.LastOrdinal(ctx, item.SetID); err != nil {
		return item, "", err
	}
	item.Ordinal++
	if err := p.keep(ctx, tx, diff); err != nil {
		return item, "", err
	}
	return item, fmt.Sprintf("Proposed as item %d of change set %s: a person decides. Nothing has changed yet.", item.Ordinal, item.SetID), tx.InsertProposal(ctx, item)
}

// lastProposal is the item that says the same: by the same agent, and on behalf of the same person. What is one person's own is not the other's. No item says the same as an undo: that is about one operation,
// and whoever asks for it again, once it came to nothing, asks anew. While it waits it is found by its operation, and is not proposed a second time.
func (p *pass) lastProposal(ctx context.Context, s *store.Snap) (reeve.Proposal, bool, error) {
	if p.undoes != "" {
		return reeve.Proposal{}, false, nil
	}
	return s.LastProposal(ctx, p.call.Agent, p.tool().ID, p.argsHash, p.call.User)
}

// proposalOf is the item of a change set that a call became.
func proposalOf(ctx context.Context, s *store.Snap, op reeve.Operation) (reeve.Proposal, error) {
	c, err := s.GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return reeve.Proposal{}, err
	}
	res, err := stored(c)
	if err != nil {
		return reeve.Proposal{}, err
	}
	return s.GetProposal(ctx, op.WorkspaceID, res.ProposalID)
}

// sinceProposed says what has become of a proposal since its call was answered.
func sinceProposed(item reeve.Proposal) string {
	switch item.State {
	case reeve.ProposalPending:
		return ""
	case reeve.ProposalRejected:
		return verdictOn(item, "rejected it")
	case reeve.ProposalAccepted:
		return verdictOn(item, "accepted it") + ": it is being applied"
	case reeve.ProposalApplied:
		return verdictOn(item, "accepted it") + ", and it was applied as operation " + item.OperationID
	case reeve.ProposalStale:
		return "it is stale, and nothing was applied: " + cmp.Or(item.Message, item.Comment, "what it was made for has changed")
	case reeve.ProposalFailed, reeve.ProposalDenied, reeve.ProposalUnknown:
	}
	return verdictOn(item, "accepted it") + ", and it is " + string(item.State) + ": " + item.Message
}

// changeSet collects what one run proposes; outside runs, what is proposed in one session.
func (p *pass) changeSet() string {
	if p.call.Run != "" {
		return reeve.ChangeSetKey(p.call.Workspace, p.call.Agent, "run", p.call.Run)
	}
	return reeve.ChangeSetKey(p.call.Workspace, p.call.Agent, "session", p.call.Session)
}

// settingsHash names the agent's settings for the tool.
func (p *pass) settingsHash() string { return reeve.Hash(p.config)[:16] }

// isBound tells whether a proposal is for what would run now. Its base is compared with the preview's; see previewed.
func (p *pass) isBound(item reeve.Proposal) bool {
	return item.ArgsHash == p.argsHash && item.ToolVersion == p.entry.fingerprint && item.Settings == p.settingsHash()
}

// acceptedBy checks that what a person accepted is what would run, and that the agent may still do it at all.
func (p *pass) acceptedBy() (string, error) {
	if !p.isBound(*p.proposal) {
		return "", reeve.Errorf(reeve.Stale, "the tool or the agent's settings for it have changed since it was proposed").Hintf("the agent must propose it again")
	}
	if answer, why := p.answer(); answer == reeve.Deny {
		return "", p.forbidden(why)
	}
	return "accepted by " + p.proposal.DecidedBy, nil
}
