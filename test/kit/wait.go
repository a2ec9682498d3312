package kit

import (
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// Eventually waits until a condition holds that a loop or another goroutine brings about.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// StopTimeout is how long a test allows for a stop that should take a second, because the machine may be busy. Without
// the stop the work would last much longer.
const StopTimeout = 5 * time.Second

// WaitUntilIdle steps a host until no wake is queued and no run is running.
func WaitUntilIdle(h *reevetest.Host) {
	h.T.Helper()
	Eventually(h.T, "everything to come to an end", func() bool {
		h.RunUntilIdle(h.T.Context())
		for _, r := range ListRuns(h, "state=running") {
			_ = r
			return false
		}
		var agents api.AgentList
		h.Want(200, &agents, "GET", "/api/agents?limit=500", nil)
		for _, a := range agents.Agents {
			for _, w := range ListWakes(h, a.ID) {
				if w.State == reeve.WakeQueued {
					return false
				}
			}
		}
		return true
	})
}
