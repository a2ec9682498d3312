package kit

import (
	"net/http"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// ListSchedules returns all schedules.
func ListSchedules(h *reevetest.Host) []reeve.Timer {
	h.T.Helper()
	var list api.ScheduleList
	h.Want(http.StatusOK, &list, "GET", "/api/schedules", nil)
	timers := make([]reeve.Timer, len(list.Schedules))
	for i, s := range list.Schedules {
		timers[i] = s.Timer
	}
	return timers
}

// RehearsalConfig returns an agent config with a rehearsal: steps, then an output.
func RehearsalConfig(output string, steps ...Object) Object {
	return Object{"rehearsal": Object{"steps": steps, "output": output}}
}

// WriteFileStep returns a rehearsal step that writes a file.
func WriteFileStep(path, content string) Object {
	return Object{"tool": "write_file", "args": Object{"path": path, "content": content}}
}

// Subscribe subscribes an agent to a token.
func Subscribe(h *reevetest.Host, agent, class, name, predicate string) (s reeve.Subscription) {
	h.T.Helper()
	h.Want(201, &s, "POST", "/api/agents/"+agent+"/subscriptions", Object{"class": class, "name": name,
		"predicate": predicate})
	return s
}

// ListRuns returns the runs that a query selects.
func ListRuns(h *reevetest.Host, query string) []reeve.Run {
	h.T.Helper()
	var list api.RunList
	h.Want(200, &list, "GET", "/api/runs?limit=500&"+query, nil)
	return list.Runs
}

// ListWakes returns the wakes of an agent.
func ListWakes(h *reevetest.Host, agent string) []reeve.Wake {
	h.T.Helper()
	var list api.WakeList
	h.Want(200, &list, "GET", "/api/agents/"+agent+"/wakes", nil)
	return list.Wakes
}

// SetRehearsal sets the rehearsal of an agent.
func SetRehearsal(h *reevetest.Host, agent, output string, steps ...Object) {
	h.T.Helper()
	h.Want(200, nil, "PATCH", "/api/agents/"+agent, Object{"config": RehearsalConfig(output, steps...)})
}
