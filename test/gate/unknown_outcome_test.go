package gate_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An answer with status 2xx means that the effect happened. Whatever is wrong with its body, the operation is
// committed, sent once, and no person is asked.
func TestG12_SuccessStatusIsCommitted(t *testing.T) {
	t.Parallel()
	answer := map[string]func(out http.ResponseWriter){
		"elsewhere": func(out http.ResponseWriter) {
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprint(out, `{"id":"ord-17"}`)
		},
		"text":   func(out http.ResponseWriter) { fmt.Fprint(out, "ord-17, thank you") },
		"empty":  func(out http.ResponseWriter) { out.WriteHeader(http.StatusNoContent) },
		"binary": func(out http.ResponseWriter) { _, _ = out.Write([]byte("\xff\x00\xfe")) },
		"long":   func(out http.ResponseWriter) { fmt.Fprint(out, "ord-17"+strings.Repeat("x", 2000)) },
		"cut": func(out http.ResponseWriter) {
			out.Header().Set("Content-Length", "100")
			fmt.Fprint(out, `{"id":"ord-17"`)
		},
	}
	w := kit.NewWitness(t)
	w.After = func(_ int, out http.ResponseWriter, r *http.Request) bool {
		answer[r.URL.Query().Get("answer")](out)
		return true
	}
	h := reevetest.StartWith(t, kit.FastConfig(t))
	h.Agent("a")
	calls := 0
	for name := range answer {
		for _, effect := range []reeve.Effect{reeve.Unsafe, reeve.Keyed, reeve.Verifiable} {
			id := string(effect) + "_" + name
			spec := kit.Object{"method": "POST", "url": w.URL + "/send?answer=" + name, "result": "/data/nope",
				"max_response_bytes": 1000}
			if effect == reeve.Verifiable {
				spec["verify"] = kit.Object{"url": w.URL + "/{operation_id}"}
			}
			kit.DefineHTTPTool(h, id, effect, spec,
				kit.Object{"retry": kit.Object{"attempts": 3, "delay_ms": 1, "max_ms": 1},
					"timeout_ms": 60_000})
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/a/tools", kit.Object{"tool_id": id})
			res := h.Call("a", id, nil)
			calls++
			if res.IsError || res.State != reeve.Committed ||
				!strings.Contains(res.Content, "the request succeeded, but") {
				t.Errorf("%s: %+v", id, res)
			}
			if name != "empty" && name != "binary" && !strings.Contains(res.Content, "ord-17") {
				t.Errorf("%s: what it said is not shown: %s", id, res.Content)
			}
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Committed {
				t.Errorf("%s: %+v", id, op)
			}
		}
	}
	if _, err := h.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, sent := w.Count(); done != calls || sent != calls {
		t.Errorf("%d calls: %d effects, %d requests", calls, done, sent)
	}
	if list := kit.GetInbox(h).Unknown; len(list) != 0 {
		t.Errorf("a person is asked about %+v", list)
	}
}

// slowTool is a verifiable tool whose effect happens after its request timed out or its server died.
type slowTool struct {
	sent, looks atomic.Int64
	applied     atomic.Bool
	hold        chan struct{} // the request ends when it is closed; nil means at once, with a lost connection
	began       chan struct{}
}

func (s *slowTool) tool(timeoutMS int64) reeve.Tool {
	t := kit.Tool("slow", reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
		if s.sent.Add(1) == 1 && s.hold != nil {
			close(s.began)
			<-s.hold
		}
		return nil, io.ErrUnexpectedEOF
	})
	t.TimeoutMS = timeoutMS
	t.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		s.looks.Add(1)
		if s.applied.Load() {
			return reeve.Applied, "arrived", nil
		}
		return reeve.NotApplied, nil, nil
	}
	return t
}

// stepUntilLookedUp steps the host until the operation was looked up n times or sent again.
func (s *slowTool) stepUntilLookedUp(h *reevetest.Host, times int64) {
	h.T.Helper()
	until := s.looks.Load() + times
	kit.Eventually(h.T, "the operation to be looked up", func() bool {
		if _, err := h.Step(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		return s.looks.Load() >= until || s.sent.Load() > 1
	})
}

// crashDuringCall makes a call and returns a host that started as after a crash while the request was in flight.
func (s *slowTool) crashDuringCall(t *testing.T, before, after int64) (*reevetest.Host, reeve.Operation) {
	t.Helper()
	s.hold, s.began = make(chan struct{}), make(chan struct{})
	h := reevetest.StartWith(t, kit.FastConfig(t), s.tool(before))
	a := h.Agent("a", "slow")
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "slow",
			Args: json.RawMessage(`{}`)})
	})
	t.Cleanup(func() { close(s.hold); wg.Wait() })
	<-s.began
	next := kit.RestartAfterCrash(h, s.tool(after))
	return next, kit.ListOperations(next)[0]
}

// A lookup that does not find the effect counts only after the time limit of the call, because the request may still
// arrive. A lookup that finds it counts at once.
func TestG28_NotFoundCountsOnlyAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	const long = 3_600_000
	t.Run("after a crash", func(t *testing.T) {
		t.Parallel()
		var s slowTool
		h, op := s.crashDuringCall(t, long, long)
		s.stepUntilLookedUp(h, 20) // more often than there are tries
		got := kit.GetOperation(h, op.ID)
		if s.sent.Load() != 1 || got.State != reeve.Dispatched || got.NextAttemptAt == nil {
			t.Fatalf("sent %d times, %+v", s.sent.Load(), got)
		}
		s.applied.Store(true)
		if got := finishOperation(h, op.ID); got.State != reeve.Committed || s.sent.Load() != 1 {
			t.Errorf("sent %d times, %+v", s.sent.Load(), got)
		}
	})
	t.Run("after a lost connection", func(t *testing.T) {
		t.Parallel()
		var s slowTool
		h := reevetest.StartWith(t, kit.FastConfig(t), s.tool(long))
		res := h.Call(h.Agent("a", "slow").ID, "slow", nil)
		s.stepUntilLookedUp(h, 20)
		if got := kit.GetOperation(h, res.OperationID); s.sent.Load() != 1 || got.State != reeve.Dispatched {
			t.Fatalf("sent %d times, %+v", s.sent.Load(), got)
		}
		s.applied.Store(true)
		if got := finishOperation(h, res.OperationID); got.State != reeve.Committed || s.sent.Load() != 1 {
			t.Errorf("sent %d times, %+v", s.sent.Load(), got)
		}
	})
	t.Run("a shorter limit since", func(t *testing.T) { // what was sent has the one that it was sent with
		t.Parallel()
		var s slowTool
		h, op := s.crashDuringCall(t, long, 1)
		for range 20 {
			if _, err := h.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := kit.GetOperation(h, op.ID); s.sent.Load() != 1 || got.State == reeve.Committed {
			t.Errorf("sent %d times, %+v", s.sent.Load(), got)
		}
	})
	t.Run("the limit has passed", func(t *testing.T) {
		t.Parallel()
		w := kit.NewWitness(t)
		h, _, op := crashMidCall(t, w, reeve.Verifiable, map[string]any{"timeout_ms": 1000}, kit.VerifySpec(w, nil))
		w.Forget() // the witness lost its data
		got := finishOperation(h, op.ID)
		if effects, requests := w.Count(); effects != 1 || requests != 2 || got.State != reeve.Committed {
			t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
		}
	})
}

// A request left and the store accepts no writes. The caller is not told that nothing happened, and the server records
// the outcome when it can.
func TestG12_OutcomeIsRecordedWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	var file string
	var lock *sql.Conn
	h := reevetest.Start(t, kit.Tool("sends_once", reeve.Unsafe, func(ctx context.Context, _ *reeve.Invocation) (any,
		error) {
		db, err := sql.Open("sqlite", "file:"+file)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = db.Close() })
		if lock, err = db.Conn(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		_, err = lock.ExecContext(context.WithoutCancel(ctx), "BEGIN IMMEDIATE")
		return "sent", err
	}))
	file = filepath.Join(h.Dir(), "reeve.db")
	a := h.Agent("sender", "sends_once")
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID,
		map[string]any{"policy": map[string]any{"tools": map[string]any{"sends_once": "allow"}}})
	res := h.Call(a.ID, "sends_once", map[string]any{})
	if res.State != reeve.Dispatched || res.Code != reeve.InProgress {
		t.Fatalf("%+v", res)
	}
	if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle(t.Context())
	var op reeve.Operation
	h.Want(200, &op, "GET", "/api/operations/"+res.OperationID, nil)
	if op.State != reeve.Committed || op.ResultID == "" {
		t.Errorf("%+v", op)
	}
}

// newSender returns a Go tool that posts to the witness with the operation id as its key.
func newSender(id string, effect reeve.Effect, w *kit.Witness, client *http.Client) reeve.Tool {
	t := kit.Tool(id, effect, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
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

// Only a proven refusal is a failure. Every other end of a request that left is not.
func TestG12_SentRequestIsNeverFailed(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	// how the far side ends a request whose effect it has had; stragglers of an earlier one may still look
	var answer atomic.Value
	w.After = func(_ int, out http.ResponseWriter, r *http.Request) bool {
		answer.Load().(http.HandlerFunc)(out, r)
		return true
	}
	effects := map[reeve.Effect]map[string]any{reeve.Keyed: nil, reeve.Unsafe: nil,
		reeve.Verifiable: kit.VerifySpec(w, map[string]any{"applied": []int{204}, "not_applied": []int{410}})}
	cfg := kit.FastConfig(t)
	cfg.RetryAttempts = 2
	goTools := []reeve.Tool{}
	for _, e := range []reeve.Effect{reeve.Keyed, reeve.Unsafe} {
		goTools = append(goTools, newSender("go_"+string(e), e, w, &http.Client{}))
	}
	h := reevetest.StartWith(t, cfg, goTools...)
	names := []string{"go_keyed", "go_unsafe"}
	for e, spec := range effects {
		s := map[string]any{"method": "POST", "url": w.URL + "/send"}
		for k, v := range spec {
			s[k] = v
		}
		kit.DefineHTTPTool(h, "http_"+string(e), e, s, map[string]any{"timeout_ms": 600})
		names = append(names, "http_"+string(e))
	}
	a := h.Agent("a", names...)
	for how, f := range map[string]func(http.ResponseWriter, *http.Request){
		"dropped": func(out http.ResponseWriter, _ *http.Request) { kit.CloseConnection(out) },
		"cut": func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", "100")
			_, _ = out.Write([]byte("x"))
			kit.CloseConnection(out)
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
				continue // a Go tool itself decides what a response means
			}
			answer.Store(http.HandlerFunc(f))
			res := h.Call(a.ID, name, map[string]any{"how": how})
			got := finishOperation(h, res.OperationID)
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

// A request that never left is failed, because that is proven.
func TestG12_UnsentRequestIsFailed(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	kit.DefineHTTPTool(h, "nowhere", reeve.Unsafe, map[string]any{"method": "POST", "url": kit.ClosedPort + "/"}, nil)
	a := h.Agent("a", "nowhere")
	if res := h.Call(a.ID, "nowhere", nil); res.State != reeve.Failed || res.Code != reeve.Unavailable {
		t.Errorf("%+v", res)
	}
}

// A verifiable request that timed out may still arrive, so a lookup that does not find it does not make it failed.
func TestG12_NotFoundYetIsNotFailed(t *testing.T) {
	t.Parallel()
	var applied atomic.Bool
	var sent kit.Counter
	slow := kit.Tool("slow", reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
		sent.N.Add(1)
		return nil, reeve.Errorf(reeve.Timeout, "no answer")
	})
	slow.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		if applied.Load() {
			return reeve.Applied, "arrived", nil
		}
		return reeve.NotApplied, nil, nil
	}
	h := reevetest.StartWith(t, kit.FastConfig(t), slow)
	a := h.Agent("a", "slow")
	res := h.Call(a.ID, "slow", nil)
	if res.State == reeve.Failed {
		t.Fatalf("%+v", res)
	}
	applied.Store(true)
	if got := finishOperation(h, res.OperationID); got.State != reeve.Committed || sent.Count() != 1 {
		t.Errorf("%+v after %d sendings", got, sent.Count())
	}
}

// A connection that broke during the first attempt leaves doubt, which the refusal of the next does not remove.
func TestG12_ARefusedRetryDoesNotProveTheFirstFailed(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	w.After = func(n int, out http.ResponseWriter, _ *http.Request) bool { kit.CloseConnection(out); return true }
	w.Before = func(n int, out http.ResponseWriter, _ *http.Request) bool {
		if n > 1 {
			out.WriteHeader(403)
		}
		return n > 1
	}
	cfg := kit.FastConfig(t)
	cfg.RetryAttempts = 2
	h := reevetest.StartWith(t, cfg)
	kit.DefineHTTPTool(h, "send", reeve.Keyed, map[string]any{"method": "POST", "url": w.URL},
		map[string]any{"retry": map[string]any{"attempts": 3, "delay_ms": 1, "max_ms": 2}})
	a := h.Agent("a", "send")
	if got := finishOperation(h, h.Call(a.ID, "send", nil).OperationID); got.State != reeve.Unknown {
		t.Errorf("%+v", got)
	}
	if effects, _ := w.Count(); effects != 1 {
		t.Errorf("%d effects", effects)
	}
}
