package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// proposalHandlers serves proposals and change sets.
type proposalHandlers struct {
	db       *store.DB
	gate     *gate.Gate
	redactor viewRedactor
}

func (h *proposalHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	State reeve.ProposalState `query:"state" enum:"pending,rejected,accepted,applied,failed,denied,stale,unknown"`
	Agent string              `query:"agent" maxLength:"128" doc:"Agent id or name"`
	Set   string              `query:"set" maxLength:"128" doc:"Only proposals of this change set"`
}) (*body[api.ProposalList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.ProposalList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		agent, err := resolveAgentFilter(ctx, snap, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		if in.Set != "" {
			if _, err := visibleLedger(snap, who).GetChangeSet(ctx, who.Workspace, in.Set); err != nil {
				return err
			}
		}
		out.Body.Proposals, err = visibleLedger(snap, who).ListProposals(ctx, who.Workspace,
			store.ProposalFilter{Agent: agent, Set: in.Set, State: in.State, Before: in.Cursor, Limit: in.Limit})
		if err != nil {
			return err
		}
		return h.redactor.redact(ctx, snap, who, nil, out.Body.Proposals)
	})
	if n := len(out.Body.Proposals); n == in.Limit {
		out.Body.Next = out.Body.Proposals[n-1].ID
	}
	return out, err
}

func (h *proposalHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Proposal], error) {
	out := &body[reeve.Proposal]{}
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = visibleLedger(snap, who).GetProposal(ctx, who.Workspace, in.ID); err != nil {
			return err
		}
		return h.redactor.redactOne(ctx, snap, who, nil, &out.Body)
	})
	if err == nil && out.Body.State == reeve.ProposalPending && who.Role.Allows(reeve.Member) {
		out.Body.Stale, err = h.gate.WhyProposalStale(ctx, out.Body)
	}
	return out, err
}

// commentInput is the input of a decision on one proposal.
type commentInput struct {
	IDPath
	Body api.CommentRequest
}

func (h *proposalHandlers) accept(ctx context.Context, who reeve.Principal,
	in *commentInput) (*body[reeve.Proposal], error) {
	if err := checkProposal(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	p, err := h.gate.Inbox.AcceptProposal(ctx, who.Workspace, in.ID, who.User, in.Body.Comment)
	return h.decided(ctx, who, p, err)
}

func (h *proposalHandlers) reject(ctx context.Context, who reeve.Principal,
	in *commentInput) (*body[reeve.Proposal], error) {
	if err := checkProposal(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	p, err := h.gate.Inbox.RejectProposal(ctx, who.Workspace, in.ID, who.User, in.Body.Comment)
	return h.decided(ctx, who, p, err)
}

func (h *proposalHandlers) reopen(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Proposal], error) {
	if err := checkProposal(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	p, err := h.gate.Inbox.ReopenProposal(ctx, who.Workspace, in.ID, who.User)
	return h.decided(ctx, who, p, err)
}

// decided returns the answer to a decision on a proposal, redacted for the caller.
func (h *proposalHandlers) decided(ctx context.Context, who reeve.Principal, p reeve.Proposal,
	err error) (*body[reeve.Proposal], error) {
	if err == nil {
		err = h.redactor.decided(ctx, who, nil, &p)
	}
	return &body[reeve.Proposal]{p}, err
}

func (h *proposalHandlers) listSets(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent   string `query:"agent" maxLength:"128" doc:"Agent id or name"`
	Pending bool   `query:"pending" doc:"Only change sets with a pending item"`
}) (*body[api.ChangeSetList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.ChangeSetList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		agent, err := resolveAgentFilter(ctx, snap, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		sets, cursors, err := visibleLedger(snap, who).ListChangeSets(ctx, who.Workspace,
			store.ChangeSetFilter{Agent: agent, Pending: in.Pending, Before: in.Cursor, Limit: in.Limit})
		if out.Body.ChangeSets = sets; len(cursors) == in.Limit {
			out.Body.Next = cursors[in.Limit-1]
		}
		return err
	})
}

// maxSetItems is the most items that getSet returns. The list of proposals returns the others.
const maxSetItems = 500

func (h *proposalHandlers) getSet(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.ChangeSet], error) {
	out := &body[reeve.ChangeSet]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		ledger := visibleLedger(snap, who)
		if out.Body, err = ledger.GetChangeSet(ctx, who.Workspace, in.ID); err != nil {
			return err
		}
		if out.Body.Items, err = ledger.ListChangeSetItems(ctx, who.Workspace, in.ID, false, 0,
			maxSetItems); err != nil {
			return err
		}
		return h.redactor.redact(ctx, snap, who, nil, out.Body.Items)
	})
}

// setDecisionInput is the input of a decision on items of a change set.
type setDecisionInput struct {
	IDPath
	Body api.SetDecisionRequest
}

func (h *proposalHandlers) acceptSet(ctx context.Context, who reeve.Principal,
	in *setDecisionInput) (*body[reeve.SetDecision], error) {
	return h.decideSet(ctx, who, in, true)
}

func (h *proposalHandlers) rejectSet(ctx context.Context, who reeve.Principal,
	in *setDecisionInput) (*body[reeve.SetDecision], error) {
	return h.decideSet(ctx, who, in, false)
}

func (h *proposalHandlers) decideSet(ctx context.Context, who reeve.Principal, in *setDecisionInput,
	accept bool) (*body[reeve.SetDecision], error) {
	d, err := h.gate.Inbox.DecideChangeSet(ctx, who.Workspace, gate.SetDecision{Set: in.ID, Items: in.Body.Items,
		Accept: accept, By: who.User, Comment: in.Body.Comment, Viewer: viewerOf(who)})
	for i := 0; i < len(d.Items) && err == nil; i++ {
		err = h.redactor.decided(ctx, who, nil, d.Items[i].Proposal)
	}
	return &body[reeve.SetDecision]{d}, err
}
