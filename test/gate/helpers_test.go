package gate_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/reevetest"
	"reeve/test/kit"
)

// gateSteps are the steps of the gate, in order, as records name them.
var gateSteps = []string{"lookup", "attachment", "arguments", "capability", "scope", "item", "approval", "security",
	"preview", "idempotency", "budget"}

// guardedTool is a tool with a preview whose calls need approval.
type guardedTool struct {
	ran  kit.Counter
	args atomic.Value
	op   atomic.Value
	base atomic.Value
}

func (g *guardedTool) tool() reeve.Tool {
	g.base.Store("v1")
	t := kit.Tool("guarded", reeve.Unsafe, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		g.ran.N.Add(1)
		g.args.Store(string(inv.Args))
		g.op.Store(inv.Operation)
		return "ran", nil
	})
	t.Tier, t.Capability = reeve.Privileged, "files.write"
	t.Preview = func(_ context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: "+ " + string(inv.Args), Base: g.base.Load().(string)}, nil
	}
	t.ConfigSchema = json.RawMessage(kit.AnyObject)
	return t
}

// newCostlyTool returns a tool that declares a maximum cost and reports a real one.
func newCostlyTool(id string, effect reeve.Effect, most, real reeve.Amount, ran *kit.Counter) reeve.Tool {
	t := kit.Tool(id, effect, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		ran.N.Add(1)
		inv.Spend(real.Tokens, real.Micros)
		return "spent", nil
	})
	t.Cost = most
	return t
}

// putFile returns the handler of a local tool that writes a session file, emits an event, and then calls a function.
func putFile(then func(ctx context.Context, tx *store.Tx, inv *reeve.Invocation) error) reeve.Handler {
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

// hasFile reports whether the file of putFile exists.
func hasFile(h *reevetest.Host, agent string) bool {
	h.T.Helper()
	return !h.Call(agent, "read_file", map[string]any{"path": "/effect"}).IsError
}

// crashMidCall makes a call whose request has had its effect but no answer, and returns a host that started as after a
// crash at that moment: the operation is dispatched, the outcome is not recorded.
func crashMidCall(t *testing.T, w *kit.Witness, effect reeve.Effect, more map[string]any,
	spec map[string]any) (*reevetest.Host, reeve.Agent, reeve.Operation) {
	t.Helper()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	s := map[string]any{"method": "POST", "url": w.URL + "/send"}
	for k, v := range spec {
		s[k] = v
	}
	kit.DefineHTTPTool(h, "send", effect, s, more)
	a := h.Agent("a", "send")
	release := make(chan struct{})
	w.After = func(n int, _ http.ResponseWriter, r *http.Request) bool {
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
	<-w.Reached
	after := kit.RestartAfterCrash(h)
	stop() // the crashed host starts nothing more
	list := kit.ListOperations(after)
	if len(list) != 1 || list[0].State != reeve.Dispatched {
		t.Fatalf("the crash left %+v", list)
	}
	return after, a, list[0]
}

// observedTool is a tool that counts how often each of its parts runs, and whose parts can refuse.
type observedTool struct {
	scope, check, preview, handler atomic.Int64
	refuseCheck                    atomic.Bool
	base                           atomic.Value
	category                       atomic.Value // that every call touches; see in
}

// useCategory creates a category that every later call of the tool touches.
func (w *observedTool) useCategory(h *reevetest.Host, name string) string {
	h.T.Helper()
	id := kit.NewCategory(h, name)
	w.category.Store(id)
	return id
}

func (w *observedTool) tool(id string) reeve.Tool {
	w.base.Store("base-1")
	w.category.Store("none yet")
	t := kit.Tool(id, reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		w.handler.Add(1)
		return "ran", nil
	})
	t.Parameters = json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	t.Capability = "files.read"
	t.Categories = func(context.Context, *reeve.Invocation) ([]string, error) {
		w.scope.Add(1)
		return []string{w.category.Load().(string)}, nil
	}
	t.Check = func(context.Context, *reeve.Invocation) error {
		if w.check.Add(1); w.refuseCheck.Load() {
			return reeve.Errorf(reeve.Denied, "not these arguments")
		}
		return nil
	}
	t.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) {
		w.preview.Add(1)
		return reeve.Preview{Change: "would run", Base: w.base.Load().(string)}, nil
	}
	return t
}

func (w *observedTool) counts() [4]int64 {
	return [4]int64{w.scope.Load(), w.check.Load(), w.preview.Load(), w.handler.Load()}
}

// finishOperation steps the host until an operation has ended, waiting for its next attempt if there is one.
func finishOperation(h *reevetest.Host, op string) reeve.Operation {
	h.T.Helper()
	var got reeve.Operation
	kit.Eventually(h.T, "operation "+op+" to end", func() bool {
		if _, err := h.Step(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		got = kit.GetOperation(h, op)
		return got.State != reeve.Dispatched && got.State != reeve.Prepared
	})
	return got
}

// readSlices reads a stored output through the tool, n bytes at a time.
func readSlices(h *reevetest.Host, agent, hash string, n int) string {
	h.T.Helper()
	var all strings.Builder
	for offset := 0; ; {
		res := h.Call(agent, "output_read", map[string]any{"hash": hash, "offset": offset, "limit": n})
		var s struct {
			Content    string `json:"content"`
			NextOffset int    `json:"next_offset"`
			Remaining  int    `json:"remaining"`
		}
		if err := json.Unmarshal([]byte(res.Content), &s); err != nil || res.IsError {
			h.T.Fatalf("%+v: %v", res, err)
		}
		all.WriteString(s.Content)
		if offset = s.NextOffset; s.Remaining == 0 {
			return all.String()
		}
	}
}

// newRater creates an agent that rates and pins tasks, and a task.
func newRater(h *reevetest.Host) (a reeve.Agent, task string) {
	h.T.Helper()
	var gym reeve.Category
	h.Want(http.StatusCreated, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
	a = h.Agent("a", "create_or_update_rating", "pin_day_plan_tasks")
	kit.UpdateAgent(h, a, kit.Object{"kind": "planner", "categories": []string{gym.ID}})
	var made reeve.Task
	h.Want(http.StatusCreated, &made, "POST", "/api/journal/tasks", kit.Object{"title": "Squat", "category_id": gym.ID})
	return a, made.ID
}

// newProposer creates an agent whose writes are proposals.
func newProposer(h *reevetest.Host, name string, tools ...string) reeve.Agent {
	h.T.Helper()
	a := h.Agent(name, tools...)
	kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{"tiers": kit.Object{"side_effecting": "propose",
		"privileged": "propose",
		"read_only":  "propose"}}})
	return a
}

func getChangeSet(h *reevetest.Host, id string) (s reeve.ChangeSet) {
	h.T.Helper()
	h.Want(http.StatusOK, &s, "GET", "/api/change-sets/"+id, nil)
	return s
}

// makeKey returns a key of a known format: a prefix and a body of n characters. Keys are made at run time so that no
// scanner takes the source for a leak.
func makeKey(prefix string, n int) string {
	return prefix + strings.Repeat("aB3dE5gH7jK9mN1p", n/16+1)[:n]
}

// getExplanation returns the explanation of a past call and checks that it names every step once, in order.
func getExplanation(h *reevetest.Host, id string) reeve.Explanation {
	h.T.Helper()
	var x reeve.Explanation
	h.Want(http.StatusOK, &x, "GET", "/api/calls/"+id+"/explanation", nil)
	checkSteps(h, x)
	return x
}

func checkSteps(h *reevetest.Host, x reeve.Explanation) {
	h.T.Helper()
	want := append(append([]string{}, gateSteps...), "timeout", "invoke", "scrub", "truncate", "record")
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
