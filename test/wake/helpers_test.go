package wake_test

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

var scheduleTools = []string{"schedule_create", "schedule_search", "schedule_edit", "schedule_delete", "schedule_runs",
	"schedule_run_output"}

// newEmitter returns a local tool that emits the events in its arguments.
func newEmitter() reeve.Tool {
	return kit.Tool("emit", reeve.Local, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		var in struct{ Class, Name string }
		if err := json.Unmarshal(inv.Args, &in); err != nil {
			return nil, err
		}
		inv.Emit(reeve.TokenClass(in.Class), in.Name)
		return "told", nil
	})
}

func countCommitted(h *reevetest.Host, tool string) (n int) {
	h.T.Helper()
	for _, op := range kit.ListOperations(h) {
		if op.Tool == tool && op.State == reeve.Committed {
			n++
		}
	}
	return n
}
