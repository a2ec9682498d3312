package kit

import (
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// Eventually waits for what a loop or another goroutine brings about.
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

// StopTimeout is a second, on a machine that others keep busy; what is told to stop would go on for much longer.
const StopTimeout = 5 * time.Second

// WaitUntilIdle waits until nothing is queued and every run has ended or waits for a person.
func WaitUntilIdle(h *reevetest.Host) {
	h.T.Helper()
	Eventually(h.T, "everything to come to an end", func() bool {
		h.Settle(h.T.Context())
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
