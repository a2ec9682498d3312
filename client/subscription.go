package client

import (
	"context"

	"reeve"
)

// Subscriptions lists what an agent watches.
func (c *Client) Subscriptions(ctx context.Context, agent string) (reeve.SubscriptionList, error) {
	return get[reeve.SubscriptionList](ctx, c, path("agents", agent, "subscriptions"), nil)
}

// CreateSubscription lets an agent watch something: it wakes when that changes.
func (c *Client) CreateSubscription(ctx context.Context, agent string, r reeve.SubscriptionRequest) (reeve.Subscription, error) {
	return post[reeve.Subscription](ctx, c, path("agents", agent, "subscriptions"), r)
}

// DeleteSubscription ends the watching.
func (c *Client) DeleteSubscription(ctx context.Context, id string) error {
	return c.remove(ctx, path("subscriptions", id))
}
