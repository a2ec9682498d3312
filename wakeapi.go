package reeve

import (
	"strings"
	"time"
)

// The bodies of the API for runs, wakes, subscriptions, schedules and notifications.

// RunList is a page of runs.
type RunList struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next_cursor,omitempty"`
}

// WakeList is a page of an agent's or a run's wakes.
type WakeList struct {
	Wakes []Wake `json:"wakes"`
	Next  string `json:"next_cursor,omitempty"`
}

// WakeRequest wakes an agent by hand.
type WakeRequest struct {
	Input string `json:"input,omitempty" maxLength:"100000" doc:"What the run is to do"`
}

// SubscriptionRequest lets an agent watch a token.
type SubscriptionRequest struct {
	Class     TokenClass `json:"class" enum:"key,subtype,id"`
	Name      string     `json:"name" minLength:"1" maxLength:"256" doc:"Such as TASK, or an entity's id"`
	Predicate string     `json:"predicate,omitempty" maxLength:"4000" doc:"CEL over entity, such as entity.category_id == \"cat_gym\""`
}

// SubscriptionList is an agent's subscriptions.
type SubscriptionList struct {
	Subscriptions []Subscription `json:"subscriptions"`
}

// ScheduleRequest makes or changes a schedule. In a change, what is left out stays.
type ScheduleRequest struct {
	Agent        string  `json:"agent,omitempty" maxLength:"128" doc:"Id or name of the agent it wakes"`
	Name         string  `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Goal         string  `json:"goal,omitempty" minLength:"1" maxLength:"8000" doc:"Complete instructions for each run"`
	CadenceType  string  `json:"cadence_type,omitempty" enum:"cron,once,interval"`
	CadenceValue string  `json:"cadence_value,omitempty" minLength:"1" maxLength:"200" doc:"Such as 0 7 * * 1-5, 2026-03-01T07:00, or 2h"`
	Timezone     string  `json:"timezone,omitempty" minLength:"1" maxLength:"64" doc:"IANA zone; UTC if left out"`
	Misfire      Misfire `json:"misfire,omitempty" enum:"catchup,skip,all"`
	Notification Notify  `json:"notification,omitempty" enum:"always,conditional,never"`
	Status       string  `json:"status,omitempty" enum:"active,paused"`
}

// Validate refuses a name and a goal of blanks only: they say nothing.
func (q ScheduleRequest) Validate() error {
	for _, f := range []struct{ path, said, expected string }{{"/name", q.Name, "a short name"}, {"/goal", q.Goal, "complete instructions for each run"}} {
		if f.said != "" && strings.TrimSpace(f.said) == "" {
			return Wrong(f.path, "is empty", f.expected)
		}
	}
	return nil
}

// Schedule is a timer with its next firings.
type Schedule struct {
	Timer
	Upcoming []time.Time `json:"upcoming,omitempty" doc:"The next firings"`
	MissedAt []time.Time `json:"missed_at,omitempty" doc:"Firings that nobody was there for, newest first"`
	Why      string      `json:"why,omitempty" doc:"Why it is disabled"`
}

// ScheduleList is a page of schedules.
type ScheduleList struct {
	Schedules []Timer `json:"schedules"`
	Total     int     `json:"total"`
}

// NotificationList is a page of a person's notifications.
type NotificationList struct {
	Notifications []Notification `json:"notifications"`
	Next          string         `json:"next_cursor,omitempty"`
}
