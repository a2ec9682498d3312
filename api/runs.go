package api

import "reeve"

// RunList is a page of runs.
type RunList struct {
	Runs []reeve.Run `json:"runs"`
	Next string      `json:"next_cursor,omitempty"`
}

// WakeList is a page of an agent's or a run's wakes.
type WakeList struct {
	Wakes []reeve.Wake `json:"wakes"`
	Next  string       `json:"next_cursor,omitempty"`
}

// WakeRequest wakes an agent by hand.
type WakeRequest struct {
	Input string `json:"input,omitempty" maxLength:"100000" doc:"What the run is to do"`
}

// SubscriptionRequest lets an agent watch a token.
type SubscriptionRequest struct {
	Class     reeve.TokenClass `json:"class" enum:"key,subtype,id"`
	Name      string           `json:"name" minLength:"1" maxLength:"256" doc:"Such as TASK, or an entity's id"`
	Predicate string           `json:"predicate,omitempty" maxLength:"4000" doc:"CEL over entity, such as entity.category_id == \"cat_gym\""`
}

// SubscriptionList is an agent's subscriptions.
type SubscriptionList struct {
	Subscriptions []reeve.Subscription `json:"subscriptions"`
}
