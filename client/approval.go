package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// ApprovalFilter selects approvals.
type ApprovalFilter struct {
	State reeve.ApprovalState // in one state. Default: in any
	Page
}

// List lists approvals, newest first.
func (s ApprovalService) List(ctx context.Context, f ApprovalFilter) (api.ApprovalList, error) {
	q := f.query()
	q.Set("state", string(f.State))
	return get[api.ApprovalList](ctx, s.conn, path("approvals"), q)
}

// Get returns one approval.
func (s ApprovalService) Get(ctx context.Context, id string) (reeve.Approval, error) {
	return get[reeve.Approval](ctx, s.conn, path("approvals", id), nil)
}

// Approve approves a parked call. The server runs it. Use [OperationService.Wait] to wait for it.
func (s ApprovalService) Approve(ctx context.Context, id, comment string) (reeve.Approval, error) {
	return post[reeve.Approval](ctx, s.conn, path("approvals", id, "decision"), api.DecisionRequest{Decision: "approve",
		Comment: comment})
}

// Deny denies a parked call. The agent gets the comment.
func (s ApprovalService) Deny(ctx context.Context, id, comment string) (reeve.Approval, error) {
	return post[reeve.Approval](ctx, s.conn, path("approvals", id, "decision"), api.DecisionRequest{Decision: "deny",
		Comment: comment})
}

// Inbox returns everything that waits for a person.
func (s ApprovalService) Inbox(ctx context.Context) (api.Inbox, error) {
	return get[api.Inbox](ctx, s.conn, path("inbox"), nil)
}

// CountInbox returns the number of entries in the inbox by kind.
func (s ApprovalService) CountInbox(ctx context.Context) (api.InboxCount, error) {
	return get[api.InboxCount](ctx, s.conn, path("inbox", "count"), nil)
}

// Card returns an approval with everything that a person needs to decide.
func (s ApprovalService) Card(ctx context.Context, id string) (api.ApprovalCard, error) {
	return get[api.ApprovalCard](ctx, s.conn, path("approvals", id, "card"), nil)
}

// Edit replaces a parked call by one with other arguments and returns its approval.
func (s ApprovalService) Edit(ctx context.Context, id string, r api.EditRequest) (reeve.Approval, error) {
	return post[reeve.Approval](ctx, s.conn, path("approvals", id, "edit"), r)
}

// Reveal returns a parked call with the secrets that its approval hides. Owners only.
func (s ApprovalService) Reveal(ctx context.Context, id string) (api.RevealedCall, error) {
	return get[api.RevealedCall](ctx, s.conn, path("approvals", id, "revealed"), nil)
}

// DecideAll decides several approvals. Each has its own result.
func (s ApprovalService) DecideAll(ctx context.Context, list []api.BatchDecision) (api.BatchDecisionList, error) {
	return post[api.BatchDecisionList](ctx, s.conn, path("approvals", "decisions"),
		api.BatchDecisionRequest{Decisions: list})
}
