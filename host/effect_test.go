package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/reevetest"
)

// put is a local tool: it writes a session file, tells about it, and then does what the arguments say.
func put(then func(ctx context.Context, tx *store.Tx, inv *reeve.Invocation) error) reeve.Handler {
	return func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		tx, err := store.TxFrom(ctx)
		if err != nil {
			return nil, err
		}
		if err := tx.Chat().PutSessionFile(ctx, inv.Workspace, inv.Session, "/effect", []byte("here")); err != nil {
			return nil, err
		}
		inv.Emit(reeve.SemanticKey, "EFFECT")
		if then != nil {
			if err := then(ctx, tx, inv); err != nil {
				return nil, err
			}
		}
		return "put", nil
	}
}

// there tells whether the local effect is there.
func there(h *reevetest.Host, agent string) bool {
	h.T.Helper()
	return !h.Call(agent, "read_file", map[string]any{"path": "/effect"}).IsError
}

// Effect, operation, messages and notification are there together, or none of them is but the record that it failed.
func TestG08_LocalEffectAndRecordAreOne(t *testing.T) {
	t.Parallel()
	var kept *store.Tx
	tools := []reeve.Tool{tool("put", reeve.Local, put(nil)),
		tool("put_fail", reeve.Local,
			put(func(context.Context, *store.Tx, *reeve.Invocation) error { return errors.New("changed my mind") })),
		tool("put_panic", reeve.Local,
			put(func(context.Context, *store.Tx, *reeve.Invocation) error { panic("boom") })),
		tool("put_careless", reeve.Local, put(func(ctx context.Context, tx *store.Tx, _ *reeve.Invocation) error {
			// does not heed the failure
			_ = tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "x", WorkspaceID: "no such workspace", Name: "x",
				Config: json.RawMessage("{}")})
			return nil
		})),
		tool("put_keep", reeve.Local,
			put(func(_ context.Context, tx *store.Tx, _ *reeve.Invocation) error { kept = tx; return nil }))}
	h := reevetest.Start(t, tools...)
	for _, c := range []struct {
		tool  string
		state reeve.State
	}{{"put_fail", reeve.Failed}, {"put_panic", reeve.Failed}, {"put_careless", reeve.Failed}, {"put", reeve.Committed},
		{"put_keep", reeve.Committed}} {
		a := h.Agent("agent-"+c.tool, c.tool, "read_file")
		res := h.Call(a.ID, c.tool, nil, "Idempotency-Key", "k")
		if res.State != c.state || res.IsError != (c.state == reeve.Failed) {
			t.Errorf("%s: %+v", c.tool, res)
		}
		if len(res.Changed) > 0 != (c.state == reeve.Committed) {
			t.Errorf("%s notified %+v", c.tool, res.Changed)
		}
		op := operation(h, res.OperationID)
		p := pairs(h, thread(h, a.ID, ""))[res.CallID]
		if op.State != c.state || op.CallID != p[0].ID || op.ResultID != p[1].ID || op.Effect != reeve.Local {
			t.Errorf("%s: %+v", c.tool, op)
		}
		if there(h, a.ID) != (c.state == reeve.Committed) {
			t.Errorf("%s: the effect is there: %v", c.tool, there(h, a.ID))
		}
		if again := h.Call(a.ID, c.tool, nil, "Idempotency-Key", "k"); !again.Replayed || again.State != c.state {
			t.Errorf("%s again: %+v", c.tool, again)
		}
	}
	if err := kept.Chat().PutSessionFile(t.Context(), "default", "s", "/late",
		nil); reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("a transaction that a handler kept still writes: %v", err)
	}
}

// A commit that never comes about leaves nothing: not the effect, not half a record.
func TestG08_AnAbandonedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	cfg := quick(t)
	var broken atomic.Bool
	cfg.OnFault.OnBefore = func() {
		if broken.Load() {
			panic("the power fails")
		}
	}
	h := reevetest.StartWith(t, cfg, tool("put", reeve.Local, put(nil)))
	a := h.Agent("a", "put", "read_file")
	broken.Store(true)
	func() {
		defer func() { _ = recover() }()
		if res, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID,
			Tool: "put"}); err == nil {
			t.Errorf("%+v without a commit", res)
		}
	}()
	broken.Store(false)
	if n := len(thread(h, a.ID, "")); n != 0 || len(operations(h)) != 0 || there(h, a.ID) {
		t.Errorf("%d messages, %d operations", n, len(operations(h)))
	}
	if res := h.Call(a.ID, "put", nil); res.State != reeve.Committed || !there(h, a.ID) {
		t.Errorf("%+v after the power came back", res)
	}
}

// sender is a Go tool that posts to the witness with the operation id as its key.
func sender(id string, effect reeve.Effect, w *witness, client *http.Client) reeve.Tool {
	t := tool(id, effect, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		req, err := http.NewRequestWithContext(ctx, "POST", w.URL+"/send", strings.NewReader(string(inv.Args)))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Idempotency-Key", inv.Operation)
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if res.StatusCode >= 400 {
			return nil, reeve.Errorf(reeve.ToolFailed, "refused with %d", res.StatusCode)
		}
		return string(b), err
	})
	t.TimeoutMS = 3000
	return t
}

// midway makes a call whose request has had its effect but not its answer, and gives the world as a crash would leave
// it then: the operation dispatched, the outcome not recorded.
func midway(t *testing.T, w *witness, effect reeve.Effect, more map[string]any,
	spec map[string]any) (*reevetest.Host, reeve.Agent, reeve.Operation) {
	t.Helper()
	h := reevetest.StartWith(t, quick(t))
	s := map[string]any{"method": "POST", "url": w.URL + "/send"}
	for k, v := range spec {
		s[k] = v
	}
	define(h, "send", effect, s, more)
	a := h.Agent("a", "send")
	release := make(chan struct{})
	w.after = func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = h.Host.Call(ctx, reeve.Call{Workspace: "default", Agent: a.ID, Tool: "send",
			Args: json.RawMessage(`{"to":"you"}`), Run: "r1", Reason: "because"})
	})
	t.Cleanup(func() { close(release); wg.Wait() })
	<-w.reached
	after := crashed(h)
	stop() // the crashed host starts nothing more
	list := operations(after)
	if len(list) != 1 || list[0].State != reeve.Dispatched {
		t.Fatalf("the crash left %+v", list)
	}
	return after, a, list[0]
}

func TestG09_KeyedIsSentAgainWithTheSameKey(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	h, a, op := midway(t, w, reeve.Keyed, nil, nil)
	got := settle(h, op.ID)
	if effects, requests := w.total(); effects != 1 || requests != 2 || w.seen[0] != w.seen[1] || w.seen[0] != op.ID {
		t.Errorf("%d effects, %d requests with keys %v", effects, requests, w.seen)
	}
	if got.State != reeve.Committed {
		t.Errorf("%+v", got)
	}
	p := pairs(h, thread(h, a.ID, "run=r1"))[op.CallID]
	if p[1].Content != "done" || resultInfo(t, p[1]).Attempts != 2 {
		t.Errorf("the result is %q, %s", p[1].Content, p[1].Metadata)
	}
	h.RunUntilIdle(t.Context())
	if _, requests := w.total(); requests != 2 {
		t.Errorf("%d requests after it was settled", requests)
	}
}

// After a crash the first sending is in doubt: that the far side is down, or refuses the second, does not prove that
// the first had no effect.
func TestG09_DoubtStaysUntilItIsProvenWrong(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"conflict": func(w http.ResponseWriter) { w.WriteHeader(http.StatusConflict) },
		"refused":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"broken":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"busy":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"dropped":  drop,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(t)
			h, _, op := midway(t, w, reeve.Keyed, nil, nil)
			w.before = func(_ int, out http.ResponseWriter, _ *http.Request) bool { answer(out); return true }
			got := settle(h, op.ID)
			if got.State != reeve.Unknown || got.Code != reeve.UnknownOutcome || len(inbox(h).Unknown) != 1 {
				t.Errorf("%+v", got)
			}
			if effects, requests := w.total(); effects != 1 || requests != 6 { // the first, and five tries
				t.Errorf("%d effects, %d requests", effects, requests)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		w := newWitness(t)
		h, _, op := midway(t, w, reeve.Keyed, nil, nil)
		w.CloseClientConnections()
		w.Listener.Close()
		if got := settle(h, op.ID); got.State != reeve.Unknown {
			t.Errorf("%+v", got)
		}
	})
}

// A tool that was changed after a call had left might send it to somebody who knows nothing of the first sending.
func TestG09_NotSentAgainByAToolThatHasChanged(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Verifiable} {
		t.Run(string(effect), func(t *testing.T) {
			w := newWitness(t)
			spec := map[string]any{"method": "POST", "url": w.URL + "/send"}
			if effect == reeve.Verifiable {
				spec["verify"] = verifySpec(w, nil)["verify"]
			}
			h, _, op := midway(t, w, effect, nil, spec)
			var was reeve.Tool
			h.Want(http.StatusOK, &was, "GET", "/api/tools/send", nil)
			spec["url"] = w.URL + "/v2/send"
			h.Want(http.StatusOK, nil, "PUT", "/api/tools/send", map[string]any{"id": "send", "kind": "http",
				"description": was.Description, "effect": effect, "tier": was.Tier, "spec": spec,
				"parameters": was.Parameters, "timeout_ms": 2000})
			got := settle(h, op.ID)
			if effects, requests := w.total(); effects != 1 || requests != 1 || got.State != reeve.Unknown ||
				!strings.Contains(got.Message, "has changed") {
				t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
			}
			if len(inbox(h).Unknown) != 1 {
				t.Error("nobody is told")
			}
		})
	}
}

func verifySpec(w *witness, more map[string]any) map[string]any {
	v := map[string]any{"url": w.URL + "/sent/{operation_id}"}
	for k, x := range more {
		v[k] = x
	}
	return map[string]any{"verify": v}
}

func TestG10_TheLookUpDecides(t *testing.T) {
	t.Parallel()
	t.Run("applied", func(t *testing.T) {
		w := newWitness(t)
		h, a, op := midway(t, w, reeve.Verifiable, nil, verifySpec(w, nil))
		got := settle(h, op.ID)
		if effects, requests := w.total(); effects != 1 || requests != 1 || got.State != reeve.Committed {
			t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
		}
		if p := pairs(h, thread(h, a.ID, "run=r1"))[op.CallID]; p[1].Content != "found 1" {
			t.Errorf("the result is %q", p[1].Content)
		}
		var x reeve.Explanation
		h.Want(http.StatusOK, &x, "GET", "/api/calls/"+op.ID+"/explanation", nil)
		if x.Outcome != "The call ran and succeeded." {
			t.Errorf("explained as %q", x.Outcome)
		}
	})
	t.Run("not applied", func(t *testing.T) {
		w := newWitness(t)
		h, _, op := midway(t, w, reeve.Verifiable, nil, verifySpec(w, nil))
		w.mu.Lock()
		clear(w.effects) // the far side lost it
		w.mu.Unlock()
		got := settle(h, op.ID)
		if effects, requests := w.total(); effects != 1 || requests != 2 || got.State != reeve.Committed {
			t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
		}
	})
	t.Run("cannot tell", func(t *testing.T) {
		w := newWitness(t)
		h, _, op := midway(t, w, reeve.Verifiable, nil,
			verifySpec(w, map[string]any{"applied": []int{204}, "not_applied": []int{410}}))
		tries := 0
		eventually(t, "unknown", func() bool {
			n, err := h.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tries += n
			got := operation(h, op.ID)
			if got.State == reeve.Dispatched && n > 0 && (got.Attempts != tries || got.NextAttemptAt == nil) {
				t.Errorf("after %d look-ups: %+v", tries, got)
			}
			return got.State == reeve.Unknown
		})
		if _, requests := w.total(); requests != 1 || tries != 5 || len(inbox(h).Unknown) != 1 {
			t.Errorf("%d requests, %d look-ups, inbox %+v", requests, tries, inbox(h))
		}
	})
}

// Tries of an operation are what was done, in rounds: each sends it or looks it up.
func TestG10_TriesAreCounted(t *testing.T) {
	t.Parallel()
	late := func(sent *counter) reeve.Handler {
		return func(context.Context, *reeve.Invocation) (any, error) {
			sent.n.Add(1)
			return nil, reeve.Errorf(reeve.Timeout, "late")
		}
	}
	var keyed, verifiable, looks, unsafe, good, local counter
	v := tool("verifiable", reeve.Verifiable, late(&verifiable))
	v.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		looks.n.Add(1)
		return reeve.CannotTell, nil, nil
	}
	h := reevetest.StartWith(t, quick(t), v, tool("keyed", reeve.Keyed, late(&keyed)),
		tool("unsafe", reeve.Unsafe, late(&unsafe)), tool("good", reeve.Keyed, good.handle),
		tool("local", reeve.Local, local.handle))
	for _, c := range []struct {
		tool  string
		sent  *counter
		sends int64
		state reeve.State
		tries int
	}{{"keyed", &keyed, 5, reeve.Unknown, 5}, {"verifiable", &verifiable, 1, reeve.Unknown, 5},
		{"unsafe", &unsafe, 1, reeve.Unknown, 1}, {"good", &good, 1, reeve.Committed, 1},
		{"local", &local, 1, reeve.Committed, 1}} {
		got := settle(h, h.Call(h.Agent("a-"+c.tool, c.tool).ID, c.tool, nil).OperationID)
		if got.State != c.state || got.Attempts != c.tries || c.sent.n.Load() != c.sends {
			t.Errorf("%s: sent %d times, %+v", c.tool, c.sent.n.Load(), got)
		}
	}
	if looks.n.Load() != 5 {
		t.Errorf("looked up %d times", looks.n.Load())
	}
}

// The delay between look-ups is 10 s at first and doubles.
func TestG10_LookUpsBackOff(t *testing.T) {
	t.Parallel()
	cannot := tool("cannot", reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
		return nil,
			reeve.Errorf(reeve.Timeout, "late")
	})
	cannot.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		return reeve.CannotTell, nil, nil
	}
	h := reevetest.Start(t, cannot) // with the delays as they are
	a := h.Agent("a", "cannot")
	res := h.Call(a.ID, "cannot", nil)
	op := operation(h, res.OperationID)
	if res.State != reeve.Dispatched || res.Code != reeve.InProgress || op.NextAttemptAt == nil || op.Attempts != 1 {
		t.Fatalf("%+v, %+v", res, op)
	}
	if d := op.NextAttemptAt.Sub(op.UpdatedAt).Seconds(); d < 9 || d > 11 {
		t.Errorf("the first delay is %v s", d)
	}
	if n, err := h.Step(t.Context()); n != 0 || err != nil {
		t.Errorf("%d were taken up before their time, %v", n, err)
	}
}

// Errors and crashes of the look-up itself cannot tell either.
func TestG10_ALookUpThatFailsCannotTell(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	list := []reeve.Tool{}
	for name, f := range map[string]func() (reeve.Outcome, any, error){
		"error":   func() (reeve.Outcome, any, error) { return reeve.Applied, "lie", errors.New("no") },
		"panic":   func() (reeve.Outcome, any, error) { panic("boom") },
		"nothing": func() (reeve.Outcome, any, error) { return "", nil, nil },
		"novel":   func() (reeve.Outcome, any, error) { return "probably", nil, nil },
	} {
		v := tool(name, reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
			return nil,
				io.ErrUnexpectedEOF
		})
		v.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) { looks.Add(1); return f() }
		list = append(list, v)
	}
	h := reevetest.StartWith(t, quick(t), list...)
	for _, v := range list {
		a := h.Agent("a-"+v.ID, v.ID)
		looks.Store(0)
		if got := settle(h, h.Call(a.ID, v.ID, nil).OperationID); got.State != reeve.Unknown || looks.Load() != 5 {
			t.Errorf("%s: %+v after %d look-ups", v.ID, got, looks.Load())
		}
	}
}

func TestG11_UnsafeBecomesUnknownAndAPersonSays(t *testing.T) {
	t.Parallel()
	for _, choice := range []string{"happened", "retry", "skip"} {
		t.Run(choice, func(t *testing.T) {
			w := newWitness(t)
			h, a, op := midway(t, w, reeve.Unsafe, nil, nil)
			got := settle(h, op.ID)
			if _, requests := w.total(); requests != 1 || got.State != reeve.Unknown {
				t.Fatalf("%d requests, %+v", requests, got)
			}
			in := inbox(h)
			if len(in.Unknown) != 1 || in.Unknown[0].ID != op.ID || in.Unknown[0].Tool != "send" ||
				in.Unknown[0].Message == "" {
				t.Errorf("the inbox shows %+v", in)
			}
			// The run is parked: nothing else of it runs, other runs do.
			if _, p, status := do(h, a.ID, call{"tool": "send", "run": "r1"}); status != http.StatusConflict ||
				p.Code != reeve.Conflict {
				t.Errorf("in the parked run: %d %+v", status, p)
			}
			if res, _, status := do(h, a.ID, call{"tool": "send", "run": "r2"}); status != http.StatusOK {
				t.Errorf("in another run: %d %+v", status, res)
			}
			// A run of that name in another workspace is another run.
			h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
			h.Want(http.StatusCreated, nil, "POST", "/api/agents", map[string]any{"name": "b"}, "X-Workspace-Id",
				"other")
			h.Want(http.StatusOK, nil, "POST", "/api/agents/b/calls", call{"tool": "list_files", "run": "r1"},
				"X-Workspace-Id", "other")
			before, _ := w.total()
			var resolved reeve.Operation
			h.Want(http.StatusOK, &resolved, "POST", "/api/operations/"+op.ID+"/resolve",
				map[string]any{"resolution": choice})
			h.RunUntilIdle(t.Context())
			final := operation(h, op.ID)
			effects, _ := w.total()
			want := map[string]reeve.State{"happened": reeve.Committed, "retry": reeve.Committed,
				"skip": reeve.Unknown}[choice]
			if final.State != want || string(final.Resolution) != choice || final.ResolvedBy != "owner" ||
				effects != before {
				t.Errorf("%+v, %d effects", final, effects)
			}
			if n := w.seenWith(op.ID); n != map[string]int{"happened": 1, "retry": 2, "skip": 1}[choice] {
				t.Errorf("it was sent %d times", n)
			}
			p := pairs(h, thread(h, a.ID, "run=r1"))[op.CallID]
			if info := resultInfo(t, p[1]); (info.Status == "error") != (choice == "skip") {
				t.Errorf("the thread says %+v", info)
			}
			if len(inbox(h).Unknown) != 0 {
				t.Errorf("the inbox still shows %+v", inbox(h))
			}
			for _, again := range []string{"happened", "retry", "skip"} {
				h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/resolve",
					map[string]any{"resolution": again})
			}
			if _, _, status := do(h, a.ID, call{"tool": "send", "run": "r1"}); status != http.StatusOK {
				t.Errorf("the run goes on with status %d", status)
			}
		})
	}
}

// To run it again is to repeat what was asked for. A tool that has changed since would do something else, which nobody
// let through.
func TestG11_NotRunAgainByAToolThatHasChanged(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Unsafe, reeve.Keyed, reeve.Verifiable} {
		for what, parameters := range map[string]string{"another url": "",
			"other parameters too": `{"type":"object","properties":{"m":{"type":"integer"}},"required":["m"],"additionalProperties":false}`} {
			t.Run(string(effect)+", "+what, func(t *testing.T) {
				w := newWitness(t)
				spec := map[string]any{"method": "POST", "url": w.URL + "/send"}
				if effect == reeve.Verifiable {
					spec["verify"] = verifySpec(w, map[string]any{"applied": []int{204},
						"not_applied": []int{410}})["verify"]
				}
				h, a, op := midway(t, w, effect, nil, spec)
				var was reeve.Tool
				h.Want(http.StatusOK, &was, "GET", "/api/tools/send", nil)
				spec["url"] = w.URL + "/v2/send"
				if parameters != "" {
					was.Parameters = json.RawMessage(parameters)
				}
				change := func() {
					h.Want(http.StatusOK, nil, "PUT", "/api/tools/send", map[string]any{"id": "send", "kind": "http",
						"description": was.Description, "effect": effect, "tier": was.Tier, "spec": spec,
						"parameters": was.Parameters, "timeout_ms": 2000})
				}
				if effect == reeve.Keyed { // which would find out by sending it again
					change()
				}
				if got := settle(h, op.ID); got.State != reeve.Unknown {
					t.Fatalf("%+v", got)
				}
				if effect != reeve.Keyed {
					change()
				}
				h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/resolve",
					map[string]any{"resolution": "retry"})
				h.RunUntilIdle(t.Context())
				got := operation(h, op.ID)
				if _, requests := w.total(); requests != 1 || got.State != reeve.DeniedOp || got.Code != reeve.Stale ||
					!strings.Contains(got.Message, "has changed") ||
					!strings.Contains(got.Message, "was not run again") {
					t.Errorf("%d requests, %+v", requests, got)
				}
				if info := resultInfo(t, pairs(h, thread(h, a.ID, "run=r1"))[op.CallID][1]); info.Code != reeve.Stale ||
					info.Step.Name != "lookup" {
					t.Errorf("the thread says %+v", info)
				}
			})
		}
	}
}

func (w *witness) seenWith(key string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.seen {
		if k == key {
			n++
		}
	}
	return n
}

// Only a proven refusal is failed. Everything else after the request left is not.
func TestG12_WhatMayHaveLeftIsNeverFailed(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	// how the far side ends a request whose effect it has had; stragglers of an earlier one may still look
	var answer atomic.Value
	w.after = func(_ int, out http.ResponseWriter, r *http.Request) bool {
		answer.Load().(http.HandlerFunc)(out, r)
		return true
	}
	effects := map[reeve.Effect]map[string]any{reeve.Keyed: nil, reeve.Unsafe: nil,
		reeve.Verifiable: verifySpec(w, map[string]any{"applied": []int{204}, "not_applied": []int{410}})}
	cfg := quick(t)
	cfg.RetryAttempts = 2
	goTools := []reeve.Tool{}
	for _, e := range []reeve.Effect{reeve.Keyed, reeve.Unsafe} {
		goTools = append(goTools, sender("go_"+string(e), e, w, &http.Client{}))
	}
	h := reevetest.StartWith(t, cfg, goTools...)
	names := []string{"go_keyed", "go_unsafe"}
	for e, spec := range effects {
		s := map[string]any{"method": "POST", "url": w.URL + "/send"}
		for k, v := range spec {
			s[k] = v
		}
		define(h, "http_"+string(e), e, s, map[string]any{"timeout_ms": 600})
		names = append(names, "http_"+string(e))
	}
	a := h.Agent("a", names...)
	for how, f := range map[string]func(http.ResponseWriter, *http.Request){
		"dropped": func(out http.ResponseWriter, _ *http.Request) { drop(out) },
		"cut": func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", "100")
			_, _ = out.Write([]byte("x"))
			drop(out)
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"500":   func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(500) },
		"302": func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Location", "/x")
			out.WriteHeader(302)
		},
	} {
		for _, name := range names {
			if strings.HasPrefix(name, "go_") && how != "dropped" {
				continue // what they make of an answer is their own affair
			}
			answer.Store(http.HandlerFunc(f))
			res := h.Call(a.ID, name, map[string]any{"how": how})
			got := settle(h, res.OperationID)
			if how == "cut" && got.State == reeve.Committed {
				continue // the status had come: it is proven
			}
			if got.State != reeve.Unknown || res.State == reeve.Failed {
				t.Errorf("%s, %s: %+v, then %+v", name, how, res, got)
			}
		}
	}
	answer.Store(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(422) }))
	for _, name := range names { // a proven refusal
		if res := h.Call(a.ID, name, nil); res.State != reeve.Failed || !res.IsError || res.Code != reeve.ToolFailed {
			t.Errorf("%s, refused: %+v", name, res)
		}
	}
}

// A request that never left is failed, as that is proven.
func TestG12_WhatNeverLeftIsFailed(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, quick(t))
	define(h, "nowhere", reeve.Unsafe, map[string]any{"method": "POST", "url": closedPort + "/"}, nil)
	a := h.Agent("a", "nowhere")
	if res := h.Call(a.ID, "nowhere", nil); res.State != reeve.Failed || res.Code != reeve.Unavailable {
		t.Errorf("%+v", res)
	}
}

// A verifiable request that was given up may still arrive: that it is not there yet does not make it failed.
func TestG12_NotThereYetIsNotFailed(t *testing.T) {
	t.Parallel()
	var applied atomic.Bool
	var sent counter
	slow := tool("slow", reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
		sent.n.Add(1)
		return nil, reeve.Errorf(reeve.Timeout, "no answer")
	})
	slow.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		if applied.Load() {
			return reeve.Applied, "arrived", nil
		}
		return reeve.NotApplied, nil, nil
	}
	h := reevetest.StartWith(t, quick(t), slow)
	a := h.Agent("a", "slow")
	res := h.Call(a.ID, "slow", nil)
	if res.State == reeve.Failed {
		t.Fatalf("%+v", res)
	}
	applied.Store(true)
	if got := settle(h, res.OperationID); got.State != reeve.Committed || sent.count() != 1 {
		t.Errorf("%+v after %d sendings", got, sent.count())
	}
}

// A connection lost on the first of several attempts leaves doubt that a refusal of the next does not take away.
func TestG12_ARefusedRetryDoesNotProveTheFirstFailed(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	w.after = func(n int, out http.ResponseWriter, _ *http.Request) bool { drop(out); return true }
	w.before = func(n int, out http.ResponseWriter, _ *http.Request) bool {
		if n > 1 {
			out.WriteHeader(403)
		}
		return n > 1
	}
	cfg := quick(t)
	cfg.RetryAttempts = 2
	h := reevetest.StartWith(t, cfg)
	define(h, "send", reeve.Keyed, map[string]any{"method": "POST", "url": w.URL},
		map[string]any{"retry": map[string]any{"attempts": 3, "delay_ms": 1, "max_ms": 2}})
	a := h.Agent("a", "send")
	if got := settle(h, h.Call(a.ID, "send", nil).OperationID); got.State != reeve.Unknown {
		t.Errorf("%+v", got)
	}
	if effects, _ := w.total(); effects != 1 {
		t.Errorf("%d effects", effects)
	}
}

func TestG13_TheSameCallIsMadeOnce(t *testing.T) {
	t.Parallel()
	var ran counter
	h := reevetest.Start(t, tool("keyed", reeve.Keyed, ran.handle), tool("local", reeve.Local, ran.handle),
		tool("unsafe", reeve.Unsafe, ran.handle),
		tool("fails", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
			ran.n.Add(1)
			return nil,
				errors.New("no")
		}))
	for _, id := range []string{"keyed", "local", "unsafe", "fails"} {
		a := h.Agent("a-"+id, id)
		ran.n.Store(0)
		send := func(args string) (reeve.Result, api.Problem, int) {
			return do(h, a.ID, call{"tool": id, "args": json.RawMessage(args)}, "Idempotency-Key", "k")
		}
		first, _, _ := send(`{"a":{"x":1,"y":[{"p":1.5,"q":"z"}]},"b":100}`)
		before := len(thread(h, a.ID, ""))
		for _, same := range []string{`{"b":100,"a":{"y":[{"q":"z","p":1.5}],"x":1}}`,
			`{"a":{"x":1.0,"y":[{"p":15e-1,"q":"\u007a"}]},"b":1e2}`,
			` { "b" : 100.0 , "a" : { "x" : 1 , "y" : [ { "q" : "z", "p" : 1.50 } ] } } `} {
			again, _, _ := send(same)
			if !again.Replayed || again.CallID != first.CallID || again.Content != first.Content ||
				again.State != first.State || again.Spent != first.Spent {
				t.Errorf("%s: %s gave %+v, want %+v", id, same, again, first)
			}
		}
		for _, other := range []string{`{"a":{"x":1,"y":[{"p":1.5,"q":"z"}]},"b":101}`, `{}`,
			`{"a":{"x":1,"y":[{"q":"z"}]},"b":100}`, `{"a":{"x":"1","y":[{"p":1.5,"q":"z"}]},"b":100}`} {
			if _, p, status := send(other); status != http.StatusConflict || p.Code != reeve.Conflict {
				t.Errorf("%s: %s gave %d %+v", id, other, status, p)
			}
		}
		if ran.count() != 1 || len(operations(h)) != 1+map[string]int{"keyed": 0, "local": 1, "unsafe": 2,
			"fails": 3}[id] {
			t.Errorf("%s ran %d times", id, ran.count())
		}
		// the conflicts are calls that were refused; the replays wrote nothing
		if n := len(thread(h, a.ID, "")) - before; n != 2*4 {
			t.Errorf("%s: %d more messages", id, n)
		}
	}
}

// A key is one agent's in one workspace.
func TestG13_KeysOfOthersAreOthers(t *testing.T) {
	t.Parallel()
	var ran counter
	h := reevetest.Start(t, tool("keyed", reeve.Keyed, ran.handle), tool("local", reeve.Local, ran.handle))
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	a, b := h.Agent("a", "keyed", "local"), h.Agent("b", "keyed", "local")
	var c reeve.Agent
	h.Want(http.StatusCreated, &c, "POST", "/api/agents", map[string]any{"name": "a"}, "X-Workspace-Id", "other")
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/a/tools", map[string]any{"tool_id": "keyed"}, "X-Workspace-Id",
		"other")
	for _, who := range []struct{ agent, workspace string }{{a.ID, "default"}, {"a", "default"}, {b.ID, "default"},
		{c.ID, "other"}} {
		var res reeve.Result
		h.Want(http.StatusOK, &res, "POST", "/api/agents/"+who.agent+"/calls", call{"tool": "keyed"}, "Idempotency-Key",
			"k", "X-Workspace-Id", who.workspace)
		if res.Replayed != (who.agent == "a") { // the first by another name
			t.Errorf("%+v: %+v", who, res)
		}
	}
	if ran.count() != 3 {
		t.Errorf("ran %d times", ran.count())
	}
	// An operation id as such, used in two workspaces by a Go program: a conflict, and nothing done.
	for i, who := range []reeve.Call{{Workspace: "default", Agent: a.ID}, {Workspace: "other", Agent: c.ID}} {
		who.Tool, who.Operation = "keyed", "op_mine"
		res, err := h.Host.Call(t.Context(), who)
		if (reeve.CodeOf(err) == reeve.Conflict) != (i == 1) || res.CallID == "" {
			t.Errorf("%d: %+v, %v", i, res, err)
		}
	}
	if ran.count() != 4 {
		t.Errorf("ran %d times", ran.count())
	}
	// Another tool, or another agent, under the same operation id.
	for _, other := range []reeve.Call{{Agent: a.ID, Tool: "local"}, {Agent: b.ID, Tool: "keyed"}} {
		other.Workspace, other.Operation = "default", "op_mine"
		if _, err := h.Host.Call(t.Context(), other); reeve.CodeOf(err) != reeve.Conflict {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

// However many make the same call at once, it is made once.
func TestG13_ConcurrentSameCallsHaveOneEffect(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	open := make(chan struct{})
	w.after = func(int, http.ResponseWriter, *http.Request) bool { <-open; return false }
	var stop sync.Once
	t.Cleanup(func() { stop.Do(func() { close(open) }) })
	h := reevetest.StartWith(t, quick(t), tool("put", reeve.Local, put(nil)))
	define(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": w.URL}, map[string]any{"timeout_ms": 20000})
	a := h.Agent("a", "send", "put", "read_file")
	for _, id := range []string{"send", "put"} {
		results := make(chan reeve.Result, 16)
		var wg sync.WaitGroup
		for range cap(results) {
			wg.Go(func() {
				res, _, status := do(h, a.ID, call{"tool": id}, "Idempotency-Key", "k-"+id)
				if status != http.StatusOK && status != http.StatusAccepted {
					t.Errorf("%s: status %d", id, status)
				}
				results <- res
			})
		}
		if id == "send" { // all but one are told that it is under way
			for range cap(results) - 1 {
				if res := <-results; res.State != reeve.Dispatched || !res.Replayed || res.Code != reeve.InProgress {
					t.Errorf("%+v", res)
				}
			}
			stop.Do(func() { close(open) })
		}
		wg.Wait()
		close(results)
		fresh := 0
		for res := range results {
			if !res.Replayed {
				fresh++
			}
			if res.State != reeve.Committed {
				t.Errorf("%s: %+v", id, res)
			}
		}
		if fresh != 1 {
			t.Errorf("%s: %d of them made it", id, fresh)
		}
	}
	if effects, requests := w.total(); effects != 1 || requests != 1 {
		t.Errorf("%d effects, %d requests", effects, requests)
	}
	if list := operations(h); len(list) != 2 {
		t.Errorf("%d operations", len(list))
	}
	if n := len(pairs(h, thread(h, a.ID, ""))); n != 2 {
		t.Errorf("%d actions", n)
	}
}

// Infrastructure errors are tried again, a growing while apart; business errors are not, whatever they say.
func TestG19_RetriesGoByType(t *testing.T) {
	t.Parallel()
	type attempt struct{ n atomic.Int64 }
	var tries attempt
	fail := func(err error, times int64) reeve.Handler {
		return func(_ context.Context, inv *reeve.Invocation) (any, error) {
			if n := tries.n.Add(1); n <= times {
				if int64(inv.Attempt) != n {
					return nil, errors.New("attempt " + strconv.Itoa(inv.Attempt))
				}
				return nil, err
			}
			return "at last", nil
		}
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, c := range []struct {
		name     string
		effect   reeve.Effect
		err      error
		times    int64
		attempts int64
		ok       bool
	}{
		{"down once", reeve.Read, reeve.Errorf(reeve.Unavailable, "down"), 1, 2, true},
		{"down twice", reeve.Keyed, reeve.Errorf(reeve.Unavailable, "down"), 2, 3, true},
		{"down for good", reeve.Unsafe, reeve.Errorf(reeve.Unavailable, "down"), 9, 3, false},
		{"local down once", reeve.Local, reeve.Errorf(reeve.Unavailable, "down"), 1, 2, true},
		{"no connection", reeve.Unsafe, dial, 1, 2, true},
		{"rate", reeve.Unsafe, reeve.Errorf(reeve.RateLimited, "slow down"), 1, 2, true},
		{"business", reeve.Read, errors.New("timeout: connection reset by peer"), 9, 1, false},
		{"typed business", reeve.Keyed, reeve.Errorf(reeve.ToolFailed, "503 unavailable, deadline exceeded"), 9, 1,
			false},
		{"validation", reeve.Local, reeve.Errorf(reeve.Validation, "try again"), 9, 1, false},
		{"late read", reeve.Read, reeve.Errorf(reeve.Timeout, "late"), 1, 2, true},
		{"late keyed", reeve.Keyed, reeve.Errorf(reeve.Timeout, "late"), 1, 2, true},
		{"late unsafe", reeve.Unsafe, reeve.Errorf(reeve.Timeout, "late"), 1, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tries.n.Store(0)
			x := tool("x", c.effect, fail(c.err, c.times))
			x.Retry = reeve.Retry{Attempts: 3, DelayMS: 1, MaxMS: 4}
			h := reevetest.Start(t, x)
			a := h.Agent("a", "x")
			res := h.Call(a.ID, "x", nil)
			if tries.n.Load() != c.attempts || res.IsError == c.ok {
				t.Errorf("%d attempts, %+v", tries.n.Load(), res)
			}
			if res.State == reeve.Unknown {
				return
			}
			if info := resultInfo(t, pairs(h, thread(h, a.ID, ""))[res.CallID][1]); int64(info.Attempts) != c.attempts {
				t.Errorf("the record says %d attempts", info.Attempts)
			}
		})
	}
}

// The delay between attempts doubles, up to its limit.
func TestG19_TheDelayGrows(t *testing.T) {
	t.Parallel()
	var at []int64
	x := tool("x", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		at = append(at, reeve.Monotonic().UnixMilli())
		return nil, reeve.Errorf(reeve.Unavailable, "down")
	})
	x.Retry = reeve.Retry{Attempts: 5, DelayMS: 20, MaxMS: 80}
	h := reevetest.Start(t, x)
	h.Call(h.Agent("a", "x").ID, "x", nil)
	if len(at) != 5 {
		t.Fatalf("%d attempts", len(at))
	}
	for i, least := range []int64{20, 40, 80, 80} {
		if d := at[i+1] - at[i]; d < least-2 {
			t.Errorf("delay %d is %d ms, want at least %d", i+1, d, least)
		}
	}
}

// Whatever a call's effect, its attempts are one thing: they cost what all of them cost, share the time that budgets
// leave, and are as far apart as the tool asks for.
func TestG19_AttemptsAreOneThing(t *testing.T) {
	t.Parallel()
	const first, apart = 20 * time.Millisecond, 500 * time.Millisecond
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		t.Run(string(effect), func(t *testing.T) {
			var ended time.Time
			x := tool("x", effect, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
				inv.Spend(3, 0)
				start := reeve.Monotonic()
				if inv.Attempt == 1 {
					for reeve.Since(start) < first {
					}
					ended = reeve.Monotonic()
					return nil, &reeve.Error{Code: reeve.Unavailable, Message: "down", RetryAfter: apart}
				}
				if d := start.Sub(ended); d < apart {
					t.Errorf("the second came after %s", d)
				}
				until, _ := ctx.Deadline()
				if left := until.Sub(start); left > time.Minute-first {
					t.Errorf("the second has %s", left)
				}
				return "at last", nil
			})
			x.TimeoutMS, x.Retry = 60_000, reeve.Retry{Attempts: 2}
			h := reevetest.Start(t, x)
			a := h.Agent("a", "x")
			budget(h, "workspace", object{"limit": object{"millis": 60_000}})
			res := h.Call(a.ID, "x", nil)
			b := budgetOf(h, "workspace")
			if res.IsError || res.Spent.Tokens != 6 || res.Spent.Calls != 1 ||
				res.Spent.Millis < first.Milliseconds() || b.Used != res.Spent || !b.Reserved.IsZero() {
				t.Errorf("%+v, of %+v", res, b)
			}
		})
	}
}
