package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// maxInboxItems is the most entries of each kind in the inbox.
const maxInboxItems = 200

// approvalHandlers serves approvals and the inbox.
type approvalHandlers struct {
	db       *store.DB
	gate     *gate.Gate
	redactor viewRedactor
}

func (h *approvalHandlers) inbox(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.Inbox], error) {
	out := &body[api.Inbox]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = readInbox(ctx, snap, who); err == nil {
			err = h.redactor.redact(ctx, snap, who, out.Body.Approvals, out.Body.Proposals)
		}
		if err == nil {
			out.Body.Hold, err = snap.System().Hold(ctx)
		}
		for i := 0; i < len(out.Body.Unknown) && err == nil; i++ {
			err = addArgs(ctx, snap, &out.Body.Unknown[i])
		}
		return err
	})
}

// readInbox returns everything that waits for a person, up to maxInboxItems of each kind.
func readInbox(ctx context.Context, snap *store.Snap, who reeve.Principal) (in api.Inbox, err error) {
	const limit = maxInboxItems + 1 // one more, to set More
	if in.Approvals, err = snap.Ledger().ListApprovals(ctx, who.Workspace, reeve.ApprovalPending, "",
		limit); err != nil {
		return in, err
	}
	if in.Unknown, err = snap.Ledger().ListUnknown(ctx, who.Workspace, limit); err != nil {
		return in, err
	}
	if in.Proposals, err = snap.Ledger().ListProposals(ctx, who.Workspace,
		store.ProposalFilter{State: reeve.ProposalPending, Limit: limit}); err != nil {
		return in, err
	}
	if in.Items, err = snap.Automations().WaitingItems(ctx, who.Workspace, limit); err != nil {
		return in, err
	}
	in.Questions, err = snap.Automations().ScriptJobsAwaitingAnswer(ctx, who.Workspace, visibleUser(who), limit)
	in.More = max(len(in.Approvals), len(in.Unknown), len(in.Proposals), len(in.Items),
		len(in.Questions)) > maxInboxItems
	in.Approvals, in.Unknown, in.Proposals = firstInbox(in.Approvals), firstInbox(in.Unknown), firstInbox(in.Proposals)
	in.Items, in.Questions = firstInbox(in.Items), firstInbox(in.Questions)
	return in, err
}

// firstInbox returns the first maxInboxItems entries of a list.
func firstInbox[T any](list []T) []T { return list[:min(len(list), maxInboxItems)] }

func (h *approvalHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	State reeve.ApprovalState `query:"state" enum:"pending,approved,denied,expired,lapsed"`
}) (*body[api.ApprovalList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.ApprovalList]{}
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body.Approvals, err = snap.Ledger().ListApprovals(ctx, who.Workspace, in.State, in.Cursor,
			in.Limit); err != nil {
			return err
		}
		return h.redactor.redact(ctx, snap, who, out.Body.Approvals, nil)
	})
	if n := len(out.Body.Approvals); n == in.Limit {
		out.Body.Next = out.Body.Approvals[n-1].ID
	}
	return out, err
}

func (h *approvalHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Approval], error) {
	out := &body[reeve.Approval]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		a, err := snap.Ledger().GetApproval(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body = a.AsOf(snap.Now())
		return h.redactor.redactOne(ctx, snap, who, &out.Body, nil)
	})
}

func (h *approvalHandlers) decide(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.DecisionRequest
}) (*body[reeve.Approval], error) {
	a, err := h.gate.Inbox.DecideApproval(ctx, who.Workspace, in.ID, in.Body.Decision == "approve", who.User,
		in.Body.Comment)
	return &body[reeve.Approval]{a}, err
}
