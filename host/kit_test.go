package host_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// anything is a schema that takes every object.
const anything = `{"type":"object"}`

// tool is a declaration with a handler, allowed without approval unless it says otherwise.
func tool(id string, effect reeve.Effect, h reeve.Handler) reeve.Tool {
	t := reeve.Tool{ID: id, Description: "A tool of a test.", Effect: effect, Tier: reeve.SideEffecting,
		Parameters: json.RawMessage(anything), Handler: h}
	if effect == reeve.Read {
		t.Tier = reeve.ReadOnly
	}
	return t
}

// counter is a handler that counts.
type counter struct{ n atomic.Int64 }

func (c *counter) handle(context.Context, *reeve.Invocation) (any, error) {
	return fmt.Sprintf("call %d", c.n.Add(1)), nil
}

func (c *counter) count() int { return int(c.n.Load()) }

// call is a request for a call; what it lacks is left out.
type call map[string]any

func (c call) with(key string, v any) call {
	out := call{key: v}
	for k, old := range c {
		if k != key {
			out[k] = old
		}
	}
	return out
}

// do makes a call over REST and gives whatever came back.
func do(h *reevetest.Host, agent string, c call, headers ...string) (reeve.Result, api.Problem, int) {
	h.T.Helper()
	r := h.Do("POST", "/api/agents/"+agent+"/calls", c, headers...)
	var res reeve.Result
	var p api.Problem
	if r.Status < 300 {
		r.Decode(h.T, &res)
	} else {
		r.Decode(h.T, &p)
	}
	return res, p, r.Status
}

// thread reads all messages of an agent's thread.
func thread(h *reevetest.Host, agent, query string) []reeve.Message {
	h.T.Helper()
	var out []reeve.Message
	for cursor := ""; ; {
		var page api.MessageList
		h.Want(http.StatusOK, &page, "GET", "/api/agents/"+agent+"/messages?limit=500&cursor="+cursor+"&"+query, nil)
		out = append(out, page.Messages...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// pairs checks that every action of a thread has exactly one result, linked, and that the thread is one chain; it gives
// them by call id.
func pairs(h *reevetest.Host, list []reeve.Message) map[string][2]reeve.Message {
	h.T.Helper()
	out := map[string][2]reeve.Message{}
	prev := ""
	for _, m := range list {
		if m.PrevID != prev {
			h.T.Errorf("message %s follows %q, want %q", m.ID, m.PrevID, prev)
		}
		prev = m.ID
		switch m.Kind {
		case reeve.Action:
			out[m.ID] = [2]reeve.Message{m}
		case reeve.ToolResult:
			p, ok := out[m.ActionID]
			if !ok || p[1].ID != "" || p[0].ThreadID != m.ThreadID {
				h.T.Errorf("result %s answers %q, which is not an open action of its thread", m.ID, m.ActionID)
			}
			p[1] = m
			out[m.ActionID] = p
		default:
			h.T.Errorf("message %s is a %s", m.ID, m.Kind)
		}
	}
	for id, p := range out {
		if p[1].ID == "" {
			h.T.Errorf("action %s has no result", id)
		}
	}
	return out
}

func actionInfo(t testing.TB, m reeve.Message) (info reeve.ActionInfo) {
	t.Helper()
	if err := json.Unmarshal(m.Metadata, &info); err != nil {
		t.Fatal(err)
	}
	return info
}

func resultInfo(t testing.TB, m reeve.Message) (info reeve.ResultInfo) {
	t.Helper()
	if err := json.Unmarshal(m.Metadata, &info); err != nil {
		t.Fatal(err)
	}
	return info
}

func operation(h *reevetest.Host, id string) (op reeve.Operation) {
	h.T.Helper()
	h.Want(http.StatusOK, &op, "GET", "/api/operations/"+id, nil)
	return op
}

func operations(h *reevetest.Host) []reeve.Operation {
	h.T.Helper()
	var list api.OperationList
	h.Want(http.StatusOK, &list, "GET", "/api/operations?limit=500", nil)
	return list.Operations
}

func inbox(h *reevetest.Host) (in api.Inbox) {
	h.T.Helper()
	h.Want(http.StatusOK, &in, "GET", "/api/inbox", nil)
	return in
}

func decide(h *reevetest.Host, approval, decision string) reeve.Approval {
	h.T.Helper()
	var a reeve.Approval
	h.Want(http.StatusOK, &a, "POST", "/api/approvals/"+approval+"/decision", map[string]any{"decision": decision})
	return a
}

// eventually waits for what a loop or another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// soon is a second, on a machine that others keep busy; what is told to stop would go on for much longer.
const soon = 5 * time.Second

// quick is a config whose waits are short.
func quick(t testing.TB) host.Config {
	return host.Config{Dir: t.TempDir(), RetryFirst: host.Duration(time.Millisecond),
		RetryMax: host.Duration(2 * time.Millisecond), RetryAttempts: 5,
		HTTPAllow: []string{"127.0.0.1"}}
}

// crashed starts a Reeve on the database as it is now: what the old one had in its hands, it has dropped. The old one
// lives on in a world of its own.
func crashed(h *reevetest.Host, tools ...reeve.Tool) *reevetest.Host {
	h.T.Helper()
	cfg := h.Config
	dir := h.T.TempDir()
	file := filepath.Join(dir, "reeve.db")
	if err := h.Backup(h.T.Context(), file); err != nil {
		h.T.Fatal(err)
	}
	unmark(h.T, file)
	for _, name := range []string{"owner.token", "secret.key"} {
		b, err := os.ReadFile(filepath.Join(h.Dir(), name))
		if err != nil {
			h.T.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			h.T.Fatal(err)
		}
	}
	cfg.Dir = dir
	return reevetest.StartWith(h.T, cfg, tools...)
}

// unmark has a copy of a database taken for the database itself, as a crash leaves it: a server on a backup starts
// held.
func unmark(t testing.TB, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec("PRAGMA user_version = 0")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// settle takes up what is due until an operation has ended, waiting for its next attempt where there is one.
func settle(h *reevetest.Host, op string) reeve.Operation {
	h.T.Helper()
	var got reeve.Operation
	eventually(h.T, "operation "+op+" to end", func() bool {
		if _, err := h.Step(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		got = operation(h, op)
		return got.State != reeve.Dispatched && got.State != reeve.Prepared
	})
	return got
}

// witness is a far side that counts effects by idempotency key and misbehaves as it is told.
type witness struct {
	*httptest.Server
	mu      sync.Mutex
	effects map[string]int // by key: how often it was really done
	seen    []string       // the key of every request
	// before decides what happens instead of the effect, after what happens instead of the answer; nil means nothing
	// special.
	before, after func(n int, w http.ResponseWriter, r *http.Request) (handled bool)
	reached       chan string // every key, once its effect is done
}

func newWitness(t testing.TB) *witness {
	w := &witness{effects: map[string]int{}, reached: make(chan string, 1000)}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	return w
}

func (w *witness) serve(out http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	_, _ = io.Copy(io.Discard, r.Body) // or the server would not see that the other side hangs up
	if r.Method == http.MethodGet {    // a look-up
		w.mu.Lock()
		n := w.effects[filepath.Base(r.URL.Path)]
		w.mu.Unlock()
		if n == 0 {
			out.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(out, "found %d", n)
		return
	}
	w.mu.Lock()
	w.seen = append(w.seen, key)
	n := len(w.seen)
	w.mu.Unlock()
	if w.before != nil && w.before(n, out, r) {
		return
	}
	w.mu.Lock()
	if w.effects[key] == 0 {
		w.effects[key] = 1
	}
	w.mu.Unlock()
	w.reached <- key
	if w.after != nil && w.after(n, out, r) {
		return
	}
	fmt.Fprint(out, "done")
}

// total counts effects, and requests.
func (w *witness) total() (effects, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.effects {
		effects += n
	}
	return effects, len(w.seen)
}

// drop closes the connection without a word.
func drop(w http.ResponseWriter) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = c.Close()
	}
}

// define makes a tool of kind http that posts to an address, and returns its id.
func define(h *reevetest.Host, id string, effect reeve.Effect, spec map[string]any, more map[string]any) {
	h.T.Helper()
	body := map[string]any{"id": id, "kind": "http", "description": "Posts.", "effect": effect,
		"tier": "side_effecting", "parameters": json.RawMessage(anything),
		"spec": spec, "timeout_ms": 2000}
	for k, v := range more {
		body[k] = v
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", body)
}

// closedPort is an address where nobody listens, and nobody will: a port that was free a moment ago may be somebody's
// in the next.
const closedPort = "http://127.0.0.1:1"
