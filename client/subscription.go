package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// List lists what an agent watches.
func (s SubscriptionService) List(ctx context.Context, agent string) (api.SubscriptionList, error) {
	return get[api.SubscriptionList](ctx, s.conn, path("agents", agent, "subscriptions"), nil)
}

// Create lets an agent watch something: it wakes when that changes.
func (s SubscriptionService) Create(ctx context.Context, agent string,
	r api.SubscriptionRequest) (reeve.Subscription, error) {
	return post[reeve.Subscription](ctx, s.conn, path("agents", agent, "subscriptions"), r)
}

// Delete ends the watching.
func (s SubscriptionService) Delete(ctx context.Context, id string) error {
	return s.conn.remove(ctx, path("subscriptions", id))
}
