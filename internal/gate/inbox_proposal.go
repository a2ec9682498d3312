package gate

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// AcceptProposal accepts a proposed call. It writes the acceptance and a prepared call with its operation in one
// transaction. A worker of this or another process then decides on the call again and runs it. Accepting a proposal
// again returns the same operation.
func (i *Inbox) AcceptProposal(ctx context.Context, workspace, id, by, comment string) (reeve.Proposal, error) {
	p, err := i.updateProposal(ctx, workspace, id, func(tx *store.Tx, p reeve.Proposal) error {
		switch p.State {
		case reeve.ProposalPending:
			now := tx.Now()
			p.State, p.DecidedBy, p.Comment, p.DecidedAt, p.OperationID = reeve.ProposalAccepted, by, comment, &now,
				reeve.ProposalKey(p.ID)
			return i.writeAcceptance(ctx, tx, p)
		case reeve.ProposalAccepted, reeve.ProposalApplied, reeve.ProposalUnknown: // accepted before
			return nil
		case reeve.ProposalStale:
			return reeve.Errorf(reeve.Stale, "the proposal is stale: %s; nothing was applied",
				cmp.Or(p.Comment, "its base has changed")).Hintf("the agent must propose it again")
		case reeve.ProposalRejected:
			return reeve.Errorf(reeve.Conflict, "%s", describeVerdict(p, "rejected the proposal")).
				Hintf("reopen it first")
		case reeve.ProposalFailed, reeve.ProposalDenied:
		}
		return reeve.Errorf(reeve.Conflict, "%s, and it is %s: %s", describeVerdict(p, "accepted the proposal"),
			p.State,
			p.Message).Hintf("the agent must propose it again")
	})
	if err == nil {
		i.g.Wakeup()
	}
	return p, err
}

// writeAcceptance writes the accepted proposal and a prepared call of the same agent in the same thread with the same
// arguments.
func (i *Inbox) writeAcceptance(ctx context.Context, tx *store.Tx, p reeve.Proposal) error {
	if err := tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending); err != nil {
		return err
	}
	proposed, err := tx.Ledger().GetCall(ctx, p.WorkspaceID, p.CallID)
	if err != nil {
		return err
	}
	info, err := proposed.RequestInfo()
	if err != nil {
		return err
	}
	info.Via, info.ProposalID, info.Ref = reeve.ViaProposal, p.ID, "" // no model or script waits for this call
	for i, s := range info.Trace {
		if s.Name == "approval" {
			info.Trace[i] = reeve.Step{Name: s.Name, Why: "accepted by " + p.DecidedBy}
		}
	}
	w, err := tx.Agents().GetWorkspace(ctx, p.WorkspaceID)
	if err != nil {
		return err
	}
	args := p.Args
	if info.Undoes != "" { // the arguments of an undo are redacted more in the thread than for the person
		args = proposed.Args
	}
	op := proposed.Operation // the accepted call differs only in its ids, its state and its attempts
	op.ID, op.CallID, op.ResultID = p.OperationID, tx.NewID(reeve.PrefixMessage), ""
	op.State, op.NextAttemptAt, op.Attempts = reeve.Prepared, p.DecidedAt, 0
	op.Code, op.Message, op.Spent = "", "", reeve.Amount{}
	op.ToolVersion, op.Base = p.ToolVersion, p.Base
	return tx.Ledger().InsertCall(ctx, store.Call{Operation: op, Args: args, Request: mustJSON(info)},
		store.Preconditions{Revision: w.Revision})
}

// RejectProposal rejects a proposal. The gate refuses the same proposal from then on, until a person reopens it.
func (i *Inbox) RejectProposal(ctx context.Context, workspace, id, by, comment string) (reeve.Proposal, error) {
	return i.updateProposal(ctx, workspace, id, func(tx *store.Tx, p reeve.Proposal) error {
		switch p.State {
		case reeve.ProposalPending:
			now := tx.Now()
			p.State, p.DecidedBy, p.Comment, p.DecidedAt = reeve.ProposalRejected, by, comment, &now
			return tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending)
		case reeve.ProposalRejected:
			return nil
		case reeve.ProposalStale:
			return reeve.Errorf(reeve.Stale, "the proposal is stale and will not be applied")
		case reeve.ProposalAccepted, reeve.ProposalApplied, reeve.ProposalFailed, reeve.ProposalDenied,
			reeve.ProposalUnknown:
		}
		conflict := reeve.Errorf(reeve.Conflict, "%s, and it is %s", describeVerdict(p, "accepted the proposal"),
			p.State)
		if p.State == reeve.ProposalFailed || p.State == reeve.ProposalDenied {
			return conflict.Hintf("nothing was applied, and nothing will be")
		}
		return conflict.Hintf("once it is applied, reeve operations undo %s may take it back", p.OperationID)
	})
}

// ReopenProposal makes a rejected proposal pending again.
func (i *Inbox) ReopenProposal(ctx context.Context, workspace, id, by string) (reeve.Proposal, error) {
	return i.updateProposal(ctx, workspace, id, func(tx *store.Tx, p reeve.Proposal) error {
		switch p.State {
		case reeve.ProposalRejected:
			now := tx.Now()
			p.State, p.DecidedBy, p.Comment, p.DecidedAt, p.ReopenedBy, p.ReopenedAt = reeve.ProposalPending, "", "",
				nil, by, &now
			return tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalRejected)
		case reeve.ProposalPending:
			return nil
		case reeve.ProposalAccepted, reeve.ProposalApplied, reeve.ProposalFailed, reeve.ProposalDenied,
			reeve.ProposalStale, reeve.ProposalUnknown:
		}
		return reeve.Errorf(reeve.Conflict, "the proposal is %s; only a rejected proposal can be reopened", p.State)
	})
}

// updateProposal calls decide with the current proposal in a transaction and returns the proposal afterwards. If
// another decision was faster, it repeats with the new state.
func (i *Inbox) updateProposal(ctx context.Context, workspace, id string,
	decide func(*store.Tx, reeve.Proposal) error) (p reeve.Proposal, err error) {
	for range maxDecisions {
		err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
			if p, err = tx.Ledger().GetProposal(ctx, workspace, id); err != nil {
				return err
			}
			if err := decide(tx, p); err != nil {
				return err
			}
			if p, err = tx.Ledger().GetProposal(ctx, workspace, id); err != nil {
				return err
			}
			return tx.Ledger().SaveResponse(ctx, p)
		})
		if !mustDecideAgain(err) {
			return p, err
		}
	}
	return p, errKeepsChanging
}

// itemsPerPage is how many proposals are read at once.
const itemsPerPage = 100

// SetDecision is a person's decision on items of a change set.
type SetDecision struct {
	Set         string
	Items       []string // nil means all pending items
	Accept      bool
	By, Comment string
	Viewer      *string // items that the viewer does not see do not exist; see [store.Ledger.VisibleTo]
}

// DecideChangeSet decides on items of a change set. It decides on each item separately. The result reports items that
// could not be decided.
func (i *Inbox) DecideChangeSet(ctx context.Context, workspace string,
	d SetDecision) (out reeve.SetDecision, err error) {
	out.Items = []reeve.ItemDecision{}
	decide := func(id string) error {
		r, err := i.decideItem(ctx, workspace, id, d)
		out.Items = append(out.Items, r)
		return err
	}
	err = i.g.DB.View(ctx, func(s *store.Snap) error {
		_, err := s.Ledger().VisibleTo(d.Viewer).GetChangeSet(ctx, workspace, d.Set)
		return err
	})
	for i := 0; i < len(d.Items) && err == nil; i++ {
		err = decide(d.Items[i])
	}
	for ordinal := 0; err == nil && d.Items == nil; {
		var page []reeve.Proposal
		err = i.g.DB.View(ctx, func(s *store.Snap) (err error) {
			page, err = s.Ledger().VisibleTo(d.Viewer).ListChangeSetItems(ctx, workspace, d.Set, true, ordinal,
				itemsPerPage)
			return err
		})
		for i := 0; i < len(page) && err == nil; i++ {
			ordinal = page[i].Ordinal
			err = decide(page[i].ID)
		}
		if len(page) == 0 {
			break
		}
	}
	return out, err
}

// decideItem decides on one item of a change set. It returns an error only if the store fails.
func (i *Inbox) decideItem(ctx context.Context, workspace, id string, d SetDecision) (reeve.ItemDecision, error) {
	var p reeve.Proposal
	err := i.g.DB.View(ctx, func(s *store.Snap) (err error) {
		p, err = s.Ledger().VisibleTo(d.Viewer).GetProposal(ctx, workspace, id)
		if err == nil && p.SetID != d.Set {
			err = reeve.Errorf(reeve.NotFound, "proposal %q is not an item of change set %q", id, d.Set)
		}
		return err
	})
	if err == nil && d.Accept {
		p, err = i.AcceptProposal(ctx, workspace, id, d.By, d.Comment)
	} else if err == nil {
		p, err = i.RejectProposal(ctx, workspace, id, d.By, d.Comment)
	}
	switch e := reeve.AsError(err); reeve.CodeOf(err) {
	case reeve.NotFound, reeve.Conflict, reeve.Stale:
		return reeve.ItemDecision{ID: id, Code: e.Code, Message: e.Message, Hint: e.Hint}, nil
	default:
		return reeve.ItemDecision{ID: id, Proposal: &p}, err
	}
}
