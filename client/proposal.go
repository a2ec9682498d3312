package client

import (
	"context"
	"strconv"

	"reeve"
)

// ProposalFilter chooses proposals.
type ProposalFilter struct {
	State reeve.ProposalState // in one state. Default: in any
	Agent string              // of one agent, by id or name. Default: of all
	Set   string              // of one change set. Default: of all
	Page
}

// Proposals lists what agents proposed, newest first.
func (c *Client) Proposals(ctx context.Context, f ProposalFilter) (reeve.ProposalList, error) {
	q := f.query()
	q.Set("state", string(f.State))
	q.Set("agent", f.Agent)
	q.Set("set", f.Set)
	return get[reeve.ProposalList](ctx, c, path("proposals"), q)
}

// Proposal gives one proposal.
func (c *Client) Proposal(ctx context.Context, id string) (reeve.Proposal, error) {
	return get[reeve.Proposal](ctx, c, path("proposals", id), nil)
}

// AcceptProposal lets a proposed call be applied. The server applies it; [Client.Wait] follows its operation.
func (c *Client) AcceptProposal(ctx context.Context, id, comment string) (reeve.Proposal, error) {
	return post[reeve.Proposal](ctx, c, path("proposals", id, "accept"), reeve.CommentRequest{Comment: comment})
}

// RejectProposal refuses a proposed call for good. The comment reaches the agent if it proposes the same again.
func (c *Client) RejectProposal(ctx context.Context, id, comment string) (reeve.Proposal, error) {
	return post[reeve.Proposal](ctx, c, path("proposals", id, "reject"), reeve.CommentRequest{Comment: comment})
}

// ReopenProposal lets a rejected proposal be decided on again.
func (c *Client) ReopenProposal(ctx context.Context, id string) (reeve.Proposal, error) {
	return post[reeve.Proposal](ctx, c, path("proposals", id, "reopen"), nil)
}

// ChangeSetFilter chooses change sets.
type ChangeSetFilter struct {
	Agent   string // of one agent, by id or name. Default: of all
	Pending bool   // only those with an item that waits for a person. Default: all
	Page
}

// ChangeSets lists change sets, newest first, without their items.
func (c *Client) ChangeSets(ctx context.Context, f ChangeSetFilter) (reeve.ChangeSetList, error) {
	q := f.query()
	q.Set("agent", f.Agent)
	q.Set("pending", strconv.FormatBool(f.Pending))
	return get[reeve.ChangeSetList](ctx, c, path("change-sets"), q)
}

// ChangeSet gives a change set and its items.
func (c *Client) ChangeSet(ctx context.Context, id string) (reeve.ChangeSet, error) {
	return get[reeve.ChangeSet](ctx, c, path("change-sets", id), nil)
}

// AcceptChangeSet accepts several items of a set, each on its own; without items all that are pending.
func (c *Client) AcceptChangeSet(ctx context.Context, id string, r reeve.SetDecisionRequest) (reeve.SetDecision, error) {
	return post[reeve.SetDecision](ctx, c, path("change-sets", id, "accept"), r)
}

// RejectChangeSet rejects several items of a set, each on its own; without items all that are pending.
func (c *Client) RejectChangeSet(ctx context.Context, id string, r reeve.SetDecisionRequest) (reeve.SetDecision, error) {
	return post[reeve.SetDecision](ctx, c, path("change-sets", id, "reject"), r)
}
