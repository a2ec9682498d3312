package host_test

import (
	"context"
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
	"reeve/reevetest"
)

type object = map[string]any

// bubble is a Reeve inside a bubble of testing/synctest: its API is called without a network, and time is whatever the
// test says it is. It begins at midnight UTC on Saturday, 1 January 2000.
type bubble struct {
	*host.Host
	t     *testing.T
	api   http.Handler
	token string
	cfg   host.Config
	ended bool
}

func inBubble(t *testing.T, cfg host.Config, tools ...reeve.Tool) *bubble {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Rate, cfg.Burst = 1e6, 1e6
	b := &bubble{t: t, cfg: cfg}
	var err error
	if b.Host, err = host.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.end)
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

func (b *bubble) end() {
	if !b.ended {
		b.ended = true
		if err := b.Close(); err != nil {
			b.t.Error(err)
		}
	}
}

// again closes it and opens it anew on the same directory.
func (b *bubble) again(tools ...reeve.Tool) *bubble {
	b.end()
	return inBubble(b.t, b.cfg, tools...)
}

func (b *bubble) want(status int, v any, method, path string, body any, headers ...string) {
	b.t.Helper()
	var r io.Reader
	if body != nil {
		r = strings.NewReader(string(mustJSON(body)))
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

// plan is a rehearsal for an agent's config.
func plan(output string, steps ...object) object {
	return object{"rehearsal": object{"steps": steps, "output": output}}
}

// write is a step that writes a file.
func write(path, content string) object {
	return object{"tool": "write_file", "args": object{"path": path, "content": content}}
}

func (b *bubble) agent(name string, more object) (a reeve.Agent) {
	b.t.Helper()
	body := object{"name": name, "config": plan("done")}
	for k, v := range more {
		body[k] = v
	}
	b.want(201, &a, "POST", "/api/agents", body)
	return a
}

func (b *bubble) schedule(agent string, more object) (s api.Schedule) {
	b.t.Helper()
	body := object{"agent": agent, "name": "it", "goal": "do it"}
	for k, v := range more {
		body[k] = v
	}
	b.want(201, &s, "POST", "/api/schedules", body)
	return s
}

func (b *bubble) getSchedule(id string) (s api.Schedule) {
	b.t.Helper()
	b.want(200, &s, "GET", "/api/schedules/"+id, nil)
	return s
}

func (b *bubble) runs(query string) []reeve.Run {
	b.t.Helper()
	var list api.RunList
	b.want(200, &list, "GET", "/api/runs?limit=500&"+query, nil)
	return list.Runs
}

func (b *bubble) notifications() []reeve.Notification {
	b.t.Helper()
	var list api.NotificationList
	b.want(200, &list, "GET", "/api/notifications?limit=500", nil)
	return list.Notifications
}

// settle does all there is to do now.
func (b *bubble) settle() {
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

// pass lets time pass, and does what is due every so often.
func (b *bubble) pass(d, every time.Duration) {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(every, time.Until(end)))
		b.settle()
	}
}

// to passes time until an instant, as pass does.
func (b *bubble) to(at string, every time.Duration) {
	b.t.Helper()
	when, err := time.Parse("2006-01-02 15:04", at)
	if err != nil {
		b.t.Fatal(err)
	}
	if every == 0 {
		time.Sleep(time.Until(when))
		b.settle()
		return
	}
	b.pass(time.Until(when), every)
}

// call makes a call for a user, as a program does.
func (b *bubble) call(user, agent, tool string, args any) reeve.Result {
	b.t.Helper()
	res, err := b.Call(b.t.Context(), reeve.Call{Workspace: "default", Agent: agent, Tool: tool, Args: mustJSON(args),
		User: user})
	if err != nil {
		return reeve.Result{IsError: true, Code: reeve.CodeOf(err), Message: reeve.AsError(err).
			Message, Fields: reeve.AsError(err).Fields}
	}
	return res
}

// live is a Reeve whose loops run, in real time.
func live(t testing.TB, h *reevetest.Host) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := h.Step(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// watch lets an agent watch a token.
func watch(h *reevetest.Host, agent, class, name, predicate string) (s reeve.Subscription) {
	h.T.Helper()
	h.Want(201, &s, "POST", "/api/agents/"+agent+"/subscriptions", object{"class": class, "name": name,
		"predicate": predicate})
	return s
}

func runsOf(h *reevetest.Host, query string) []reeve.Run {
	h.T.Helper()
	var list api.RunList
	h.Want(200, &list, "GET", "/api/runs?limit=500&"+query, nil)
	return list.Runs
}

func wakesOf(h *reevetest.Host, agent string) []reeve.Wake {
	h.T.Helper()
	var list api.WakeList
	h.Want(200, &list, "GET", "/api/agents/"+agent+"/wakes", nil)
	return list.Wakes
}

// rehearse sets what an agent does when it runs.
func rehearse(h *reevetest.Host, agent, output string, steps ...object) {
	h.T.Helper()
	h.Want(200, nil, "PATCH", "/api/agents/"+agent, object{"config": plan(output, steps...)})
}

// quiet waits until nothing is queued and every run has ended or waits for a person.
func quiet(h *reevetest.Host) {
	h.T.Helper()
	eventually(h.T, "everything to come to an end", func() bool {
		h.RunUntilIdle(h.T.Context())
		for _, r := range runsOf(h, "state=running") {
			_ = r
			return false
		}
		var agents api.AgentList
		h.Want(200, &agents, "GET", "/api/agents?limit=500", nil)
		for _, a := range agents.Agents {
			for _, w := range wakesOf(h, a.ID) {
				if w.State == reeve.WakeQueued {
					return false
				}
			}
		}
		return true
	})
}
