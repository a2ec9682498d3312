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
		if r.URL.EscapedPath() == "/api/wakes/agt%2Fmine" {
			looks++
			body = map[int]string{
				1: `{"run_key":"agt/mine","state":"queued"}`,
				2: `{"run_key":"agt/mine","state":"taken","run_id":"run_1"}`,
				3: `{"run_key":"agt/mine","state":"skipped","why":"the agent is stopped"}`,
			}[looks]
			if looks == 4 {
				answer("application/problem+json", 404, `{"status":404,"code":"NOT_FOUND","detail":"wake not found"}`)(w, r)
				return
			}
		}
		answer("application/json", 200, body)(w, r)
	})
	mine := reeve.Wake{AgentID: "agt_1", RunKey: "agt/mine"}
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
