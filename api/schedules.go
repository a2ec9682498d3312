package api

import (
	"time"

	"reeve"
)

// Schedule is a timer with its next firings.
type Schedule struct {
	reeve.Timer
	Upcoming []time.Time `json:"upcoming,omitempty" doc:"Next firings"`
	MissedAt []time.Time `json:"missed_at,omitempty" doc:"Missed firings, newest first"`
	Why      string      `json:"why,omitempty" doc:"Why the schedule is disabled"`
	Reach
}

// SchedulePreview is when a schedule would fire.
type SchedulePreview struct {
	Timezone string      `json:"timezone"`
	Upcoming []time.Time `json:"upcoming" doc:"Next firings"`
}

// Reach tells whether a subscription or schedule can wake its agent.
type Reach struct {
	CanFire bool   `json:"can_fire" doc:"False if it cannot wake its agent as things are"`
	WhyNot  string `json:"why_not,omitempty" doc:"Why it cannot"`
}

// ListedSchedule is a schedule in a list.
type ListedSchedule struct {
	reeve.Timer
	Reach
}

// ScheduleList is a page of schedules.
type ScheduleList struct {
	Schedules []ListedSchedule `json:"schedules"`
	Total     int              `json:"total"`
}

// NotificationList is a page of a person's notifications.
type NotificationList struct {
	Notifications []reeve.Notification `json:"notifications"`
	Next          string               `json:"next_cursor,omitempty"`
}
