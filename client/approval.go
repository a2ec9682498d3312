package client

import (
	"context"

	"reeve"
)

// ApprovalFilter chooses approvals.
type ApprovalFilter struct {
	State reeve.ApprovalState // in one state. Default: in any
	Page
}

// Approvals lists approvals, newest first.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter) (reeve.ApprovalList, error) {
	q := f.query()
	q.Set("state", string(f.State))
	return get[reeve.ApprovalList](ctx, c, path("approvals"), q)
}

// Approval gives one approval.
func (c *Client) Approval(ctx context.Context, id string) (reeve.Approval, error) {
	return get[reeve.Approval](ctx, c, path("approvals", id), nil)
}

// Approve lets a parked call run. The server runs it; [Client.Wait] follows it.
func (c *Client) Approve(ctx context.Context, id, comment string) (reeve.Approval, error) {
	return post[reeve.Approval](ctx, c, path("approvals", id, "decision"), reeve.DecisionRequest{Decision: "approve", Comment: comment})
}

// Deny ends a parked call. The comment reaches the agent.
func (c *Client) Deny(ctx context.Context, id, comment string) (reeve.Approval, error) {
	return post[reeve.Approval](ctx, c, path("approvals", id, "decision"), reeve.DecisionRequest{Decision: "deny", Comment: comment})
}

// Inbox gives everything that waits for a person.
func (c *Client) Inbox(ctx context.Context) (reeve.Inbox, error) {
	return get[reeve.Inbox](ctx, c, path("inbox"), nil)
}
