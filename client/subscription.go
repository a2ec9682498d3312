package client

import (
	"context"
	"net/url"

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

// Try evaluates the predicate of a subscription on past changes, without making it.
func (s SubscriptionService) Try(ctx context.Context, agent string,
	r api.SubscriptionRequest) (api.PredicateTrialList, error) {
	return get[api.PredicateTrialList](ctx, s.conn, path("agents", agent, "subscriptions", "trial"),
		url.Values{"class": {string(r.Class)}, "name": {r.Name}, "predicate": {r.Predicate}})
}

// Delete deletes a subscription.
func (s SubscriptionService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("subscriptions", id))
}
