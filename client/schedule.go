package client

import (
	"context"
	"net/url"
	"strconv"

	"reeve"
	"reeve/api"
)

// ScheduleFilter selects schedules.
type ScheduleFilter struct {
	Agent  string           // of one agent. Default: of all
	Name   string           // part of the name
	Status reeve.TimerState // in one state. Default: in any
	Offset int              // number of schedules to skip
	Limit  int              // maximum number of schedules. Default: the server's
}

// Preview returns when a schedule would fire. It reads only the cadence and the time zone of the request.
func (s ScheduleService) Preview(ctx context.Context, r reeve.ScheduleRequest) (api.SchedulePreview, error) {
	return get[api.SchedulePreview](ctx, s.conn, path("schedules", "preview"), url.Values{
		"cadence_type": {r.CadenceType}, "cadence_value": {r.CadenceValue}, "timezone": {r.Timezone}})
}

// List lists schedules, oldest first.
func (s ScheduleService) List(ctx context.Context, f ScheduleFilter) (api.ScheduleList, error) {
	q := url.Values{"agent": {f.Agent}, "name": {f.Name}, "status": {string(f.Status)}}
	if f.Offset != 0 {
		q.Set("offset", strconv.Itoa(f.Offset))
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return get[api.ScheduleList](ctx, s.conn, path("schedules"), q)
}

// Get returns one schedule with its next firing times.
func (s ScheduleService) Get(ctx context.Context, id string) (api.Schedule, error) {
	return get[api.Schedule](ctx, s.conn, path("schedules", id), nil)
}

// Create makes a schedule.
func (s ScheduleService) Create(ctx context.Context, r reeve.ScheduleRequest) (api.Schedule, error) {
	return post[api.Schedule](ctx, s.conn, path("schedules"), r)
}

// Update changes the fields that are set in the request. The status pauses and resumes the schedule.
func (s ScheduleService) Update(ctx context.Context, id string, r reeve.ScheduleRequest) (api.Schedule, error) {
	return patch[api.Schedule](ctx, s.conn, path("schedules", id), r)
}

// Delete removes a schedule. Its runs stay.
func (s ScheduleService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("schedules", id))
}

// Run fires a schedule now, besides its planned firings.
func (s ScheduleService) Run(ctx context.Context, id string) (reeve.Wake, error) {
	return post[reeve.Wake](ctx, s.conn, path("schedules", id, "run"), nil)
}

// Runs lists a schedule's runs, newest first.
func (s ScheduleService) Runs(ctx context.Context, id string, p Page) (api.RunList, error) {
	return get[api.RunList](ctx, s.conn, path("schedules", id, "runs"), p.query())
}
