package kit

import (
	"net/http"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

func ListSchedules(h *reevetest.Host) []reeve.Timer {
	h.T.Helper()
	var list api.ScheduleList
	h.Want(http.StatusOK, &list, "GET", "/api/schedules", nil)
	return list.Schedules
}

// RehearsalConfig is a rehearsal for an agent's config.
func RehearsalConfig(output string, steps ...Object) Object {
	return Object{"rehearsal": Object{"steps": steps, "output": output}}
}

// WriteFileStep is a step that writes a file.
func WriteFileStep(path, content string) Object {
	return Object{"tool": "write_file", "args": Object{"path": path, "content": content}}
}

// Subscribe lets an agent watch a token.
func Subscribe(h *reevetest.Host, agent, class, name, predicate string) (s reeve.Subscription) {
	h.T.Helper()
	h.Want(201, &s, "POST", "/api/agents/"+agent+"/subscriptions", Object{"class": class, "name": name,
		"predicate": predicate})
	return s
}

func ListRuns(h *reevetest.Host, query string) []reeve.Run {
	h.T.Helper()
	var list api.RunList
	h.Want(200, &list, "GET", "/api/runs?limit=500&"+query, nil)
	return list.Runs
}

func ListWakes(h *reevetest.Host, agent string) []reeve.Wake {
	h.T.Helper()
	var list api.WakeList
	h.Want(200, &list, "GET", "/api/agents/"+agent+"/wakes", nil)
	return list.Wakes
}

// SetRehearsal sets what an agent does when it runs.
func SetRehearsal(h *reevetest.Host, agent, output string, steps ...Object) {
	h.T.Helper()
	h.Want(200, nil, "PATCH", "/api/agents/"+agent, Object{"config": RehearsalConfig(output, steps...)})
}
