package gate_test

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
	"reeve/test/kit"
)

// A handler that panics, hangs or breaks its contract affects only its own call.
func TestG22_HandlerFailureAffectsOnlyItsCall(t *testing.T) {
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
			x := kit.Tool(name+"_"+string(e), e, f)
			x.TimeoutMS = 50
			list, names = append(list, x), append(names, x.ID)
		}
	}
	h := reevetest.Start(t, append(list, kit.Tool("good", reeve.Local, putFile(nil)))...)
	a := h.Agent("a", append(names, "good")...)
	for _, name := range names {
		res, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": name})
		if status != http.StatusOK && status != http.StatusAccepted {
			t.Errorf("%s: %d %+v", name, status, p)
		}
		if (strings.HasPrefix(name, "panics") || strings.HasPrefix(name, "ends") || strings.HasPrefix(name, "typed") ||
			strings.HasPrefix(name, "hangs")) && !res.IsError {
			t.Errorf("%s: %+v", name, res)
		}
		if strings.Contains(string(kit.MustJSON(res)), "boom") || strings.Contains(string(kit.MustJSON(res)),
			"goroutine ") {
			t.Errorf("%s tells its insides: %+v", name, res)
		}
		if res := h.Call(a.ID, "good", nil); res.State != reeve.Committed {
			t.Errorf("after %s: %+v", name, res)
		}
	}
	h.Want(http.StatusOK, nil, "GET", "/healthz", nil)
}

type marshalPanic struct{}

func (marshalPanic) MarshalJSON() ([]byte, error) { panic("boom") }

type marshalExit struct{}

func (marshalExit) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

type marshalHang struct{ c chan struct{} }

func (m marshalHang) MarshalJSON() ([]byte, error) { <-m.c; return []byte("1"), nil }

// After the timeout of a handler its transaction is closed, its invocation is refused and its answer is ignored.
func TestG22_HandlerHasNoEffectAfterItsTimeout(t *testing.T) {
	t.Parallel()
	late, done := make(chan struct{}), make(chan error, 1)
	x := kit.Tool("late", reeve.Local, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
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
	kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"calls": 100}})
	res := h.Call(a.ID, "late", nil)
	close(late)
	if err := <-done; reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("a late write was answered with %v", err)
	}
	if res.State != reeve.Failed || res.Undo != nil || len(res.Changed) != 0 || res.Spent.Tokens != 0 {
		t.Errorf("%+v", res)
	}
	if hasFile(h, a.ID) {
		t.Error("a late write is there")
	}
	if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Failed || op.Undo != nil {
		t.Errorf("%+v", op)
	}
	if b := kit.GetBudget(h, "workspace"); b.Used.Tokens != 0 {
		t.Errorf("%+v", b)
	}
}

// callBatch makes calls as those of one model response.
func callBatch(h *reevetest.Host, agent string, calls ...kit.Call) []reeve.Result {
	h.T.Helper()
	var out api.BatchResponse
	h.Want(http.StatusOK, &out, "POST", "/api/agents/"+agent+"/calls/batch", map[string]any{"calls": calls})
	return out.Results
}

// Reads in a row run at the same time. Every other call runs alone, in its turn. Results come in order.
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
	read := kit.Tool("read", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		defer enter("read")()
		if came.Add(1) == n {
			close(open)
		}
		<-open
		return string(inv.Args), nil
	})
	write := func(id string, e reeve.Effect) reeve.Tool {
		return kit.Tool(id, e, func(_ context.Context, inv *reeve.Invocation) (any, error) {
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
	var calls []kit.Call
	for i, id := range []string{"keyed", "read", "read", "read", "read", "local", "unsafe", "keyed"} {
		calls = append(calls, kit.Call{"tool": id, "args": map[string]any{"i": i}})
	}
	for i, res := range callBatch(h, a.ID, calls...) {
		if res.IsError || res.Content != fmt.Sprintf(`{"i":%d}`, i) {
			t.Errorf("result %d is %+v", i, res)
		}
	}
	if got := strings.Join(order, " "); got != "keyed read read read read local unsafe keyed" || most.Load() != n {
		t.Errorf("the order was %s, at most %d at once", got, most.Load())
	}
	var results []string
	list := kit.ListThread(h, a.ID, "")
	kit.PairCalls(h, list)
	for _, m := range list {
		if m.Kind == reeve.ToolResult {
			results = append(results, m.Content)
		}
	}
	if got := strings.Join(results, ""); got != `{"i":0}{"i":1}{"i":2}{"i":3}{"i":4}{"i":5}{"i":6}{"i":7}` {
		t.Errorf("recorded as %s", got)
	}
}

// Parallel reads are recorded in the order of the calls, in whatever order they end.
func TestG23_ReadsAreRecordedInCallOrder(t *testing.T) {
	t.Parallel()
	turn := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	close(turn[3])
	read := kit.Tool("read", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
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
	got := callBatch(h, a.ID, kit.Call{"tool": "read", "args": map[string]any{"i": 0}},
		kit.Call{"tool": "read", "args": map[string]any{"i": 1}},
		kit.Call{"tool": "read", "args": 7}, kit.Call{"tool": "read", "args": map[string]any{"i": 3}},
		kit.Call{"tool": "read", "args": map[string]any{"i": 2}}, kit.Call{"tool": "nope"})
	ids := []string{}
	for _, m := range kit.ListThread(h, a.ID, "") {
		if m.Kind == reeve.Action {
			ids = append(ids, m.ID)
		}
	}
	for i, res := range got {
		if i >= len(ids) || res.CallID != ids[i] {
			t.Errorf("call %d is %s, recorded as %v", i, res.CallID, ids)
		}
	}
	kit.PairCalls(h, kit.ListThread(h, a.ID, ""))
}

// Each call of a batch is decided by itself. A refusal or an approval in the middle stops no other call.
func TestG23_RefusalInABatchStopsNoOtherCall(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	x := kit.Tool("priv", reeve.Unsafe, ran.Handle)
	x.Tier = reeve.Privileged
	h := reevetest.Start(t, kit.Tool("read", reeve.Read, ran.Handle), kit.Tool("local", reeve.Local, ran.Handle), x)
	a := h.Agent("a", "read", "local", "priv")
	got := callBatch(h, a.ID, kit.Call{"tool": "read"}, kit.Call{"tool": "nope"}, kit.Call{"tool": "read"},
		kit.Call{"tool": "read", "args": "x"}, kit.Call{"tool": "priv"}, kit.Call{"tool": "local"})
	for i, code := range []reeve.Code{"", reeve.NotFound, "", reeve.Validation, reeve.ApprovalRequired, ""} {
		if got[i].Code != code || got[i].CallID == "" {
			t.Errorf("%d: %+v", i, got[i])
		}
	}
	if ran.Count() != 3 {
		t.Errorf("%d ran", ran.Count())
	}
}

// Asynchronous reads of a batch are ordinary operations: their outcomes can be delivered, and the same key starts
// nothing again.
func TestG23_AsynchronousReadsOfABatch(t *testing.T) {
	t.Parallel()
	var begun kit.Counter
	look := kit.AsyncTool("look", reeve.Read, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		begun.N.Add(1)
		return kit.AnswerLater(ctx, inv)
	})
	h := reevetest.StartWith(t, kit.FastConfig(t), look)
	a := h.Agent("a", "look")
	ask := func() []reeve.Result {
		return callBatch(h, a.ID, kit.Call{"tool": "look", "args": kit.Object{"i": 0}, "idempotency_key": "first"},
			kit.Call{"tool": "look", "args": kit.Object{"i": 1}, "idempotency_key": "second"})
	}
	first := ask()
	h.RunUntilIdle(t.Context())
	again := ask()
	for i, res := range first {
		if !res.Deferred || res.IsError || !again[i].Replayed || again[i].OperationID != res.OperationID {
			t.Errorf("%+v, and again %+v", res, again[i])
		}
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/result",
			kit.Object{"content": "it is there"})
	}
	h.RunUntilIdle(t.Context())
	if begun.Count() != len(first) {
		t.Errorf("begun %d times", begun.Count())
	}
	for i, res := range ask() {
		if res.Content != "it is there" || res.State != reeve.Committed || res.OperationID != first[i].OperationID {
			t.Errorf("%+v", res)
		}
	}
}
