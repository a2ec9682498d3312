package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// List lists the subscriptions of an agent.
func (s SubscriptionService) List(ctx context.Context, agent string) (api.SubscriptionList, error) {
	return get[api.SubscriptionList](ctx, s.conn, path("agents", agent, "subscriptions"), nil)
}

// Create adds a subscription. The agent wakes when the subject changes.
func (s SubscriptionService) Create(ctx context.Context, agent string,
	r api.SubscriptionRequest) (reeve.Subscription, error) {
	return post[reeve.Subscription](ctx, s.conn, path("agents", agent, "subscriptions"), r)
}

// Delete deletes a subscription.
func (s SubscriptionService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("subscriptions", id))
}
