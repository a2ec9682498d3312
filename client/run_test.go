package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"reeve"
)

// A wake is followed from the queue to its run.
func TestRunOf(t *testing.T) {
	looks := 0
	c := speak(t, func(w http.ResponseWriter, r *http.Request) {
		body := `{"id":"run_1","state":"parked"}`
		if strings.HasSuffix(r.URL.Path, "/wakes") {
			looks++
			body = map[int]string{
				1: `{"wakes":[{"run_key":"other","state":"taken","run_id":"run_0"},{"run_key":"mine","state":"queued"}]}`,
				2: `{"wakes":[{"run_key":"mine","state":"taken","run_id":"run_1"}]}`,
				3: `{"wakes":[{"run_key":"mine","state":"skipped","why":"the agent is stopped"}]}`,
				4: `{"wakes":[]}`,
			}[looks]
		}
		answer("application/json", 200, body)(w, r)
	})
	mine := reeve.Wake{AgentID: "agt_1", RunKey: "mine"}
	if r, err := c.RunOf(t.Context(), mine); err != nil || r.ID != "run_1" || looks != 2 {
		t.Errorf("got %+v, %v after %d looks", r, err, looks)
	}
	if _, err := c.RunOf(t.Context(), mine); reeve.CodeOf(err) != reeve.Skipped || !strings.Contains(err.Error(), "the agent is stopped") {
		t.Errorf("skipped: got %v", err)
	}
	if _, err := c.RunOf(t.Context(), mine); reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("gone: got %v", err)
	}
}

func TestWaitRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	c := speak(t, func(w http.ResponseWriter, r *http.Request) {
		looks++
		answer("application/json", 200, `{"id":"run_1","state":"parked"}`)(w, r)
		if looks == 3 {
			context.AfterFunc(r.Context(), cancel) // once it has its answer
		}
	})
	if r, err := c.WaitRun(ctx, "run_1", reeve.RunParked); err != nil || r.State != reeve.RunParked {
		t.Errorf("until parked: got %+v, %v", r, err)
	}
	if _, err := c.WaitRun(ctx, "run_1"); reeve.CodeOf(err) != reeve.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}
