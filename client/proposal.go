package client

import (
	"context"
	"strconv"

	"reeve"
	"reeve/api"
)

// ProposalFilter selects proposals.
type ProposalFilter struct {
	State reeve.ProposalState // in one state. Default: in any
	Agent string              // of one agent, by id or name. Default: of all
	Set   string              // of one change set. Default: of all
	Page
}

// List lists proposals, newest first.
func (s ProposalService) List(ctx context.Context, f ProposalFilter) (api.ProposalList, error) {
	q := f.query()
	q.Set("state", string(f.State))
	q.Set("agent", f.Agent)
	q.Set("set", f.Set)
	return get[api.ProposalList](ctx, s.conn, path("proposals"), q)
}

// Get returns one proposal.
func (s ProposalService) Get(ctx context.Context, id string) (reeve.Proposal, error) {
	return get[reeve.Proposal](ctx, s.conn, path("proposals", id), nil)
}

// Accept accepts a proposed call. The server runs it. Use [OperationService.Wait] to wait for its operation.
func (s ProposalService) Accept(ctx context.Context, id, comment string) (reeve.Proposal, error) {
	return post[reeve.Proposal](ctx, s.conn, path("proposals", id, "accept"), api.CommentRequest{Comment: comment})
}

// Reject rejects a proposed call. The agent gets the comment if it proposes the same call again.
func (s ProposalService) Reject(ctx context.Context, id, comment string) (reeve.Proposal, error) {
	return post[reeve.Proposal](ctx, s.conn, path("proposals", id, "reject"), api.CommentRequest{Comment: comment})
}

// Reopen makes a rejected proposal pending again.
func (s ProposalService) Reopen(ctx context.Context, id string) (reeve.Proposal, error) {
	return post[reeve.Proposal](ctx, s.conn, path("proposals", id, "reopen"), nil)
}

// ChangeSetFilter selects change sets.
type ChangeSetFilter struct {
	Agent   string // of one agent, by id or name. Default: of all
	Pending bool   // only those with pending items. Default: all
	Page
}

// List lists change sets, newest first, without their items.
func (s ChangeSetService) List(ctx context.Context, f ChangeSetFilter) (api.ChangeSetList, error) {
	q := f.query()
	q.Set("agent", f.Agent)
	q.Set("pending", strconv.FormatBool(f.Pending))
	return get[api.ChangeSetList](ctx, s.conn, path("change-sets"), q)
}

// Get returns a change set and its items.
func (s ChangeSetService) Get(ctx context.Context, id string) (reeve.ChangeSet, error) {
	return get[reeve.ChangeSet](ctx, s.conn, path("change-sets", id), nil)
}

// Accept accepts items of a change set, each separately. Without items it accepts all pending ones.
func (s ChangeSetService) Accept(ctx context.Context, id string, r api.SetDecisionRequest) (reeve.SetDecision, error) {
	return post[reeve.SetDecision](ctx, s.conn, path("change-sets", id, "accept"), r)
}

// Reject rejects items of a change set, each separately. Without items it rejects all pending ones.
func (s ChangeSetService) Reject(ctx context.Context, id string, r api.SetDecisionRequest) (reeve.SetDecision, error) {
	return post[reeve.SetDecision](ctx, s.conn, path("change-sets", id, "reject"), r)
}
