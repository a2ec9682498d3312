package reeve

import "strings"

// ScheduleRequest creates or changes a schedule. In a change, absent fields stay unchanged.
type ScheduleRequest struct {
	Agent        string  `json:"agent,omitempty" maxLength:"128" doc:"Id or name of the agent"`
	Name         string  `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Goal         string  `json:"goal,omitempty" minLength:"1" maxLength:"8000" doc:"Complete instructions for each run"`
	CadenceType  string  `json:"cadence_type,omitempty" enum:"cron,once,interval"`
	CadenceValue string  `json:"cadence_value,omitempty" minLength:"1" maxLength:"200" doc:"0 7 * * 1-5, 2026-03-01T07:00 or 2h"`
	Timezone     string  `json:"timezone,omitempty" minLength:"1" maxLength:"64" doc:"IANA time zone. Default: UTC"`
	Misfire      Misfire `json:"misfire,omitempty" enum:"catchup,skip,all"`
	Notification Notify  `json:"notification,omitempty" enum:"always,conditional,never"`
	Status       string  `json:"status,omitempty" enum:"active,paused"`
}

// Validate returns an error if the name or the goal is only white space.
func (q ScheduleRequest) Validate() error {
	for _, f := range []struct{ path, value, expected string }{{"/name", q.Name, "a short name"},
		{"/goal", q.Goal, "complete instructions for each run"}} {
		if f.value != "" && strings.TrimSpace(f.value) == "" {
			return InvalidField(f.path, "is empty", f.expected)
		}
	}
	return nil
}
