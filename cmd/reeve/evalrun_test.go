package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/client"
)

// slowTurn is a server whose clock is an hour behind, with a turn that runs until a time or until it is cancelled.
type slowTurn struct {
	ends          time.Time
	failedCancels int // number of cancel requests that fail because the server is unavailable
	canceled      bool
}

func (s *slowTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	isCancel := strings.HasSuffix(r.URL.Path, "/cancel")
	if isCancel && s.failedCancels > 0 {
		s.failedCancels--
		return nil, syscall.ECONNREFUSED
	}
	state := reeve.RunRunning
	switch s.canceled = s.canceled || isCancel; {
	case s.canceled:
		state = reeve.RunCancelled
	case !reeve.Now().Before(s.ends):
		state = reeve.RunCompleted
	}
	body := fmt.Sprintf(`{"id":"run_1","state":%q,"started_at":%q}`, state, reeve.Now().Add(-time.Hour).
		Format(time.RFC3339))
	return &http.Response{StatusCode: 200, Header: http.Header{"X-Request-Id": {"req_1"},
		"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestI20_TimeLimitUsesClientClock checks that the time limit uses only the client's clock.
func TestI20_TimeLimitUsesClientClock(t *testing.T) {
	for takes, limit := range map[time.Duration]string{4 * time.Minute: "", 6 * time.Minute: "the time limit"} {
		synctest.Test(t, func(t *testing.T) {
			server := &slowTurn{ends: reeve.Now().Add(takes)}
			c, err := client.New(client.Config{URL: "http://localhost:1", HTTP: &http.Client{Transport: server}})
			if err != nil {
				t.Fatal(err)
			}
			x := &evaluator{client: c, limits: limits{taskTime: 5 * time.Minute}}
			if got, err := x.waitForTurn(t.Context(), "run_1"); err != nil || got != limit ||
				server.canceled != (limit != "") {
				t.Errorf("a turn of %s: %q, canceled %v, %v", takes, got, server.canceled, err)
			}
		})
	}
}

// TestI20_CancelIsRetriedUntilServerReturns checks that the cancel request is retried while the server is
// unavailable. Otherwise the turn would keep running and cost money.
func TestI20_CancelIsRetriedUntilServerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowTurn{ends: reeve.Now().Add(time.Hour), failedCancels: 3}
		c, err := client.New(client.Config{URL: "http://localhost:1", HTTP: &http.Client{Transport: server}})
		if err != nil {
			t.Fatal(err)
		}
		x := &evaluator{client: c, limits: limits{taskTime: 5 * time.Minute}}
		if got, err := x.waitForTurn(t.Context(), "run_1"); err != nil || got != "the time limit" || !server.canceled {
			t.Errorf("%q, canceled %v, %v", got, server.canceled, err)
		}
	})
}
