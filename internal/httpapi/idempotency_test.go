package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/sqlite"
	"reeve/reevetest"
)

const idempotencyKey = "Idempotency-Key"

// Every POST makes its change once per key. Calls, wakes and turns have their own tests.
func TestIdempotencyKey_EveryPostIsMadeOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		var logs logBuffer
		env.cfg.Log = slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h := env.start(t, testTools()...)
		x := createFixture(t, h)
		h.Agent("other")
		// The sample of addParticipant adds this user.
		h.Want(201, nil, "POST", "/api/tokens", api.TokenRequest{Name: "carol", User: "carol", Role: reeve.Member})
		posts := map[string]sample{}
		for _, o := range filterSampled(loadOpenAPI(t, h).operations()) {
			if o.method == "POST" && !strings.Contains(o.path, "/calls") && !strings.HasSuffix(o.path, "/wake") &&
				!strings.HasSuffix(o.path, "/turns") && !strings.HasSuffix(o.path, "/chat") &&
				!strings.HasSuffix(o.path, "/batches") {
				posts[o.id] = samples(x)[o.id]
			}
		}
		delete(posts, "deliverOperationResult") // no call waits for a result
		delete(posts, "retrySummary")           // no summary has failed
		delete(posts, "lookUpOperation")        // the tool cannot look up its outcome
		delete(posts, "editApproval")           // decideApproval decides the same approval
		posts["createTool"] = sample{path: "/api/tools", body: weatherTool(nil)}
		posts["attachTool"] = sample{path: "/api/agents/other/tools", body: object{"tool_id": "file_read",
			"config": object{}}}
		undo := h.Call("other", "write_file", object{"path": "/x", "content": "y"})
		posts["undoOperation"] = sample{path: "/api/operations/" + undo.OperationID + "/undo"}
		firsts := map[string]reevetest.Reply{}
		for id, s := range posts {
			first := s.send(h, "POST", idempotencyKey, "key of "+id)
			// Write_file has no undo; a refused request releases the key.
			if id == "undoOperation" && first.Status == 501 {
				wantProblem(t, s.send(h, "POST", idempotencyKey, "key of "+id), 501, reeve.Unsupported)
				continue
			}
			if first.Status >= 300 {
				t.Errorf("%s: %d %s", id, first.Status, first.Body)
				continue
			}
			// G30: the transaction that makes the change stores the response.
			if after := logs.containsAndReset("stored after the change"); after != multiStepPosts[id] {
				t.Errorf("%s: response stored after the change: %v", id, after)
			}
			if first.Header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: first response is marked as replayed", id)
			}
			firsts[id] = first
		}
		before := takeSnapshot(t, h)
		for id, first := range firsts {
			s := posts[id]
			again := s.send(h, "POST", idempotencyKey, "key of "+id)
			if id == "createToken" || id == "createConsoleLink" {
				if p := wantProblem(t, again, 409, reeve.Conflict); !strings.Contains(p.Detail, "only once") {
					t.Errorf("detail %q", p.Detail)
				}
			} else if again.Status != first.Status || string(again.Body) != string(first.Body) ||
				again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s again: %d %s, first %d %s", id, again.Status, again.Body, first.Status, first.Body)
			}
			if p := wantProblem(t, h.Do("POST", s.path, object{"other": "body"}, idempotencyKey, "key of "+id), 409,
				reeve.Conflict); !strings.Contains(p.Detail, "a different request") {
				t.Errorf("detail %q", p.Detail)
			}
		}
		wantUnchanged(t, before, takeSnapshot(t, h))
	})
}

// A repeated edit of a parked call returns the first approval.
func TestIdempotencyKey_EditIsMadeOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		edit := samples(createFixture(t, h))["editApproval"]
		first := edit.send(h, "POST", idempotencyKey, "k")
		again := edit.send(h, "POST", idempotencyKey, "k")
		if first.Status != 200 || string(again.Body) != string(first.Body) ||
			again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first %d %s, again %d %s", first.Status, first.Body, again.Status, again.Body)
		}
		wantProblem(t, edit.send(h, "POST", idempotencyKey, "other"), 409, reeve.Conflict)
	})
}

// A result is delivered once per key, and its response is stored in the same transaction.
func TestG30_DeliveredResultIsStoredWithItsKey(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		var logs logBuffer
		env.cfg.Log = slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		waits := reeve.Tool{ID: "waits", Description: "Gets its result from another program.", Effect: reeve.Unsafe,
			Tier:  reeve.SideEffecting,
			Async: true, Parameters: json.RawMessage(`{"type":"object"}`),
			Handler: func(context.Context, *reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.InProgress, "it has begun")
			}}
		h := env.start(t, waits)
		h.Agent("coach", "waits")
		op := decode[reeve.Result](t,
			h.Want(202, nil, "POST", "/api/agents/coach/calls", object{"tool": "waits"})).OperationID
		h.RunUntilIdle(t.Context())
		at := "/api/operations/" + op + "/result"
		first := h.Want(200, nil, "POST", at, object{"content": "done"}, idempotencyKey, "k")
		if logs.containsAndReset("stored after the change") {
			t.Error("the response is stored after the result")
		}
		again := h.Want(200, nil, "POST", at, object{"content": "done"}, idempotencyKey, "k")
		if string(again.Body) != string(first.Body) || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first %s, again %s", first.Body, again.Body)
		}
		wantProblem(t, h.Do("POST", at, object{"content": "done"}, idempotencyKey, "k2"), 409, reeve.Conflict)
	})
}

// multiStepPosts are the POSTs whose change needs several transactions. A repeated request makes only the steps that
// are left.
var multiStepPosts = map[string]bool{"undoOperation": true, "acceptChangeSet": true, "rejectChangeSet": true,
	"mergeBranch": true, "discardBranch": true, "forgetNote": true, "decideApprovals": true,
	"consolidateNotes": true, "undoRun": true}

// logBuffer collects the log of a server.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// containsAndReset reports whether the log contains a text, and clears the log.
func (l *logBuffer) containsAndReset(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return strings.Contains(l.text.String(), what)
}

func TestIdempotencyKey_Scope(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
	other := createToken(t, h, reeve.Member)
	body := object{"name": "coach"}
	first := h.Want(201, nil, "POST", "/api/agents", body, idempotencyKey, "k")

	// The same JSON with other white space is the same request.
	spaced := h.Want(201, nil, "POST", "/api/agents", `{ "name" : "coach" }`, idempotencyKey, "k")
	if string(spaced.Body) != string(first.Body) {
		t.Errorf("got %s, want %s", spaced.Body, first.Body)
	}
	// A request with another token, workspace, route or key is a different request.
	wantProblem(t, h.Do("POST", "/api/agents", body, append(withToken(other), idempotencyKey, "k")...), 409,
		reeve.AlreadyExists)
	h.Want(201, nil, "POST", "/api/agents", body, "X-Workspace-Id", "beta", idempotencyKey, "k")
	h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "file_read"}, idempotencyKey, "k")
	wantProblem(t, h.Do("POST", "/api/agents", body, idempotencyKey, "k2"), 409, reeve.AlreadyExists)

	// A refused request releases the key. The same request succeeds once the cause is removed.
	wantProblem(t, h.Do("POST", "/api/agents/later/tools", object{"tool_id": "file_read"}, idempotencyKey, "later"),
		404,
		reeve.NotFound)
	h.Agent("later")
	h.Want(201, nil, "POST", "/api/agents/later/tools", object{"tool_id": "file_read"}, idempotencyKey, "later")
	wantProblem(t, h.Do("POST", "/api/agents", `{"name":`, idempotencyKey, "broken"), 400, reeve.Validation)
	h.Want(201, nil, "POST", "/api/agents", object{"name": "whole"}, idempotencyKey, "broken")

	wantFieldError(t, h.Do("POST", "/api/agents", object{"name": "long"}, idempotencyKey, strings.Repeat("k", 256)),
		"header/Idempotency-Key")
	h.Stop()
	h = env.start(t) // keys are kept over a restart
	if again := h.Want(201, nil, "POST", "/api/agents", body, idempotencyKey, "k"); string(again.Body) != string(first.Body) {
		t.Errorf("after a restart: %s", again.Body)
	}
}

func TestIdempotencyKey_ConcurrentRequests(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		got := runConcurrently(16, func(int) reevetest.Reply {
			return h.Do("POST", "/api/tokens", object{"name": "one", "role": "viewer"}, idempotencyKey, "k")
		})
		created := 0
		for _, r := range got {
			switch r.Status {
			case http.StatusCreated:
				created++
			default:
				var p api.Problem
				if r.Decode(t, &p); r.Status != 409 || p.Code != reeve.InProgress && p.Code != reeve.Conflict {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			}
		}
		count := 0
		for _, v := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens {
			if v.Name == "one" {
				count++
			}
		}
		if created != 1 || count != 1 {
			t.Errorf("%d responses created a token, %d tokens exist; want 1 and 1", created, count)
		}
	})
}

// Each call of a batch is made once per key of the batch. A single call is made once per key too.
func TestIdempotencyKey_Calls(t *testing.T) {
	t.Parallel()
	h := startServer(t, testTools()...)
	h.Agent("coach", "send", "look")
	call := func(to string) object { return object{"tool": "send", "args": object{"to": to}} }
	batch := object{"calls": []any{call("a"), call("b"), object{"tool": "look"}}}
	first := decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch", batch, idempotencyKey,
		"batch"))
	again := decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch", batch, idempotencyKey,
		"batch"))
	for i := range 2 {
		if first.Results[i].Replayed || !again.Results[i].Replayed ||
			first.Results[i].OperationID != again.Results[i].OperationID {
			t.Errorf("call %d: %+v, then %+v", i, first.Results[i], again.Results[i])
		}
	}
	other := h.Want(200, nil, "POST", "/api/agents/coach/calls/batch", object{"calls": []any{call("c")}},
		idempotencyKey, "batch")
	if r := decode[api.BatchResponse](t, other).Results[0]; r.Code != reeve.Conflict {
		t.Errorf("another call with the same key: %+v", r)
	}
	one := h.Call("coach", "send", object{"to": "d"}, idempotencyKey, "k")
	two := h.Call("coach", "send", object{"to": "d"}, idempotencyKey, "k")
	if one.Replayed || !two.Replayed || one.OperationID != two.OperationID {
		t.Errorf("%+v, then %+v", one, two)
	}
	wantProblem(t, h.Do("POST", "/api/agents/coach/calls", call("e"), idempotencyKey, "k"), 409, reeve.Conflict)
	body := call("d")
	body["idempotency_key"] = "k"
	if r := decode[reeve.Result](t, h.Want(200, nil, "POST", "/api/agents/coach/calls", body)); !r.Replayed {
		t.Errorf("the key in the body: %+v", r)
	}
	wantFieldError(t, h.Do("POST", "/api/agents/coach/calls", body, idempotencyKey, "another"), "/idempotency_key")
	ops := decode[api.OperationList](t, h.Want(200, nil, "GET", "/api/operations", nil)).Operations
	if len(ops) != 3 {
		t.Errorf("%d operations: %s", len(ops), fmt.Sprint(ops))
	}
}

// A key belongs to one session or run. The same key in another session is a conflict.
func TestIdempotencyKey_BelongsToOneSession(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	h.Agent("coach", "write_file", "read_file")
	write := func(more object) object {
		more["tool"], more["args"] = "write_file", object{"path": "/a", "content": "1"}
		return more
	}
	if res := h.Call("coach", "write_file", write(object{})["args"], idempotencyKey, "k"); res.IsError || res.Replayed {
		t.Fatalf("%+v", res)
	}
	h.Want(200, nil, "POST", "/api/agents/coach/calls", write(object{"run": "r1"}), idempotencyKey, "in a run")
	for what, again := range map[string]object{"k": {"session": "default"}, "in a run": {"run": "r1"}} {
		if res := decode[reeve.Result](t, h.Want(200, nil, "POST", "/api/agents/coach/calls", write(again),
			idempotencyKey,
			what)); !res.Replayed {
			t.Errorf("%s, again: %+v", what, res)
		}
	}
	for _, c := range []struct {
		key, where string
		other      object
	}{{"k", `session "default"`, object{"session": "s2"}}, {"k", `session "default"`, object{"run": "r1"}},
		{"in a run", `run "r1"`, object{"run": "r2"}}, {"in a run", `run "r1"`, object{}}} {
		p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls", write(c.other), idempotencyKey, c.key), 409,
			reeve.Conflict)
		if !strings.Contains(p.Detail, c.where) || !strings.Contains(p.Hint, "nothing was executed") {
			t.Errorf("%v: %+v", c, p)
		}
	}
	batch := func(session string) reeve.Result {
		return decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch",
			object{"calls": []any{write(object{"session": session})}}, idempotencyKey, "batch")).Results[0]
	}
	if first, again, other := batch("s3"), batch("s3"), batch("s4"); first.IsError || !again.Replayed ||
		other.Code != reeve.Conflict || !strings.Contains(other.Message, `session "s3"`) {
		t.Errorf("a batch: %+v, %+v, %+v", first, again, other)
	}
}

// A crash before the change is committed leaves a key without a response. The same request then makes the change, and
// another request with the key is refused. A key without a claim was left by an older version, which may have made the
// change. It is refused for a day.
func TestG30_KeyClaimedBeforeCrashIsRetried(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		body := object{"name": "one", "role": "viewer"}
		countTokens := func() (n int) {
			for _, v := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens {
				if v.Name == "one" {
					n++
				}
			}
			return n
		}
		h.Want(201, nil, "POST", "/api/tokens", body, idempotencyKey, "k")
		h = env.restartAfter(t, h, `UPDATE requests SET status = 0, body = '', process = 'gone'`,
			`DELETE FROM access_tokens WHERE name = 'one'`)
		wantProblem(t, h.Do("POST", "/api/tokens", object{"name": "two", "role": "viewer"}, idempotencyKey, "k"), 409,
			reeve.Conflict)
		h.Want(201, nil, "POST", "/api/tokens", body, idempotencyKey, "k")
		if p := wantProblem(t, h.Do("POST", "/api/tokens", body, idempotencyKey, "k"), 409, reeve.Conflict); !strings.Contains(p.Detail, "only once") || countTokens() != 1 {
			t.Errorf("%d tokens, detail %q", countTokens(), p.Detail)
		}
		h = env.restartAfter(t, h, `UPDATE requests SET status = 0, body = '', process = '', claim = ''`)
		if p := wantProblem(t, h.Do("POST", "/api/tokens", body, idempotencyKey, "k"), 409, reeve.InProgress); countTokens() != 1 {
			t.Errorf("%d tokens, %+v", countTokens(), p)
		}
		h = env.restartAfter(t, h, `UPDATE requests SET created_at = created_at - 86400001`)
		h.Want(201, nil, "POST", "/api/tokens", body, idempotencyKey, "k")
	})
}

// A repeated request fails with IN_PROGRESS only while a live process works on it.
func TestG30_InProgressNeedsALiveProcess(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		body := object{"name": "coach"}
		h.Want(201, nil, "POST", "/api/agents", body, idempotencyKey, "k")
		h = env.restartAfter(t, h, `UPDATE requests SET status = 0, body = '', process = 'other'`,
			`DELETE FROM agents WHERE name = 'coach'`)
		env.execQueries(t, `INSERT INTO processes (id, heartbeat_at, started_at) VALUES ('other', 9000000000000, 1)`)
		wantProblem(t, h.Do("POST", "/api/agents", body, idempotencyKey, "k"), 409, reeve.InProgress)
		env.execQueries(t, `DELETE FROM processes WHERE id = 'other'`)
		h.Want(201, nil, "POST", "/api/agents", body, idempotencyKey, "k")
	})
}

// restartAfter stops a server, runs queries on its database, and starts it again.
func (env testEnv) restartAfter(t *testing.T, h *reevetest.Host, queries ...string) *reevetest.Host {
	t.Helper()
	h.Stop()
	env.execQueries(t, queries...)
	return env.start(t)
}

// execQueries runs queries on the database directly, not through the server.
func (env testEnv) execQueries(t *testing.T, queries ...string) {
	t.Helper()
	var e store.Engine
	var err error
	if env.cfg.Database != "" {
		e, err = postgres.Open(t.Context(), postgres.Config{URL: env.cfg.Database})
	} else {
		e, err = sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(env.cfg.Dir, "reeve.db")})
	}
	if err != nil {
		t.Fatal(err)
	}
	db, _, err := e.Migrator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range queries {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
}
