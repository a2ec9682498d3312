package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// event is an event of a stream.
type event struct {
	id, name string
	change   api.ChangeEvent
}

// stream is an open stream of changes.
type stream struct {
	t      *testing.T
	res    *http.Response
	events chan event // closed when the stream ends
}

// openStream opens a stream of changes with headers and waits for its first event.
func openStream(t *testing.T, h *reevetest.Host, headers ...string) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	req.Header.Set("X-Workspace-Id", "default")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, res: res, events: make(chan event, 10_000)}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	go func() {
		defer close(s.events)
		var e event
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				if json.Unmarshal([]byte(value), &e.change) != nil {
					return
				}
				s.events <- e
				e = event{}
			}
		}
	}()
	return s
}

// next returns the next event.
func (s *stream) next() event {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			s.t.Fatal("the stream has ended")
		}
		return e
	case <-time.After(20 * time.Second):
		s.t.Fatal("no event arrived")
	}
	return event{}
}

// nextOf returns the next event of a topic.
func (s *stream) nextOf(topic string) event {
	s.t.Helper()
	for {
		if e := s.next(); e.change.Topic == topic {
			return e
		}
	}
}

// guarded is a tool that needs approval.
func guarded() reeve.Tool {
	return reeve.Tool{ID: "guarded", Description: "Changes something that a person must approve.",
		Parameters: json.RawMessage(`{"type":"object"}`), Effect: reeve.Unsafe, Tier: reeve.Privileged,
		Handler: func(context.Context, *reeve.Invocation) (any, error) { return "done", nil }}
}

func TestC03_ChangesArriveAndAreResumed(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg, guarded())
		h.Agent("clerk", "guarded")
		s := openStream(t, h)
		if e := s.next(); e.name != api.EventConnected || e.id == "" {
			t.Fatalf("%+v", e)
		}
		began := reeve.Monotonic()
		approval := h.Call("clerk", "guarded", kit.Call{}).ApprovalID
		e := s.nextOf("approvals")
		if e.name != api.EventChange || e.change.ID != approval || e.id == "" {
			t.Errorf("%+v", e)
		}
		t.Logf("arrived after %s", reeve.Since(began))
		_ = s.res.Body.Close()

		// A client that reconnects gets what it has missed, and nothing twice.
		keep := openStream(t, h) // PostgreSQL is read only while there is a reader
		keep.next()
		again := openStream(t, h)
		position := again.next().id
		_ = again.res.Body.Close()
		other := h.Call("clerk", "guarded", kit.Call{"n": 2}).ApprovalID
		keep.nextOf("approvals")
		resumed := openStream(t, h, "Last-Event-ID", position)
		if e := resumed.nextOf("approvals"); e.change.ID != other {
			t.Errorf("resumed with %+v, want %s", e, other)
		}
		for _, id := range []string{"unknown-1", "x", position + "999"} {
			if e := openStream(t, h, "Last-Event-ID", id).next(); e.name != api.EventReset || e.id == "" {
				t.Errorf("resumed from %s: %+v", id, e)
			}
		}
		h.Stop()
		for range keep.events { // the server closes its streams
		}
		next := reevetest.Run(t, cfg, guarded())
		if e := openStream(t, next, "Last-Event-ID", position).next(); e.name != api.EventReset {
			t.Errorf("after a restart: %+v", e)
		}
	})
}

// A commit on one server reaches the clients of another.
func TestC03_ChangesOfOtherServersArrive(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresURL(t)
	var servers [2]*reevetest.Host
	for i := range servers {
		cfg := kit.FastConfig(t)
		cfg.Database, cfg.SecretKey = url, strings.Repeat("ab", 32)
		servers[i] = reevetest.Run(t, cfg, guarded())
	}
	servers[0].Agent("clerk", "guarded")
	s := openStream(t, servers[1], "Authorization", "Bearer "+servers[0].Token)
	s.next()
	for n := range 3 {
		began := reeve.Monotonic()
		approval := servers[0].Call("clerk", "guarded", kit.Call{"n": n}).ApprovalID
		for s.nextOf("approvals").change.ID != approval {
		}
		t.Logf("arrived after %s", reeve.Since(began))
	}
}

// A stream tells ids only of what its caller may list, and nothing of other workspaces. It ends with its session.
func TestC03_StreamsShowWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg, guarded())
		h.Agent("clerk", "guarded")
		h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", kit.Call{"id": "beta"})
		_, cookie := signIn(h, api.SessionRequest{Token: h.Token})
		var member api.NewToken
		h.Want(http.StatusCreated, &member, "POST", "/api/tokens", api.TokenRequest{Name: "m", Role: reeve.Member,
			User: "mia"})
		owner := openStream(t, h, "Authorization", "", "Cookie", cookie)
		limited := openStream(t, h, "Authorization", "Bearer "+member.Token)
		foreign := openStream(t, h, "X-Workspace-Id", "beta")
		for _, s := range []*stream{owner, limited, foreign} {
			s.next()
		}
		made := h.Want(http.StatusCreated, nil, "POST", "/api/schedules", kit.Call{"agent": "clerk", "name": "daily",
			"goal": "g", "cadence_type": "cron", "cadence_value": "0 7 * * *"})
		if made.Status != http.StatusCreated || owner.nextOf("schedules").change.ID == "" {
			t.Error("the owner gets no id")
		}
		if e := limited.nextOf("schedules"); e.change.ID != "" {
			t.Errorf("a member gets the id of a schedule: %+v", e)
		}
		h.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Call{"name": "b"}, "X-Workspace-Id", "beta")
		for {
			e := foreign.next()
			if e.change.Topic == "schedules" {
				t.Errorf("another workspace gets %+v", e)
			}
			if e.change.Topic == "agents" {
				break
			}
		}
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/session", nil, inBrowser(h, cookie)...)
		for range owner.events { // ends
		}
	})
}
