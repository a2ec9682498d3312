// Package reevetest is a test kit: a real Reeve on a throwaway store, with tools of the test's own, driven through its
// public surfaces.
package reevetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
)

// Host is a Reeve under test.
type Host struct {
	*host.Host
	T      testing.TB
	Config host.Config
	Server *httptest.Server // nil after Run
	URL    string
	Token  string

	client *http.Client
	stop   func()
}

// Start assembles a Reeve with these tools on a temporary SQLite store, and serves its API.
func Start(t testing.TB, tools ...reeve.Tool) *Host {
	t.Helper()
	return StartWith(t, host.Config{Dir: t.TempDir()}, tools...)
}

// StartWith is Start with settings of the test's own, such as a database or the directory of an earlier Host.
func StartWith(t testing.TB, cfg host.Config, tools ...reeve.Tool) *Host {
	t.Helper()
	h := assemble(t, cfg, tools)
	handler, err := h.Handler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.Server = httptest.NewServer(handler)
	h.URL, h.client = h.Server.URL, h.Server.Client()
	h.Token = h.ownerToken()
	h.stopOnce(func() {
		h.Server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Run assembles a Reeve with these tools and lets it run as reeve serve does: it answers requests, and its loops go on
// by themselves.
func Run(t testing.TB, cfg host.Config, tools ...reeve.Tool) *Host {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	cfg.Listen = "127.0.0.1:0"
	h := assemble(t, cfg, tools)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- h.Host.Run(ctx, func(url string) { ready <- url }) }()
	select {
	case h.URL = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	h.client = &http.Client{Transport: transport}
	h.Token = h.ownerToken()
	h.stopOnce(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return h
}

// assemble makes the host.
func assemble(t testing.TB, cfg host.Config, tools []reeve.Tool) *Host {
	t.Helper()
	h := &Host{T: t, Config: cfg}
	if cfg.Log == nil && cfg.LogTo == nil {
		cfg.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	if cfg.Rate == 0 {
		cfg.Rate, cfg.Burst = 1e6, 1e6
	}
	// a copied database spares each host its migrations
	if _, err := os.Stat(cfg.Dir); err == nil && cfg.Database == "" {
		storetest.SQLiteFile(t, filepath.Join(cfg.Dir, "reeve.db"))
	}
	var err error
	if h.Host, err = host.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if err := h.AddTool(tool); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// ownerToken reads the token that the first start left.
func (h *Host) ownerToken() string {
	h.T.Helper()
	b, err := os.ReadFile(filepath.Join(h.Dir(), "owner.token"))
	if err != nil {
		h.T.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (h *Host) stopOnce(stop func()) {
	h.stop = sync.OnceFunc(stop)
	h.T.Cleanup(h.stop)
}

// Stop ends the host before the test does, so that another can be started on its directory.
func (h *Host) Stop() { h.stop() }

// Reply is an answer of the API.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode reads the body into v.
func (r Reply) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		t.Fatalf("status %d, body %s: %v", r.Status, r.Body, err)
	}
}

// Do makes a request as the owner, in the workspace default. A body that is a string or bytes is sent as it is,
// anything else as JSON; headers come in pairs.
func (h *Host) Do(method, path string, body any, headers ...string) Reply {
	h.T.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			h.T.Fatal(err)
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(h.T.Context(), method, h.URL+path, r)
	if err != nil {
		h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	req.Header.Set("X-Workspace-Id", "default")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := h.client.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	return Reply{Status: res.StatusCode, Header: res.Header, Body: text}
}

// Want is Do that also checks the status and, unless v is nil, decodes the body.
func (h *Host) Want(status int, v any, method, path string, body any, headers ...string) Reply {
	h.T.Helper()
	r := h.Do(method, path, body, headers...)
	if r.Status != status {
		h.T.Fatalf("%s %s: status %d, want %d: %s", method, path, r.Status, status, r.Body)
	}
	if v != nil {
		r.Decode(h.T, v)
	}
	return r
}

// Agent makes an agent with these tools.
func (h *Host) Agent(name string, tools ...string) reeve.Agent {
	h.T.Helper()
	var a reeve.Agent
	h.Want(http.StatusCreated, &a, "POST", "/api/agents", map[string]any{"name": name})
	for _, id := range tools {
		h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", map[string]any{"tool_id": id})
	}
	return a
}

// Call makes a call over REST and checks that it was let through.
func (h *Host) Call(agent, tool string, args any, headers ...string) reeve.Result {
	h.T.Helper()
	var res reeve.Result
	r := h.Do("POST", "/api/agents/"+agent+"/calls", map[string]any{"tool": tool, "args": args}, headers...)
	if r.Status != http.StatusOK && r.Status != http.StatusAccepted {
		h.T.Fatalf("call %s: status %d: %s", tool, r.Status, r.Body)
	}
	r.Decode(h.T, &res)
	return res
}

// RunUntilIdle processes due work until none is left.
func (h *Host) RunUntilIdle(ctx context.Context) {
	h.T.Helper()
	for {
		n, err := h.Step(ctx)
		if err != nil {
			h.T.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// testWriter sends the log to the test's own.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}
