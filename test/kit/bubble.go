package kit

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
)

// BubbleHost is a host inside a testing/synctest bubble. Its API is called without a network, and its clock is the
// bubble's, which begins at midnight UTC on Saturday, 1 January 2000.
type BubbleHost struct {
	*host.Host
	t      *testing.T
	api    http.Handler
	token  string
	Config host.Config
	ended  bool
}

// NewBubbleHost assembles a host in the current bubble. An empty Dir means a temporary one.
func NewBubbleHost(t *testing.T, cfg host.Config, tools ...reeve.Tool) *BubbleHost {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Rate, cfg.Burst = 1e6, 1e6
	b := &BubbleHost{t: t, Config: cfg}
	var err error
	if b.Host, err = host.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	for _, x := range tools {
		if err := b.AddTool(x); err != nil {
			t.Fatal(err)
		}
	}
	if b.api, err = b.Handler(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(cfg.Dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	b.token = strings.TrimSpace(string(text))
	return b
}

// Stop closes the host. Later calls do nothing.
func (b *BubbleHost) Stop() {
	if !b.ended {
		b.ended = true
		if err := b.Close(); err != nil {
			b.t.Error(err)
		}
	}
}

// Reopen stops the host and opens another one on the same directory.
func (b *BubbleHost) Reopen(tools ...reeve.Tool) *BubbleHost {
	b.Stop()
	return NewBubbleHost(b.t, b.Config, tools...)
}

// Want makes a request as the owner, checks the status and, unless v is nil, decodes the body.
func (b *BubbleHost) Want(status int, v any, method, path string, body any, headers ...string) {
	b.t.Helper()
	var r io.Reader
	if body != nil {
		r = strings.NewReader(string(MustJSON(body)))
	}
	req := httptest.NewRequestWithContext(b.t.Context(), method, "http://127.0.0.1"+path, r)
	req.Header.Set("Authorization", "Bearer "+b.token)
	req.Header.Set("X-Workspace-Id", "default")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, req)
	if w.Code != status {
		b.t.Fatalf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			b.t.Fatal(err)
		}
	}
}

// NewAgent creates an agent that rehearses the output "done". more overrides fields of the request.
func (b *BubbleHost) NewAgent(name string, more Object) (a reeve.Agent) {
	b.t.Helper()
	body := Object{"name": name, "config": RehearsalConfig("done")}
	for k, v := range more {
		body[k] = v
	}
	b.Want(201, &a, "POST", "/api/agents", body)
	return a
}

// NewSchedule creates a schedule for an agent. more adds fields to the request.
func (b *BubbleHost) NewSchedule(agent string, more Object) (s api.Schedule) {
	b.t.Helper()
	body := Object{"agent": agent, "name": "it", "goal": "do it"}
	for k, v := range more {
		body[k] = v
	}
	b.Want(201, &s, "POST", "/api/schedules", body)
	return s
}

// GetSchedule returns a schedule.
func (b *BubbleHost) GetSchedule(id string) (s api.Schedule) {
	b.t.Helper()
	b.Want(200, &s, "GET", "/api/schedules/"+id, nil)
	return s
}

// ListRuns returns the runs that a query selects.
func (b *BubbleHost) ListRuns(query string) []reeve.Run {
	b.t.Helper()
	var list api.RunList
	b.Want(200, &list, "GET", "/api/runs?limit=500&"+query, nil)
	return list.Runs
}

// ListNotifications returns all notifications.
func (b *BubbleHost) ListNotifications() []reeve.Notification {
	b.t.Helper()
	var list api.NotificationList
	b.Want(200, &list, "GET", "/api/notifications?limit=500", nil)
	return list.Notifications
}

// StepAll steps the host until nothing is due.
func (b *BubbleHost) StepAll() {
	b.t.Helper()
	for {
		n, err := b.Step(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// AdvanceBy lets time pass and calls StepAll at intervals.
func (b *BubbleHost) AdvanceBy(d, every time.Duration) {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(every, time.Until(end)))
		b.StepAll()
	}
}

// AdvanceTo lets time pass until an instant such as "2000-01-03 07:00" and calls StepAll at intervals, or only at the
// end if the interval is 0.
func (b *BubbleHost) AdvanceTo(at string, every time.Duration) {
	b.t.Helper()
	when, err := time.Parse("2006-01-02 15:04", at)
	if err != nil {
		b.t.Fatal(err)
	}
	if every == 0 {
		time.Sleep(time.Until(when))
		b.StepAll()
		return
	}
	b.AdvanceBy(time.Until(when), every)
}

// CallAs makes a call for a user through the Go API. An error becomes an error result.
func (b *BubbleHost) CallAs(user, agent, tool string, args any) reeve.Result {
	b.t.Helper()
	res, err := b.Call(b.t.Context(), reeve.Call{Workspace: "default", Agent: agent, Tool: tool, Args: MustJSON(args),
		User: user})
	if err != nil {
		return reeve.Result{IsError: true, Code: reeve.CodeOf(err), Message: reeve.AsError(err).
			Message, Fields: reeve.AsError(err).Fields}
	}
	return res
}

// AttachTools attaches tools to an agent.
func (b *BubbleHost) AttachTools(agent string, tools ...string) {
	b.t.Helper()
	for _, id := range tools {
		b.Want(201, nil, "POST", "/api/agents/"+agent+"/tools", Object{"tool_id": id})
	}
}

// NewWatcher creates an agent that subscribes to a token. The returned function lets a second pass and reports how
// often the agent has run since the last report.
func (b *BubbleHost) NewWatcher(name, class, what string) (woken func() int) {
	b.t.Helper()
	a := b.NewAgent(name, nil)
	b.Want(201, nil, "POST", "/api/agents/"+name+"/subscriptions", Object{"class": class, "name": what})
	before := 0
	return func() int {
		b.t.Helper()
		b.AdvanceBy(time.Second, 200*time.Millisecond)
		now := len(b.ListRuns("agent=" + a.ID))
		defer func() { before = now }()
		return now - before
	}
}
