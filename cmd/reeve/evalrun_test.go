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

// slowTurn is a server whose clock is an hour behind, with a turn that takes its time, or until it is cancelled.
type slowTurn struct {
	ends     time.Time
	away     int // how often it is not there when the turn is to be cancelled
	canceled bool
}

func (s *slowTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	cancels := strings.HasSuffix(r.URL.Path, "/cancel")
	if cancels && s.away > 0 {
		s.away--
		return nil, syscall.ECONNREFUSED
	}
	state := reeve.RunRunning
	switch s.canceled = s.canceled || cancels; {
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
			if got, err := x.await(t.Context(), "run_1"); err != nil || got != limit ||
				server.canceled != (limit != "") {
				t.Errorf("a turn of %s: %q, canceled %v, %v", takes, got, server.canceled, err)
			}
		})
	}
}

// A turn that comes to its limit is cancelled, though the server is away at that moment: else it would go on, and cost,
// though nobody waits for it.
func TestI20_ATurnAtItsLimitIsCancelledWhenTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowTurn{ends: reeve.Now().Add(time.Hour), away: 3}
		c, err := client.New(client.Config{URL: "http://localhost:1", HTTP: &http.Client{Transport: server}})
		if err != nil {
			t.Fatal(err)
		}
		x := &examiner{client: c, limits: limits{taskTime: 5 * time.Minute}}
		if got, err := x.await(t.Context(), "run_1"); err != nil || got != "its limit of time" || !server.canceled {
			t.Errorf("%q, canceled %v, %v", got, server.canceled, err)
		}
	})
}
