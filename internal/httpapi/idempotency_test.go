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

const key = "Idempotency-Key"

// Every POST is made once per key. Calls, wakes and turns have tests of their own.
func TestIdempotencyKey_EveryPostIsMadeOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		var said logged
		w.cfg.Log = slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h := w.start(t, tricks()...)
		x := furnish(t, h)
		h.Agent("other")
		// who is to be a participant
		h.Want(201, nil, "POST", "/api/tokens", api.TokenRequest{Name: "somebody", User: "somebody",
			Role: reeve.Member})
		posts := map[string]sample{}
		for _, o := range sampled(document(t, h).operations()) {
			if o.method == "POST" && !strings.Contains(o.path, "/calls") && !strings.HasSuffix(o.path, "/wake") &&
				!strings.HasSuffix(o.path, "/turns") && !strings.HasSuffix(o.path, "/chat") &&
				!strings.HasSuffix(o.path, "/batches") {
				posts[o.id] = samples(x)[o.id]
			}
		}
		delete(posts, "deliverOperationResult") // nobody waits for one
		posts["createTool"] = sample{path: "/api/tools", body: weather(nil)}
		posts["attachTool"] = sample{path: "/api/agents/other/tools", body: object{"tool_id": "file_read",
			"config": object{}}}
		undo := h.Call("other", "write_file", object{"path": "/x", "content": "y"})
		posts["undoOperation"] = sample{path: "/api/operations/" + undo.OperationID + "/undo"}
		for id, s := range posts {
			first := s.request(h, "POST", key, "key of "+id)
			if id == "undoOperation" && first.Status == 501 { // write_file has no undo: a refusal gives the key back
				refused(t, s.request(h, "POST", key, "key of "+id), 501, reeve.Unsupported)
				continue
			}
			if first.Status >= 300 {
				t.Errorf("%s: %d %s", id, first.Status, first.Body)
				continue
			}
			// G30: the transaction that makes the change keeps the answer.
			if after := said.take("stored after the change"); after != severalSteps[id] {
				t.Errorf("%s: response stored after the change: %v", id, after)
			}
			before := picture(t, h)
			again := s.request(h, "POST", key, "key of "+id)
			if id == "createToken" {
				if p := refused(t, again, 409, reeve.Conflict); !strings.Contains(p.Detail, "only once") {
					t.Errorf("detail %q", p.Detail)
				}
			} else if again.Status != first.Status || string(again.Body) != string(first.Body) ||
				again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s again: %d %s, first %d %s", id, again.Status, again.Body, first.Status, first.Body)
			}
			if first.Header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: the first answer says that it is a second", id)
			}
			if p := refused(t, h.Do("POST", s.path, object{"other": "body"}, key, "key of "+id), 409,
				reeve.Conflict); !strings.Contains(p.Detail, "a different request") {
				t.Errorf("detail %q", p.Detail)
			}
			unchanged(t, before, picture(t, h))
		}
	})
}

// A result is delivered once per key, and its response is stored in the same transaction.
func TestG30_DeliveredResultIsStoredWithItsKey(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		var said logged
		w.cfg.Log = slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		waits := reeve.Tool{ID: "waits", Description: "Has its outcome brought from outside.", Effect: reeve.Unsafe,
			Tier:  reeve.SideEffecting,
			Async: true, Parameters: json.RawMessage(`{"type":"object"}`),
			Handler: func(context.Context, *reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.InProgress, "it has begun")
			}}
		h := w.start(t, waits)
		h.Agent("coach", "waits")
		op := decode[reeve.Result](t, h.Want(202, nil, "POST", "/api/agents/coach/calls", object{"tool": "waits"})).
			OperationID
		h.RunUntilIdle(t.Context())
		at := "/api/operations/" + op + "/result"
		first := h.Want(200, nil, "POST", at, object{"content": "done"}, key, "k")
		if said.take("stored after the change") {
			t.Error("the response is stored after the result")
		}
		again := h.Want(200, nil, "POST", at, object{"content": "done"}, key, "k")
		if string(again.Body) != string(first.Body) || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first %s, again %s", first.Body, again.Body)
		}
		refused(t, h.Do("POST", at, object{"content": "done"}, key, "k2"), 409, reeve.Conflict)
	})
}

// severalSteps are the POSTs whose change is not one transaction. Made again, they finish what was begun and repeat
// nothing.
var severalSteps = map[string]bool{"undoOperation": true, "acceptChangeSet": true, "rejectChangeSet": true,
	"mergeBranch": true, "discardBranch": true}

// logged is what a server has logged since it was looked at.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// take tells whether something was logged, and forgets it all.
func (l *logged) take(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return strings.Contains(l.text.String(), what)
}

func TestIdempotencyKey_Scope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
	other := token(t, h, reeve.Member)
	body := object{"name": "coach"}
	first := h.Want(201, nil, "POST", "/api/agents", body, key, "k")

	// The same request, written another way.
	spaced := h.Want(201, nil, "POST", "/api/agents", `{ "name" : "coach" }`, key, "k")
	if string(spaced.Body) != string(first.Body) {
		t.Errorf("got %s, want %s", spaced.Body, first.Body)
	}
	// Another token, workspace, route or key is another request.
	refused(t, h.Do("POST", "/api/agents", body, append(as(other), key, "k")...), 409, reeve.AlreadyExists)
	h.Want(201, nil, "POST", "/api/agents", body, "X-Workspace-Id", "beta", key, "k")
	h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "file_read"}, key, "k")
	refused(t, h.Do("POST", "/api/agents", body, key, "k2"), 409, reeve.AlreadyExists)

	// A refusal gives the key back: once what was wrong is put right the same request goes through.
	refused(t, h.Do("POST", "/api/agents/later/tools", object{"tool_id": "file_read"}, key, "later"), 404,
		reeve.NotFound)
	h.Agent("later")
	h.Want(201, nil, "POST", "/api/agents/later/tools", object{"tool_id": "file_read"}, key, "later")
	refused(t, h.Do("POST", "/api/agents", `{"name":`, key, "broken"), 400, reeve.Validation)
	h.Want(201, nil, "POST", "/api/agents", object{"name": "whole"}, key, "broken")

	refusedAt(t, h.Do("POST", "/api/agents", object{"name": "long"}, key, strings.Repeat("k", 256)),
		"header/Idempotency-Key")
	h.Stop()
	h = w.start(t) // it holds over a restart
	if again := h.Want(201, nil, "POST", "/api/agents", body, key, "k"); string(again.Body) != string(first.Body) {
		t.Errorf("after a restart: %s", again.Body)
	}
}

func TestIdempotencyKey_ManyAtOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		got := atOnce(16, func(int) reevetest.Reply {
			return h.Do("POST", "/api/tokens", object{"name": "one", "role": "viewer"}, key, "k")
		})
		made := 0
		for _, r := range got {
			switch r.Status {
			case http.StatusCreated:
				made++
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
		if made != 1 || count != 1 {
			t.Errorf("%d were told of a token, and %d are there", made, count)
		}
	})
}

// A batch's key makes each of its calls once, and so does a call's own.
func TestIdempotencyKey_Calls(t *testing.T) {
	t.Parallel()
	h := start(t, tricks()...)
	h.Agent("coach", "sends", "looks")
	call := func(to string) object { return object{"tool": "sends", "args": object{"to": to}} }
	batch := object{"calls": []any{call("a"), call("b"), object{"tool": "looks"}}}
	first := decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch", batch, key,
		"batch"))
	again := decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch", batch, key,
		"batch"))
	for i := range 2 {
		if first.Results[i].Replayed || !again.Results[i].Replayed ||
			first.Results[i].OperationID != again.Results[i].OperationID {
			t.Errorf("call %d: %+v, then %+v", i, first.Results[i], again.Results[i])
		}
	}
	other := h.Want(200, nil, "POST", "/api/agents/coach/calls/batch", object{"calls": []any{call("c")}}, key, "batch")
	if r := decode[api.BatchResponse](t, other).Results[0]; r.Code != reeve.Conflict {
		t.Errorf("another call under the same key: %+v", r)
	}
	one := h.Call("coach", "sends", object{"to": "d"}, key, "k")
	two := h.Call("coach", "sends", object{"to": "d"}, key, "k")
	if one.Replayed || !two.Replayed || one.OperationID != two.OperationID {
		t.Errorf("%+v, then %+v", one, two)
	}
	refused(t, h.Do("POST", "/api/agents/coach/calls", call("e"), key, "k"), 409, reeve.Conflict)
	body := call("d")
	body["idempotency_key"] = "k"
	if r := decode[reeve.Result](t, h.Want(200, nil, "POST", "/api/agents/coach/calls", body)); !r.Replayed {
		t.Errorf("the key in the body: %+v", r)
	}
	refusedAt(t, h.Do("POST", "/api/agents/coach/calls", body, key, "another"), "/idempotency_key")
	ops := decode[api.OperationList](t, h.Want(200, nil, "GET", "/api/operations", nil)).Operations
	if len(ops) != 3 {
		t.Errorf("%d operations: %s", len(ops), fmt.Sprint(ops))
	}
}

// A key belongs to one session or run. The same key in another session is a conflict.
func TestIdempotencyKey_BelongsToOneSession(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.Agent("coach", "write_file", "read_file")
	write := func(more object) object {
		more["tool"], more["args"] = "write_file", object{"path": "/a", "content": "1"}
		return more
	}
	if res := h.Call("coach", "write_file", write(object{})["args"], key, "k"); res.IsError || res.Replayed {
		t.Fatalf("%+v", res)
	}
	h.Want(200, nil, "POST", "/api/agents/coach/calls", write(object{"run": "r1"}), key, "in a run")
	for what, again := range map[string]object{"k": {"session": "default"}, "in a run": {"run": "r1"}} {
		if res := decode[reeve.Result](t, h.Want(200, nil, "POST", "/api/agents/coach/calls", write(again), key,
			what)); !res.Replayed {
			t.Errorf("%s, again: %+v", what, res)
		}
	}
	for _, c := range []struct {
		key, where string
		other      object
	}{{"k", `session "default"`, object{"session": "s2"}}, {"k", `session "default"`, object{"run": "r1"}},
		{"in a run", `run "r1"`, object{"run": "r2"}}, {"in a run", `run "r1"`, object{}}} {
		p := refused(t, h.Do("POST", "/api/agents/coach/calls", write(c.other), key, c.key), 409, reeve.Conflict)
		if !strings.Contains(p.Detail, c.where) || !strings.Contains(p.Hint, "nothing was executed") {
			t.Errorf("%v: %+v", c, p)
		}
	}
	batch := func(session string) reeve.Result {
		return decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch",
			object{"calls": []any{write(object{"session": session})}}, key, "batch")).Results[0]
	}
	if first, again, other := batch("s3"), batch("s3"), batch("s4"); first.IsError || !again.Replayed ||
		other.Code != reeve.Conflict || !strings.Contains(other.Message, `session "s3"`) {
		t.Errorf("a batch: %+v, %+v, %+v", first, again, other)
	}
}

// A crash before the change is committed leaves a key without an answer. The same request then makes the change;
// another request with the key is refused. Such a key of an older version, whose change may have been made, is refused
// for a day.
func TestG30_KeyClaimedBeforeCrashIsRetried(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		body := object{"name": "one", "role": "viewer"}
		tokens := func() (n int) {
			for _, v := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens {
				if v.Name == "one" {
					n++
				}
			}
			return n
		}
		h.Want(201, nil, "POST", "/api/tokens", body, key, "k")
		h = w.rewind(t, h, `UPDATE requests SET status = 0, body = '', process = 'gone'`,
			`DELETE FROM access_tokens WHERE name = 'one'`)
		refused(t, h.Do("POST", "/api/tokens", object{"name": "two", "role": "viewer"}, key, "k"), 409, reeve.Conflict)
		h.Want(201, nil, "POST", "/api/tokens", body, key, "k")
		if p := refused(t, h.Do("POST", "/api/tokens", body, key, "k"), 409,
			reeve.Conflict); !strings.Contains(p.Detail, "only once") || tokens() != 1 {
			t.Errorf("%d tokens, detail %q", tokens(), p.Detail)
		}
		h = w.rewind(t, h, `UPDATE requests SET status = 0, body = '', process = '', claim = ''`)
		if p := refused(t, h.Do("POST", "/api/tokens", body, key, "k"), 409, reeve.InProgress); tokens() != 1 {
			t.Errorf("%d tokens, %+v", tokens(), p)
		}
		h = w.rewind(t, h, `UPDATE requests SET created_at = created_at - 86400001`)
		h.Want(201, nil, "POST", "/api/tokens", body, key, "k")
	})
}

// A repeated request fails with IN_PROGRESS only while a live process works on it.
func TestG30_InProgressNeedsALiveProcess(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		body := object{"name": "coach"}
		h.Want(201, nil, "POST", "/api/agents", body, key, "k")
		h = w.rewind(t, h, `UPDATE requests SET status = 0, body = '', process = 'other'`,
			`DELETE FROM agents WHERE name = 'coach'`)
		w.change(t, `INSERT INTO processes (id, heartbeat_at, started_at) VALUES ('other', 9000000000000, 1)`)
		refused(t, h.Do("POST", "/api/agents", body, key, "k"), 409, reeve.InProgress)
		w.change(t, `DELETE FROM processes WHERE id = 'other'`)
		h.Want(201, nil, "POST", "/api/agents", body, key, "k")
	})
}

// rewind stops a Reeve, changes what it has stored, and starts it again.
func (w world) rewind(t *testing.T, h *reevetest.Host, queries ...string) *reevetest.Host {
	t.Helper()
	h.Stop()
	w.change(t, queries...)
	return w.start(t)
}

// change changes what is stored, past the server.
func (w world) change(t *testing.T, queries ...string) {
	t.Helper()
	var e store.Engine
	var err error
	if w.cfg.Database != "" {
		e, err = postgres.Open(t.Context(), postgres.Config{URL: w.cfg.Database})
	} else {
		e, err = sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(w.cfg.Dir, "reeve.db")})
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
