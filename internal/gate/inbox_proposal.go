package gate

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// AcceptProposal lets a proposed call be applied. The acceptance, the applied call's action and its operation are one
// transaction; the loop runs it like an approved call, here or on another server, and judges it anew then. However
// often and wherever a proposal is accepted, it is one operation: whoever comes second is given the same one.
func (i *Inbox) AcceptProposal(ctx context.Context, workspace, id, by, comment string) (reeve.Proposal, error) {
	p, err := i.updateProposal(ctx, workspace, id, func(tx *store.Tx, p reeve.Proposal) error {
		switch p.State {
		case reeve.ProposalPending:
			now := tx.Now()
			p.State, p.DecidedBy, p.Comment, p.DecidedAt, p.OperationID = reeve.ProposalAccepted, by, comment, &now,
				reeve.ProposalKey(p.ID)
			return i.writeAcceptance(ctx, tx, p)
		case reeve.ProposalAccepted, reeve.ProposalApplied, reeve.ProposalUnknown: // under way, or done: once is enough
			return nil
		case reeve.ProposalStale:
			return reeve.Errorf(reeve.Stale, "the proposal is stale: %s; nothing was applied",
				cmp.Or(p.Comment, "what it was made for has changed since")).Hintf("the agent must propose it again")
		case reeve.ProposalRejected:
			return reeve.Errorf(reeve.Conflict, "%s", describeVerdict(p, "rejected the proposal")).Hintf("reopen it first")
		case reeve.ProposalFailed, reeve.ProposalDenied:
		}
		return reeve.Errorf(reeve.Conflict, "%s, and it is %s: %s", describeVerdict(p, "accepted the proposal"), p.State,
			p.Message).Hintf("the agent must propose it again")
	})
	if err == nil {
		i.g.Wakeup()
	}
	return p, err
}

// writeAcceptance writes the acceptance, and the call to be made: by the same agent, in the same thread, with the same arguments.
func (i *Inbox) writeAcceptance(ctx context.Context, tx *store.Tx, p reeve.Proposal) error {
	if err := tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending); err != nil {
		return err
	}
	asked, err := tx.Ledger().GetCall(ctx, p.WorkspaceID, p.CallID)
	if err != nil {
		return err
	}
	info, err := asked.RequestInfo()
	if err != nil {
		return err
	}
	info.Via, info.ProposalID, info.Ref = reeve.ViaProposal, p.ID, "" // no brain waits for this one
	for i, s := range info.Trail {
		if s.Name == "approval" {
			info.Trail[i] = reeve.Step{Name: s.Name, Why: "accepted by " + p.DecidedBy}
		}
	}
	w, err := tx.Agents().GetWorkspace(ctx, p.WorkspaceID)
	if err != nil {
		return err
	}
	args := p.Args
	if info.Undoes != "" { // the person is shown more of these than the thread is
		args = asked.Args
	}
	op := reeve.Operation{ID: p.OperationID, WorkspaceID: p.WorkspaceID, AgentID: p.AgentID,
		CallID: tx.NewID(reeve.PrefixMessage), ThreadID: p.ThreadID,
		RunID: p.RunID, Tool: p.Tool, ToolVersion: p.ToolVersion, Policy: asked.Operation.Policy,
		Effect: asked.Operation.Effect, State: reeve.Prepared,
		ArgsHash: p.ArgsHash, Base: p.Base, NextAttemptAt: p.DecidedAt}
	return tx.Ledger().InsertCall(ctx, store.Call{Operation: op, Args: args, Request: mustJSON(info)},
		store.Preconditions{Revision: w.Revision})
}

// RejectProposal says no, for good: the agent is told so whenever it proposes the same again, until a person reopens
// it.
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
			return reeve.Errorf(reeve.Stale, "the proposal is stale: it will not be applied")
		case reeve.ProposalAccepted, reeve.ProposalApplied, reeve.ProposalFailed, reeve.ProposalDenied,
			reeve.ProposalUnknown:
		}
		too := reeve.Errorf(reeve.Conflict, "%s, and it is %s", describeVerdict(p, "accepted the proposal"), p.State)
		if p.State == reeve.ProposalFailed || p.State == reeve.ProposalDenied {
			return too.Hintf("nothing was applied, and nothing will be")
		}
		return too.Hintf("once it is applied it may be taken back: reeve operations undo %s", p.OperationID)
	})
}

// ReopenProposal makes a rejected proposal wait for a person again.
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
		return reeve.Errorf(reeve.Conflict, "the proposal is %s: only a rejected one can be reopened", p.State)
	})
}

// updateProposal takes a person's word on a proposal as it is now, and gives it as it is then. If somebody else was faster,
// theirs is looked at first.
func (i *Inbox) updateProposal(ctx context.Context, workspace, id string,
	word func(*store.Tx, reeve.Proposal) error) (p reeve.Proposal, err error) {
	for range maxDecisions {
		err = i.g.DB.Update(ctx, func(tx *store.Tx) error {
			if p, err = tx.Ledger().GetProposal(ctx, workspace, id); err != nil {
				return err
			}
			if err := word(tx, p); err != nil {
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

// itemsPerPage is how many items of a set are read at once.
const itemsPerPage = 100

// DecideChangeSet takes a person's word on several items of a change set or, with nil, on all that are pending. Each is
// decided on its own: that one cannot be is said of that one.
func (i *Inbox) DecideChangeSet(ctx context.Context, workspace, set string, items []string, accept bool,
	by, comment string) (out reeve.SetDecision, err error) {
	out.Items = []reeve.ItemDecision{}
	one := func(id string) error {
		d, err := i.decideItem(ctx, workspace, set, id, accept, by, comment)
		out.Items = append(out.Items, d)
		return err
	}
	err = i.g.DB.View(ctx, func(s *store.Snap) error {
		_, err := s.Ledger().GetChangeSet(ctx, workspace, set)
		return err
	})
	for i := 0; i < len(items) && err == nil; i++ {
		err = one(items[i])
	}
	for place := 0; err == nil && items == nil; {
		var page []reeve.Proposal
		err = i.g.DB.View(ctx, func(s *store.Snap) (err error) {
			page, err = s.Ledger().ListChangeSetItems(ctx, workspace, set, true, place, itemsPerPage)
			return err
		})
		for i := 0; i < len(page) && err == nil; i++ {
			place = page[i].Ordinal
			err = one(page[i].ID)
		}
		if len(page) == 0 {
			break
		}
	}
	return out, err
}

// decideItem decides one item of a set. It fails only when the store does.
func (i *Inbox) decideItem(ctx context.Context, workspace, set, id string, accept bool,
	by, comment string) (reeve.ItemDecision, error) {
	var p reeve.Proposal
	err := i.g.DB.View(ctx, func(s *store.Snap) (err error) {
		if p, err = s.Ledger().GetProposal(ctx, workspace, id); err == nil && p.SetID != set {
			err = reeve.Errorf(reeve.NotFound, "proposal %q is not an item of change set %q", id, set)
		}
		return err
	})
	if err == nil && accept {
		p, err = i.AcceptProposal(ctx, workspace, id, by, comment)
	} else if err == nil {
		p, err = i.RejectProposal(ctx, workspace, id, by, comment)
	}
	switch e := reeve.AsError(err); reeve.CodeOf(err) {
	case reeve.NotFound, reeve.Conflict, reeve.Stale:
		return reeve.ItemDecision{ID: id, Code: e.Code, Message: e.Message, Hint: e.Hint}, nil
	default:
		return reeve.ItemDecision{ID: id, Proposal: &p}, err
	}
}
