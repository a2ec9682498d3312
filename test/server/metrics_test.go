package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Unknown model names share one series. Otherwise each name would be kept for ever and shown to every reader of the
// metrics.
func TestI19_UnknownModelsShareOneSeries(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: begin, text: done}\n")
	for _, model := range []string{"rehearsal/made-up", "made-up"} {
		var turn reeve.Turn
		h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+h.StartConversation("bot").
			ID+"/turns", kit.Object{"content": "begin", "model": model})
		kit.WaitForTurn(h, turn.ID)
	}
	metrics := string(h.Do("GET", "/metrics", nil).Body)
	if strings.Contains(metrics, "made-up") ||
		!strings.Contains(metrics, `reeve_model_answers_total{code="",model="rehearsal"} 1`) ||
		!strings.Contains(metrics, `reeve_model_seconds_count{model="other"} 1`) {
		t.Errorf("/metrics:\n%s", metrics)
	}
}

// An operation that a person has resolved does not count as waiting.
func TestI19_ResolvedOperationIsNotWaiting(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, kit.Tool("send", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	}))
	res := h.Call(h.Agent("a", "send").ID, "send", nil)
	for _, n := range []string{"1", "0"} {
		if metrics := string(h.Do("GET", "/metrics", nil).Body); !strings.Contains(metrics,
			`reeve_waiting{what="operations_for_a_person"} `+n+"\n") {
			t.Errorf("not %s: %s", n, metrics)
		}
		if n == "1" {
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/resolve",
				kit.Object{"resolution": "skip"})
		}
	}
}
