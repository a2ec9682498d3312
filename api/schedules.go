package api

import (
	"time"

	"reeve"
)

// Schedule is a timer with its next firings.
type Schedule struct {
	reeve.Timer
	Upcoming []time.Time `json:"upcoming,omitempty" doc:"The next firings"`
	MissedAt []time.Time `json:"missed_at,omitempty" doc:"Firings that nobody was there for, newest first"`
	Why      string      `json:"why,omitempty" doc:"Why it is disabled"`
}

// ScheduleList is a page of schedules.
type ScheduleList struct {
	Schedules []reeve.Timer `json:"schedules"`
	Total     int           `json:"total"`
}

// NotificationList is a page of a person's notifications.
type NotificationList struct {
	Notifications []reeve.Notification `json:"notifications"`
	Next          string               `json:"next_cursor,omitempty"`
}
