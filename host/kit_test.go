package host_test

import (
	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// finishOperation takes up what is due until an operation has ended, waiting for its next attempt where there is one.
func finishOperation(h *reevetest.Host, op string) reeve.Operation {
	h.T.Helper()
	var got reeve.Operation
	kit.Eventually(h.T, "operation "+op+" to end", func() bool {
		if _, err := h.Step(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		got = kit.GetOperation(h, op)
		return got.State != reeve.Dispatched && got.State != reeve.Prepared
	})
	return got
}
