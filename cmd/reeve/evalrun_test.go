package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/client"
)

// slowTurn is a server whose clock is an hour behind, with a turn that takes its time, or until it is cancelled.
type slowTurn struct {
	ends     time.Time
	canceled bool
}

func (s *slowTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	state := reeve.RunRunning
	switch s.canceled = s.canceled || strings.HasSuffix(r.URL.Path, "/cancel"); {
	case s.canceled:
		state = reeve.RunCancelled
	case !reeve.Now().Before(s.ends):
		state = reeve.RunCompleted
	}
	body := fmt.Sprintf(`{"id":"run_1","state":%q,"started_at":%q}`, state, reeve.Now().Add(-time.Hour).Format(time.RFC3339))
	return &http.Response{StatusCode: 200, Header: http.Header{"X-Request-Id": {"req_1"}, "Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// A question's time is counted by one clock, and ends the turn that takes longer.
func TestI20_TimeIsCountedByOneClock(t *testing.T) {
	for takes, limit := range map[time.Duration]string{4 * time.Minute: "", 6 * time.Minute: "its limit of time"} {
		synctest.Test(t, func(t *testing.T) {
			server := &slowTurn{ends: reeve.Now().Add(takes)}
			c, err := client.New(client.Config{URL: "http://localhost:1", HTTP: &http.Client{Transport: server}})
			if err != nil {
				t.Fatal(err)
			}
			x := &examiner{client: c, limits: limits{taskTime: 5 * time.Minute}}
			if got, err := x.await(t.Context(), "run_1"); err != nil || got != limit || server.canceled != (limit != "") {
				t.Errorf("a turn of %s: %q, canceled %v, %v", takes, got, server.canceled, err)
			}
		})
	}
}
