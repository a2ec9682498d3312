package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestG13_TheSameCallIsMadeOnce(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := reevetest.Start(t, kit.Tool("keyed", reeve.Keyed, ran.Handle), kit.Tool("local", reeve.Local, ran.Handle),
		kit.Tool("unsafe", reeve.Unsafe, ran.Handle),
		kit.Tool("fails", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
			ran.N.Add(1)
			return nil, errors.New("no")
		}))
	for _, id := range []string{"keyed", "local", "unsafe", "fails"} {
		a := h.Agent("a-"+id, id)
		ran.N.Store(0)
		send := func(args string) (reeve.Result, api.Problem, int) {
			return kit.TryCall(h, a.ID, kit.Call{"tool": id, "args": json.RawMessage(args)}, "Idempotency-Key", "k")
		}
		first, _, _ := send(`{"a":{"x":1,"y":[{"p":1.5,"q":"z"}]},"b":100}`)
		before := len(kit.ListThread(h, a.ID, ""))
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
		if ran.Count() != 1 || len(kit.ListOperations(h)) != 1+map[string]int{"keyed": 0, "local": 1, "unsafe": 2,
			"fails": 3}[id] {
			t.Errorf("%s ran %d times", id, ran.Count())
		}
		// the conflicts are calls that were refused; the replays wrote nothing
		if n := len(kit.ListThread(h, a.ID, "")) - before; n != 2*4 {
			t.Errorf("%s: %d more messages", id, n)
		}
	}
}

// An idempotency key belongs to one agent in one workspace.
func TestG13_KeysBelongToOneAgent(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := reevetest.Start(t, kit.Tool("keyed", reeve.Keyed, ran.Handle), kit.Tool("local", reeve.Local, ran.Handle))
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	a, b := h.Agent("a", "keyed", "local"), h.Agent("b", "keyed", "local")
	var c reeve.Agent
	h.Want(http.StatusCreated, &c, "POST", "/api/agents", map[string]any{"name": "a"}, "X-Workspace-Id", "other")
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/a/tools", map[string]any{"tool_id": "keyed"}, "X-Workspace-Id",
		"other")
	for _, who := range []struct{ agent, workspace string }{{a.ID, "default"}, {"a", "default"}, {b.ID, "default"},
		{c.ID, "other"}} {
		var res reeve.Result
		h.Want(http.StatusOK, &res, "POST", "/api/agents/"+who.agent+"/calls", kit.Call{"tool": "keyed"},
			"Idempotency-Key",
			"k", "X-Workspace-Id", who.workspace)
		if res.Replayed != (who.agent == "a") { // the first by another name
			t.Errorf("%+v: %+v", who, res)
		}
	}
	if ran.Count() != 3 {
		t.Errorf("ran %d times", ran.Count())
	}
	// An operation id as such, used in two workspaces by a Go program: a conflict, and nothing done.
	for i, who := range []reeve.Call{{Workspace: "default", Agent: a.ID}, {Workspace: "other", Agent: c.ID}} {
		who.Tool, who.Operation = "keyed", "op_mine"
		res, err := h.Host.Call(t.Context(), who)
		if (reeve.CodeOf(err) == reeve.Conflict) != (i == 1) || res.CallID == "" {
			t.Errorf("%d: %+v, %v", i, res, err)
		}
	}
	if ran.Count() != 4 {
		t.Errorf("ran %d times", ran.Count())
	}
	// Another tool, or another agent, under the same operation id.
	for _, other := range []reeve.Call{{Agent: a.ID, Tool: "local"}, {Agent: b.ID, Tool: "keyed"}} {
		other.Workspace, other.Operation = "default", "op_mine"
		if _, err := h.Host.Call(t.Context(), other); reeve.CodeOf(err) != reeve.Conflict {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

// Concurrent calls with one key have one effect.
func TestG13_ConcurrentSameCallsHaveOneEffect(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	open := make(chan struct{})
	w.After = func(int, http.ResponseWriter, *http.Request) bool { <-open; return false }
	var stop sync.Once
	t.Cleanup(func() { stop.Do(func() { close(open) }) })
	h := reevetest.StartWith(t, kit.FastConfig(t), kit.Tool("put", reeve.Local, putFile(nil)))
	kit.DefineHTTPTool(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": w.URL},
		map[string]any{"timeout_ms": 20000})
	a := h.Agent("a", "send", "put", "read_file")
	for _, id := range []string{"send", "put"} {
		results := make(chan reeve.Result, 16)
		var wg sync.WaitGroup
		for range cap(results) {
			wg.Go(func() {
				res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": id}, "Idempotency-Key", "k-"+id)
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
	if effects, requests := w.Count(); effects != 1 || requests != 1 {
		t.Errorf("%d effects, %d requests", effects, requests)
	}
	if list := kit.ListOperations(h); len(list) != 2 {
		t.Errorf("%d operations", len(list))
	}
	if n := len(kit.PairCalls(h, kit.ListThread(h, a.ID, ""))); n != 2 {
		t.Errorf("%d actions", n)
	}
}

// Two servers that get calls with one key execute it once.
func TestG13_TwoServersMakeTheSameCallOnce(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	servers := kit.StartTwoServers(t, kit.Tool("keyed", reeve.Keyed, ran.Handle),
		kit.Tool("put", reeve.Local, putFile(nil)))
	a := servers[0].Agent("a", "keyed", "put")
	for _, id := range []string{"keyed", "put"} {
		var fresh atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				res, p, status := kit.TryCall(servers[i%2], a.ID, kit.Call{"tool": id}, "Idempotency-Key", "k"+id)
				if status != http.StatusOK && status != http.StatusAccepted {
					t.Errorf("%d %+v", status, p)
				}
				if !res.Replayed {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		if fresh.Load() != 1 {
			t.Errorf("%s: %d of them made it", id, fresh.Load())
		}
	}
	if n := len(kit.ListOperations(servers[1])); ran.Count() != 1 || n != 2 {
		t.Errorf("%d ran, %d operations", ran.Count(), n)
	}
}
