package api

import "reeve"

// RunList is a page of runs.
type RunList struct {
	Runs []reeve.Run `json:"runs"`
	Next string      `json:"next_cursor,omitempty"`
}

// AskedRequestList is what the model was asked in a run.
type AskedRequestList struct {
	Requests []reeve.AskedRequest `json:"requests"`
}

// WakeList is a page of the wakes of an agent or a run.
type WakeList struct {
	Wakes []reeve.Wake `json:"wakes"`
	Next  string       `json:"next_cursor,omitempty"`
}

// WakeRequest wakes an agent by hand.
type WakeRequest struct {
	Input string `json:"input,omitempty" maxLength:"100000" doc:"Instructions for the run"`
}

// SubscriptionRequest subscribes an agent to a token.
type SubscriptionRequest struct {
	Class     reeve.TokenClass `json:"class" enum:"key,subtype,id"`
	Name      string           `json:"name" minLength:"1" maxLength:"256" doc:"For example TASK, or the id of an entity"`
	Predicate string           `json:"predicate,omitempty" maxLength:"4000" doc:"CEL, such as entity.status == \"open\""`
}

// PredicateTrialList is the results of a predicate for past changes, newest first.
type PredicateTrialList struct {
	Trials []reeve.PredicateTrial `json:"trials"`
}

// ChangeList is a page of changes.
type ChangeList struct {
	Changes []reeve.ChangeRecord `json:"changes"`
	Next    string               `json:"next_cursor,omitempty"`
}

// ListedSubscription is a subscription and whether it can wake its agent.
type ListedSubscription struct {
	reeve.Subscription
	Reach
}

// SubscriptionList lists an agent's subscriptions.
type SubscriptionList struct {
	Subscriptions []ListedSubscription `json:"subscriptions"`
}
