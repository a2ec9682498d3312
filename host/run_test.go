package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/reevetest"
)

// A handler that misbehaves harms its own call and nobody else.
func TestG22_AHandlerHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	var nilError *reeve.Error
	bad := map[string]reeve.Handler{
		"panics": func(context.Context, *reeve.Invocation) (any, error) { panic("boom") },
		"panics_nil": func(context.Context, *reeve.Invocation) (any, error) {
			var nobody *reeve.Tool
			return nobody.ID, nil
		},
		"ends":       func(context.Context, *reeve.Invocation) (any, error) { runtime.Goexit(); return nil, nil },
		"typed_nil":  func(context.Context, *reeve.Invocation) (any, error) { return nil, nilError },
		"bad_json":   func(context.Context, *reeve.Invocation) (any, error) { return marshalPanic{}, nil },
		"ends_json":  func(context.Context, *reeve.Invocation) (any, error) { return marshalExit{}, nil },
		"hangs_json": func(context.Context, *reeve.Invocation) (any, error) { return marshalHang{never}, nil },
		"cycle": func(context.Context, *reeve.Invocation) (any, error) {
			c := map[string]any{}
			c["c"] = c
			return c, nil
		},
		"leaks": func(context.Context, *reeve.Invocation) (any, error) {
			go func() { <-never }()
			return "left one behind", nil
		},
		"hangs":       func(context.Context, *reeve.Invocation) (any, error) { <-never; return nil, nil },
		"empty_error": func(context.Context, *reeve.Invocation) (any, error) { return nil, &reeve.Error{} },
		"foreign_error": func(context.Context, *reeve.Invocation) (any, error) {
			return nil, fmt.Errorf("%w", &reeve.Error{Code: "NOVEL"})
		},
	}
	var list []reeve.Tool
	var names []string
	for name, f := range bad {
		for _, e := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Unsafe} {
			x := tool(name+"_"+string(e), e, f)
			x.TimeoutMS = 50
			list, names = append(list, x), append(names, x.ID)
		}
	}
	h := reevetest.Start(t, append(list, tool("good", reeve.Local, put(nil)))...)
	a := h.Agent("a", append(names, "good")...)
	for _, name := range names {
		res, p, status := do(h, a.ID, call{"tool": name})
		if status != http.StatusOK && status != http.StatusAccepted {
			t.Errorf("%s: %d %+v", name, status, p)
		}
		if (strings.HasPrefix(name, "panics") || strings.HasPrefix(name, "ends") || strings.HasPrefix(name, "typed") ||
			strings.HasPrefix(name, "hangs")) && !res.IsError {
			t.Errorf("%s: %+v", name, res)
		}
		if strings.Contains(string(mustJSON(res)), "boom") || strings.Contains(string(mustJSON(res)), "goroutine ") {
			t.Errorf("%s tells its insides: %+v", name, res)
		}
		if res := h.Call(a.ID, "good", nil); res.State != reeve.Committed {
			t.Errorf("after %s: %+v", name, res)
		}
	}
	h.Want(http.StatusOK, nil, "GET", "/healthz", nil)
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type marshalPanic struct{}

func (marshalPanic) MarshalJSON() ([]byte, error) { panic("boom") }

type marshalExit struct{}

func (marshalExit) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

type marshalHang struct{ c chan struct{} }

func (m marshalHang) MarshalJSON() ([]byte, error) { <-m.c; return []byte("1"), nil }

// What a handler does after its time is up has no effect: its transaction is dead, its invocation closed, its answer
// unheard.
func TestG22_WhatComesTooLateHasNoEffect(t *testing.T) {
	t.Parallel()
	late, done := make(chan struct{}), make(chan error, 1)
	x := tool("late", reeve.Local, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		tx, err := store.TxFrom(ctx)
		if err != nil {
			return nil, err
		}
		<-late
		inv.Emit(reeve.SemanticKey, "LATE")
		inv.UndoWith("late", nil)
		inv.Spend(5, 5)
		done <- tx.Chat().PutSessionFile(context.WithoutCancel(ctx), inv.Workspace, inv.Session, "/effect",
			[]byte("late"))
		return "late", nil
	})
	x.TimeoutMS = 30
	h := reevetest.Start(t, x)
	a := h.Agent("a", "late", "read_file")
	budget(h, "workspace", map[string]any{"limit": map[string]any{"calls": 100}})
	res := h.Call(a.ID, "late", nil)
	close(late)
	if err := <-done; reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("a late write was answered with %v", err)
	}
	if res.State != reeve.Failed || res.Undo != nil || len(res.Changed) != 0 || res.Spent.Tokens != 0 {
		t.Errorf("%+v", res)
	}
	if there(h, a.ID) {
		t.Error("a late write is there")
	}
	if op := operation(h, res.OperationID); op.State != reeve.Failed || op.Undo != nil {
		t.Errorf("%+v", op)
	}
	if b := budgetOf(h, "workspace"); b.Used.Tokens != 0 {
		t.Errorf("%+v", b)
	}
}

// batch makes calls as one model response does.
func batch(h *reevetest.Host, agent string, calls ...call) []reeve.Result {
	h.T.Helper()
	var out api.BatchResponse
	h.Want(http.StatusOK, &out, "POST", "/api/agents/"+agent+"/calls/batch", map[string]any{"calls": calls})
	return out.Results
}

// Reads that follow each other run at the same time; anything else runs alone, in its turn; results come in order.
func TestG23_ReadsRunTogetherAndOthersAlone(t *testing.T) {
	t.Parallel()
	const n = 4
	var running, most atomic.Int64
	var mu sync.Mutex
	var order []string
	var came atomic.Int64 // the reads of a group meet here: none goes on before all have come
	open := make(chan struct{})
	enter := func(name string) func() {
		now := running.Add(1)
		mu.Lock()
		order = append(order, name)
		most.Store(max(most.Load(), now))
		mu.Unlock()
		return func() { running.Add(-1) }
	}
	read := tool("read", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		defer enter("read")()
		if came.Add(1) == n {
			close(open)
		}
		<-open
		return string(inv.Args), nil
	})
	write := func(id string, e reeve.Effect) reeve.Tool {
		return tool(id, e, func(_ context.Context, inv *reeve.Invocation) (any, error) {
			defer enter(id)()
			if running.Load() != 1 {
				return nil, fmt.Errorf("%d run beside it", running.Load())
			}
			return string(inv.Args), nil
		})
	}
	h := reevetest.Start(t, read, write("keyed", reeve.Keyed), write("local", reeve.Local),
		write("unsafe", reeve.Unsafe))
	a := h.Agent("a", "read", "keyed", "local", "unsafe")
	var calls []call
	for i, id := range []string{"keyed", "read", "read", "read", "read", "local", "unsafe", "keyed"} {
		calls = append(calls, call{"tool": id, "args": map[string]any{"i": i}})
	}
	for i, res := range batch(h, a.ID, calls...) {
		if res.IsError || res.Content != fmt.Sprintf(`{"i":%d}`, i) {
			t.Errorf("result %d is %+v", i, res)
		}
	}
	if got := strings.Join(order, " "); got != "keyed read read read read local unsafe keyed" || most.Load() != n {
		t.Errorf("the order was %s, at most %d at once", got, most.Load())
	}
	var results []string
	list := thread(h, a.ID, "")
	pairs(h, list)
	for _, m := range list {
		if m.Kind == reeve.ToolResult {
			results = append(results, m.Content)
		}
	}
	if got := strings.Join(results, ""); got != `{"i":0}{"i":1}{"i":2}{"i":3}{"i":4}{"i":5}{"i":6}{"i":7}` {
		t.Errorf("recorded as %s", got)
	}
}

// However the reads of a group end, and in whatever order, they are recorded in the order of the calls.
func TestG23_RecordedInCallOrderWhateverEndsFirst(t *testing.T) {
	t.Parallel()
	turn := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	close(turn[3])
	read := tool("read", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		var in struct {
			I int `json:"i"`
		}
		if err := json.Unmarshal(inv.Args, &in); err != nil {
			return nil, err
		}
		<-turn[in.I] // the last goes first
		if in.I > 0 {
			close(turn[in.I-1])
		}
		switch in.I {
		case 1:
			return nil, fmt.Errorf("no %d", in.I)
		case 2:
			panic(in.I)
		}
		return in.I, nil
	})
	h := reevetest.Start(t, read)
	a := h.Agent("a", "read")
	got := batch(h, a.ID, call{"tool": "read", "args": map[string]any{"i": 0}},
		call{"tool": "read", "args": map[string]any{"i": 1}},
		call{"tool": "read", "args": 7}, call{"tool": "read", "args": map[string]any{"i": 3}},
		call{"tool": "read", "args": map[string]any{"i": 2}}, call{"tool": "nope"})
	ids := []string{}
	for _, m := range thread(h, a.ID, "") {
		if m.Kind == reeve.Action {
			ids = append(ids, m.ID)
		}
	}
	for i, res := range got {
		if i >= len(ids) || res.CallID != ids[i] {
			t.Errorf("call %d is %s, recorded as %v", i, res.CallID, ids)
		}
	}
	pairs(h, thread(h, a.ID, ""))
}

// A batch is judged call by call: a refusal or an approval in the middle stops none of the others.
func TestG23_ARefusalInABatchStopsNobodyElse(t *testing.T) {
	t.Parallel()
	var ran counter
	x := tool("priv", reeve.Unsafe, ran.handle)
	x.Tier = reeve.Privileged
	h := reevetest.Start(t, tool("read", reeve.Read, ran.handle), tool("local", reeve.Local, ran.handle), x)
	a := h.Agent("a", "read", "local", "priv")
	got := batch(h, a.ID, call{"tool": "read"}, call{"tool": "nope"}, call{"tool": "read"},
		call{"tool": "read", "args": "x"}, call{"tool": "priv"}, call{"tool": "local"})
	for i, code := range []reeve.Code{"", reeve.NotFound, "", reeve.Validation, reeve.ApprovalRequired, ""} {
		if got[i].Code != code || got[i].CallID == "" {
			t.Errorf("%d: %+v", i, got[i])
		}
	}
	if ran.count() != 3 {
		t.Errorf("%d ran", ran.count())
	}
}

// Asynchronous reads of a batch are operations like any other's: their outcomes can be delivered, and the same key
// starts nothing again.
func TestG23_AsynchronousReadsOfABatch(t *testing.T) {
	t.Parallel()
	var begun counter
	look := asyncTool("look", reeve.Read, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		begun.n.Add(1)
		return itWillCome(ctx, inv)
	})
	h := reevetest.StartWith(t, quick(t), look)
	a := h.Agent("a", "look")
	ask := func() []reeve.Result {
		return batch(h, a.ID, call{"tool": "look", "args": object{"i": 0}, "idempotency_key": "first"},
			call{"tool": "look", "args": object{"i": 1}, "idempotency_key": "second"})
	}
	first := ask()
	h.RunUntilIdle(t.Context())
	again := ask()
	for i, res := range first {
		if !res.Deferred || res.IsError || !again[i].Replayed || again[i].OperationID != res.OperationID {
			t.Errorf("%+v, and again %+v", res, again[i])
		}
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/result",
			object{"content": "it is there"})
	}
	h.RunUntilIdle(t.Context())
	if begun.count() != len(first) {
		t.Errorf("begun %d times", begun.count())
	}
	for i, res := range ask() {
		if res.Content != "it is there" || res.State != reeve.Committed || res.OperationID != first[i].OperationID {
			t.Errorf("%+v", res)
		}
	}
}

func stop(h *reevetest.Host, agent string) {
	h.T.Helper()
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", map[string]any{"agent": agent, "reason": "a fire drill"})
}

func resume(h *reevetest.Host, agent string) {
	h.T.Helper()
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", map[string]any{"agent": agent})
}

func TestG25_TheKillSwitchStopsOneOrAll(t *testing.T) {
	t.Parallel()
	var ran counter
	var g guarded
	cfg := quick(t)
	tools := []reeve.Tool{tool("read", reeve.Read, ran.handle), tool("local", reeve.Local, ran.handle),
		tool("keyed", reeve.Keyed, ran.handle), tool("unsafe", reeve.Unsafe, ran.handle), g.tool()}
	h := reevetest.StartWith(t, cfg, tools...)
	a, b := h.Agent("a", "read", "local", "keyed", "unsafe", "guarded"), h.Agent("b", "local", "guarded")
	for _, whom := range []string{"a", ""} {
		approved := h.Call(a.ID, "guarded", map[string]any{"n": 1})
		parked := h.Call(a.ID, "guarded", map[string]any{"n": 2})
		decide(h, approved.ApprovalID, "approve")
		stop(h, whom)
		ran.n.Store(0)
		for _, id := range []string{"local", "keyed", "unsafe", "guarded"} {
			_, p, status := do(h, a.ID, call{"tool": id})
			if status != http.StatusLocked || p.Code != reeve.Stopped {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
		if ran.count() != 0 {
			t.Errorf("%d ran while stopped", ran.count())
		}
		if res := h.Call(a.ID, "read", nil); res.IsError { // looking does no harm
			t.Errorf("%+v", res)
		}
		if _, _, status := do(h, b.ID, call{"tool": "local"}); (status == http.StatusOK) != (whom == "a") {
			t.Errorf("the other agent: %d with %q stopped", status, whom)
		}
		// What was approved stays put, also over a restart and when it is approved only now, and runs after.
		decide(h, parked.ApprovalID, "approve")
		h.RunUntilIdle(t.Context())
		h.Stop()
		h = reevetest.StartWith(t, cfg, tools...)
		h.RunUntilIdle(t.Context())
		for _, res := range []reeve.Result{approved, parked} {
			if op := operation(h, res.OperationID); op.State != reeve.Prepared || g.ran.count() != 0 {
				t.Errorf("%+v after %d runs", op, g.ran.count())
			}
		}
		resume(h, whom)
		settle(h, approved.OperationID)
		settle(h, parked.OperationID)
		for _, res := range []reeve.Result{approved, parked} {
			if op := operation(h, res.OperationID); op.State != reeve.Committed {
				t.Errorf("%+v", op)
			}
		}
		if g.ran.count() != 2 {
			t.Errorf("%d ran after it was resumed", g.ran.count())
		}
		g.ran.n.Store(0)
		if res := h.Call(a.ID, "local", nil); res.State != reeve.Committed {
			t.Errorf("%+v", res)
		}
	}
}

// Once the switch has been thrown nothing starts any more, however many calls are on their way.
func TestG25_NothingStartsAfterTheSwitch(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Local} {
		t.Run(string(effect), func(t *testing.T) {
			var off, late, ran atomic.Int64
			x := tool("x", effect, func(context.Context, *reeve.Invocation) (any, error) { ran.Add(1); return "", nil })
			h := reevetest.Start(t, x)
			a := h.Agent("a", "x")
			var wg sync.WaitGroup
			begun := make(chan struct{}, 1000)
			for range 8 {
				wg.Go(func() {
					for range 25 {
						was := off.Load()
						_, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "x"})
						begun <- struct{}{}
						if err == nil && was == 1 {
							late.Add(1)
						}
						if err != nil && reeve.CodeOf(err) != reeve.Stopped {
							t.Error(err)
						}
					}
				})
			}
			for range 20 {
				<-begun
			}
			stop(h, "")
			off.Store(1)
			wg.Wait()
			if late.Load() != 0 {
				t.Errorf("%d began after the switch", late.Load())
			}
			committed := 0
			for _, op := range operations(h) {
				if op.State == reeve.Committed {
					committed++
				}
			}
			if effect == reeve.Keyed && int64(committed) != ran.Load() {
				t.Errorf("%d ran, %d are recorded", ran.Load(), committed)
			}
			if n := len(pairs(h, thread(h, a.ID, ""))); n != 200 {
				t.Errorf("%d actions", n)
			}
		})
	}
}

// A call that is trying again when the switch is thrown sends no more.
func TestG25_RetriesEndToo(t *testing.T) {
	t.Parallel()
	var n counter
	first := make(chan struct{})
	x := tool("x", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		if n.n.Add(1) == 1 {
			close(first)
		}
		return nil, reeve.Errorf(reeve.Unavailable, "down")
	})
	x.Retry = reeve.Retry{Attempts: 10, DelayMS: 300, MaxMS: 300}
	h := reevetest.Start(t, x)
	a := h.Agent("a", "x")
	got := make(chan reeve.Result)
	go func() {
		res, _ := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "x"})
		got <- res
	}()
	<-first
	stop(h, "a")
	if res := <-got; res.State != reeve.Failed || n.count() != 1 {
		t.Errorf("%d attempts, %+v", n.count(), res)
	}
}

// Nor does one that runs on behalf of an agent that is stopped meanwhile, or in a run that was cancelled.
func TestG25_RetriesOnBehalfEndToo(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		for name, end := range map[string]func(h *reevetest.Host, run string){
			"stopped": func(h *reevetest.Host, _ string) { stop(h, "boss") },
			"cancelled": func(h *reevetest.Host, run string) {
				h.Want(http.StatusOK, nil, "POST", "/api/runs/"+run+"/cancel", nil)
			},
		} {
			t.Run(engine+", "+name, func(t *testing.T) {
				var n counter
				first, ended := make(chan string, 1), make(chan struct{})
				act := tool("act", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
					if n.n.Add(1) == 1 {
						first <- inv.Run
						<-ended
						return nil, reeve.Errorf(reeve.Unavailable, "down")
					}
					return "done", nil
				})
				act.Retry = reeve.Retry{Attempts: 3, DelayMS: 1}
				h, _ := bossAndHelperOn(t, engine, "allow", act)
				speak(h, h.StartConversation("boss").ID, "go")
				end(h, <-first)
				close(ended)
				var op reeve.Operation
				eventually(t, "the attempt is recorded", func() bool {
					for _, op = range operations(h) {
						if op.Tool == "act" && op.State != reeve.Dispatched {
							return true
						}
					}
					return false
				})
				if op.State != reeve.Failed || n.count() != 1 {
					t.Errorf("%d attempts, %+v", n.count(), op)
				}
			})
		}
	}
}

// While everything is stopped, nothing is sent again either; what nobody can tell is told to a person at once.
func TestG25_OpenOutcomesWait(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	h, _, op := midway(t, w, reeve.Keyed, nil, nil)
	stop(h, "")
	for range 3 {
		if _, err := h.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, requests := w.total(); requests != 1 || operation(h, op.ID).State != reeve.Dispatched {
		t.Errorf("%d requests, %+v", requests, operation(h, op.ID))
	}
	resume(h, "")
	if got := settle(h, op.ID); got.State != reeve.Committed {
		t.Errorf("%+v", got)
	}
}

// explained reads the explanation of a past call and checks that it names every step once, in order.
func explained(h *reevetest.Host, id string) reeve.Explanation {
	h.T.Helper()
	var x reeve.Explanation
	h.Want(http.StatusOK, &x, "GET", "/api/calls/"+id+"/explanation", nil)
	checkSteps(h, x)
	return x
}

func checkSteps(h *reevetest.Host, x reeve.Explanation) {
	h.T.Helper()
	want := append(append([]string{}, steps...), "timeout", "invoke", "redact", "truncate", "record")
	over := false
	for i, s := range x.Steps {
		if i >= len(want) || s.Name != want[i] || s.Verdict == "" {
			h.T.Fatalf("step %d is %+v", i, s)
		}
		if over && s.Verdict != reeve.NotReached && s.Name != "record" {
			h.T.Errorf("%s was reached after a refusal: %+v", s.Name, x.Steps)
		}
		over = over || s.Verdict == reeve.Refused
	}
	if len(x.Steps) != len(want) || x.Outcome == "" || x.Tool == "" || x.Agent == "" {
		h.T.Errorf("%+v", x)
	}
}

func verdict(x reeve.Explanation, step string) reeve.Verdict {
	for _, s := range x.Steps {
		if s.Name == step {
			return s.Verdict
		}
	}
	return ""
}

func TestG26_APastCallIsExplained(t *testing.T) {
	t.Parallel()
	var g guarded
	var ran counter
	h := reevetest.StartWith(t, quick(t), g.tool(), tool("keyed", reeve.Keyed, ran.handle),
		tool("long", reeve.Read, func(context.Context, *reeve.Invocation) (any,
			error) {
			return strings.Repeat("x", 20_000), nil
		}),
		tool("fails", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return nil,
				fmt.Errorf("no luck")
		}),
		tool("lost", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) { panic("boom") }))
	a := h.Agent("a", "guarded", "keyed", "long", "fails", "lost")
	ok := h.Call(a.ID, "keyed", nil)
	for _, id := range []string{ok.CallID, ok.OperationID} { // by either id
		if x := explained(h, id); x.Outcome != "The call ran and succeeded." || x.Operation == nil ||
			x.Operation.State != reeve.Committed || x.Hypothetical ||
			verdict(x, "invoke") != reeve.Passed || verdict(x, "record") != reeve.Passed {
			t.Errorf("%+v", x)
		}
	}
	if x := explained(h, h.Call(a.ID, "long", nil).CallID); !strings.Contains(fmt.Sprint(x.Steps),
		"truncated from 20000 bytes") {
		t.Errorf("%+v", x)
	}
	if x := explained(h, h.Call(a.ID, "fails", nil).CallID); x.Outcome != "The call ran and failed: no luck" {
		t.Errorf("%+v", x)
	}
	_, p, _ := do(h, a.ID, call{"tool": "keyed", "args": 3})
	if x := explained(h, p.CallID); verdict(x, "arguments") != reeve.Refused ||
		!strings.Contains(x.Outcome, "refused") || verdict(x, "capability") != reeve.NotReached {
		t.Errorf("%+v", x)
	}
	parked := h.Call(a.ID, "guarded", nil)
	if x := explained(h, parked.CallID); verdict(x, "approval") != reeve.Waits || x.Approval == nil ||
		x.Approval.ID != parked.ApprovalID || !strings.Contains(x.Outcome, "parked") {
		t.Errorf("%+v", x)
	}
	decide(h, parked.ApprovalID, "deny")
	if x := explained(h, parked.CallID); verdict(x, "approval") != reeve.Refused ||
		verdict(x, "invoke") != reeve.NotReached || !strings.Contains(x.Outcome, "denied") {
		t.Errorf("%+v", x)
	}
	approved := h.Call(a.ID, "guarded", nil)
	decide(h, approved.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	if x := explained(h, approved.OperationID); x.Approval == nil || x.Approval.State != reeve.ApprovalApproved ||
		x.Outcome != "The call ran and succeeded." {
		t.Errorf("%+v", x)
	}
	shown, _, _ := do(h, a.ID, call{"tool": "guarded", "preview_only": true})
	if x := explained(h, shown.CallID); !strings.Contains(x.Outcome, "changed nothing") ||
		verdict(x, "invoke") != reeve.NotReached {
		t.Errorf("%+v", x)
	}
	lost := h.Call(a.ID, "lost", nil)
	if x := explained(h, lost.CallID); !strings.Contains(x.Outcome, "unknown") || verdict(x, "invoke") != reeve.Waits {
		t.Errorf("%+v", x)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+lost.OperationID+"/resolve",
		map[string]any{"resolution": "happened"})
	if x := explained(h, lost.CallID); !strings.Contains(x.Outcome, "confirmed") {
		t.Errorf("%+v", x)
	}
	h.Want(http.StatusNotFound, nil, "GET", "/api/calls/nope/explanation", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	h.Want(http.StatusNotFound, nil, "GET", "/api/calls/"+ok.CallID+"/explanation", nil, "X-Workspace-Id", "other")
}

// A hypothetical call is judged as it would be now, and nothing is done or written.
func TestG26_AHypotheticalCallIsJudgedAndNotMade(t *testing.T) {
	t.Parallel()
	var w watched
	var g guarded
	h := reevetest.Start(t, w.tool("watched"), g.tool())
	a := h.Agent("a", "watched", "guarded")
	judge := func(c call, headers ...string) reeve.Explanation {
		t.Helper()
		var x reeve.Explanation
		h.Want(http.StatusOK, &x, "POST", "/api/agents/a/calls/explain", c, headers...)
		checkSteps(h, x)
		if !x.Hypothetical || verdict(x, "record") != reeve.NotReached {
			t.Errorf("%+v", x)
		}
		return x
	}
	for _, c := range []struct {
		call call
		step string
		said string
	}{
		{call{"tool": "nope"}, "lookup", "refused"},
		{call{"tool": "read_file"}, "attachment", "refused"},
		{call{"tool": "watched", "args": map[string]any{"x": 1}}, "arguments", "refused"},
		{call{"tool": "watched"}, "scope", "refused"},
		{call{"tool": "guarded"}, "", "wait for a person"},
	} {
		x := judge(c.call)
		if (c.step != "" && verdict(x, c.step) != reeve.Refused) || !strings.Contains(x.Outcome, c.said) {
			t.Errorf("%v: %+v", c.call, x)
		}
	}
	patch(h, a, map[string]any{"categories": []string{w.in(h, "work")}}) // seen at once
	if x := judge(call{"tool": "watched"}); x.Outcome != "The call would run." ||
		verdict(x, "budget") != reeve.Passed ||
		verdict(x, "invoke") != reeve.NotReached {
		t.Errorf("%+v", x)
	}
	if w.handler.Load() != 0 || g.ran.count() != 0 || len(operations(h)) != 0 || len(thread(h, a.ID, "")) != 0 ||
		len(inbox(h).Approvals) != 0 {
		t.Error("something was done")
	}
	h.Call(a.ID, "watched", nil, "Idempotency-Key", "k")
	if x := judge(call{"tool": "watched"}, "Idempotency-Key", "k"); !strings.Contains(x.Outcome, "stored result") {
		t.Errorf("%+v", x)
	}
	if x := judge(call{"tool": "watched", "args": map[string]any{"n": 1}}, "Idempotency-Key", "k"); verdict(x,
		"idempotency") != reeve.Refused {
		t.Errorf("%+v", x)
	}
}
