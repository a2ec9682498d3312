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
