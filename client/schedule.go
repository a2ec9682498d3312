package client

import (
	"context"
	"net/url"
	"strconv"

	"reeve"
)

// ScheduleFilter chooses schedules, and a part of them.
type ScheduleFilter struct {
	Agent  string           // that wake one agent. Default: any
	Name   string           // part of the name
	Status reeve.TimerState // in one state. Default: in any
	Offset int              // how many to leave out at the start
	Limit  int              // how many at most. Default: as many as the server likes
}

// Schedules lists schedules, oldest first.
func (c *Client) Schedules(ctx context.Context, f ScheduleFilter) (reeve.ScheduleList, error) {
	q := url.Values{"agent": {f.Agent}, "name": {f.Name}, "status": {string(f.Status)}}
	if f.Offset != 0 {
		q.Set("offset", strconv.Itoa(f.Offset))
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return get[reeve.ScheduleList](ctx, c, path("schedules"), q)
}

// Schedule gives one schedule and its next firings.
func (c *Client) Schedule(ctx context.Context, id string) (reeve.Schedule, error) {
	return get[reeve.Schedule](ctx, c, path("schedules", id), nil)
}

// CreateSchedule makes a schedule.
func (c *Client) CreateSchedule(ctx context.Context, r reeve.ScheduleRequest) (reeve.Schedule, error) {
	return post[reeve.Schedule](ctx, c, path("schedules"), r)
}

// UpdateSchedule changes what the request names, and leaves the rest. The status pauses and resumes it.
func (c *Client) UpdateSchedule(ctx context.Context, id string, r reeve.ScheduleRequest) (reeve.Schedule, error) {
	return patch[reeve.Schedule](ctx, c, path("schedules", id), r)
}

// DeleteSchedule removes a schedule. Its runs stay.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	return c.remove(ctx, path("schedules", id))
}

// ScheduleRuns lists a schedule's runs, newest first.
func (c *Client) ScheduleRuns(ctx context.Context, id string, p Page) (reeve.RunList, error) {
	return get[reeve.RunList](ctx, c, path("schedules", id, "runs"), p.query())
}
