package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"reeve"
)

// TestRunOf checks that OfWake follows a wake from the queue to its run.
func TestRunOf(t *testing.T) {
	looks := 0
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		body := `{"id":"run_1","state":"parked"}`
		if r.URL.EscapedPath() == "/api/wakes/agt%2Fmine" {
			looks++
			body = map[int]string{
				1: `{"run_key":"agt/mine","state":"queued"}`,
				2: `{"run_key":"agt/mine","state":"taken","run_id":"run_1"}`,
				3: `{"run_key":"agt/mine","state":"skipped","why":"the agent is stopped"}`,
			}[looks]
			if looks == 4 {
				answer("application/problem+json", 404,
					`{"status":404,"code":"NOT_FOUND","detail":"wake not found"}`)(w, r)
				return
			}
		}
		answer("application/json", 200, body)(w, r)
	})
	mine := reeve.Wake{AgentID: "agt_1", RunKey: "agt/mine"}
	if r, err := c.Runs().WaitForWake(t.Context(), mine); err != nil || r.ID != "run_1" || looks != 2 {
		t.Errorf("got %+v, %v after %d looks", r, err, looks)
	}
	if _, err := c.Runs().WaitForWake(t.Context(), mine); reeve.CodeOf(err) != reeve.Skipped ||
		!strings.Contains(err.Error(), "the agent is stopped") {
		t.Errorf("skipped: got %v", err)
	}
	if _, err := c.Runs().WaitForWake(t.Context(), mine); reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("gone: got %v", err)
	}
}

// TestRunOf_Behind checks that OfWake fails for a wake behind a run that waits for a person, on any page of the list. A
// turn, or a run that only waits for an agent, does not block the wake.
func TestRunOf_Behind(t *testing.T) {
	goesOn := `,"waits_for_agents":true`
	looks := 0
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		body := map[string]string{
			"/api/wakes/mine": `{"run_key":"mine","state":"queued"}`,
			"/api/runs": `{"runs":[{"id":"run_3","state":"parked","reason":"` + string(reeve.ReasonUser) +
				`","session_id":"conv_1"},{"id":"run_2","state":"parked","reason":"timer","session_id":"schedule:sch_1"}],"next_cursor":"run_2"}`,
			"/api/runs?run_2": `{"runs":[{"id":"run_1","state":"parked","reason":"manual","session_id":"manual:other"}]}`,
			"/api/runs/run_1": `{"id":"run_1","state":"parked","reason":"manual"` + goesOn + `}`,
		}[strings.TrimSuffix(r.URL.Path+"?"+r.URL.Query().Get("cursor"), "?")]
		if r.URL.Path == "/api/runs/run_1" {
			looks++
			goesOn = ""
		}
		answer("application/json", 200, body)(w, r)
	})
	r, err := c.Runs().WaitForWake(t.Context(), reeve.Wake{AgentID: "agt_1", RunKey: "mine"}, reeve.RunParked)
	if reeve.CodeOf(err) != reeve.InProgress || !strings.Contains(err.Error(), "run_1") || r.ID != "run_1" ||
		looks != 2 {
		t.Errorf("got %+v, %v after %d looks", r, err, looks)
	}
}

// restarted answers with one body, is unavailable for two requests like a restarting server, and then answers with the
// other body.
func restarted(looks *int, before, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch *looks++; *looks {
		case 1, 2:
			answer("application/json", 200, before)(w, r)
		case 3:
			panic(http.ErrAbortHandler) // closes the connection
		case 4:
			answer("application/problem+json", 503,
				`{"status":503,"code":"UNAVAILABLE","detail":"the server is stopping"}`)(w, r)
		default:
			answer("application/json", 200, after)(w, r)
		}
	}
}

// TestWaitRun_ServerRestarts checks that Wait survives a restart of the server.
func TestWaitRun_ServerRestarts(t *testing.T) {
	looks := 0
	c := newClient(t, restarted(&looks, `{"id":"run_1","state":"running"}`, `{"id":"run_1","state":"completed"}`))
	if r, err := c.Runs().Wait(t.Context(), "run_1"); err != nil || r.State != reeve.RunCompleted || looks < 5 {
		t.Errorf("got %+v, %v after %d looks", r, err, looks)
	}
}

// TestWait_ServerRestarts checks the same for operations.
func TestWait_ServerRestarts(t *testing.T) {
	looks := 0
	c := newClient(t, restarted(&looks, `{"id":"op_1","state":"prepared"}`, `{"id":"op_1","state":"committed"}`))
	if op, err := c.Operations().Wait(t.Context(), "op_1"); err != nil || op.State != reeve.Committed || looks < 5 {
		t.Errorf("got %+v, %v after %d looks", op, err, looks)
	}
}

func TestWaitRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		looks++
		answer("application/json", 200, `{"id":"run_1","state":"parked"}`)(w, r)
		if looks == 3 {
			context.AfterFunc(r.Context(), cancel) // after the response
		}
	})
	if r, err := c.Runs().Wait(ctx, "run_1", reeve.RunParked); err != nil || r.State != reeve.RunParked {
		t.Errorf("until parked: got %+v, %v", r, err)
	}
	if _, err := c.Runs().Wait(ctx, "run_1"); reeve.CodeOf(err) != reeve.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}
