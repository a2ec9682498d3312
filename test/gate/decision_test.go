package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// After a refusal no later step runs, and the record names the step.
func TestG01_RefusalNamesItsStep(t *testing.T) {
	t.Parallel()
	var w observedTool
	h := reevetest.Start(t, w.tool("watched"))
	w.useCategory(h, "work")
	scoped := func(name string, tools ...string) reeve.Agent {
		a := h.Agent(name, tools...)
		h.Want(http.StatusOK, &a, "PATCH", "/api/agents/"+a.ID, map[string]any{"categories": []string{"work"}})
		return a
	}
	good := scoped("good", "watched")
	bare := scoped("bare", "read_file")
	weak := scoped("weak", "watched")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+weak.ID, map[string]any{"kind": "nobody"})
	narrow := h.Agent("narrow", "watched")
	denied := scoped("denied", "watched")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+denied.ID,
		map[string]any{"policy": map[string]any{"tools": map[string]any{"watched": "deny"}}})
	var used reeve.Result
	h.Want(http.StatusOK, &used, "POST", "/api/agents/good/calls",
		kit.Call{"tool": "watched", "args": map[string]any{"n": 1}}, "Idempotency-Key", "used")
	for _, c := range []struct {
		step  string
		agent reeve.Agent
		call  reeve.Call
		code  reeve.Code
		ran   [4]int64 // scope, check, preview, handler
		setUp func()
	}{
		{"lookup", good, reeve.Call{Tool: "nope"}, reeve.NotFound, [4]int64{}, nil},
		{"attachment", bare, reeve.Call{Tool: "watched"}, reeve.NotFound, [4]int64{}, nil},
		{"attachment", good, reeve.Call{Tool: "watched", Tools: []string{"read_file"}}, reeve.NotFound, [4]int64{},
			nil},
		{"attachment", good, reeve.Call{Tool: "watched", Tools: []string{}}, reeve.NotFound, [4]int64{}, nil},
		{"arguments", good, reeve.Call{Tool: "watched", Args: json.RawMessage(`{"n":"x"}`)}, reeve.Validation,
			[4]int64{}, nil},
		{"arguments", good, reeve.Call{Tool: "watched", Args: json.RawMessage(`{"n":`)}, reeve.Validation, [4]int64{},
			nil},
		{"capability", weak, reeve.Call{Tool: "watched"}, reeve.OutOfScope, [4]int64{}, nil},
		{"scope", narrow, reeve.Call{Tool: "watched"}, reeve.OutOfScope, [4]int64{1}, nil},
		{"item", good, reeve.Call{Tool: "watched", Automation: "auto"}, reeve.Denied, [4]int64{1}, nil},
		{"approval", denied, reeve.Call{Tool: "watched"}, reeve.Denied, [4]int64{1}, nil},
		{"security", good, reeve.Call{Tool: "watched"}, reeve.Denied, [4]int64{1, 1},
			func() { w.refuseCheck.Store(true) }},
		{"preview", good, reeve.Call{Tool: "watched", Base: "base-0"}, reeve.Stale, [4]int64{1, 1, 1},
			func() { w.refuseCheck.Store(false) }},
		{"idempotency", good, reeve.Call{Tool: "watched", Operation: used.OperationID,
			Args: json.RawMessage(`{"n":2}`)}, reeve.Conflict, [4]int64{1, 1, 0}, nil},
	} {
		t.Run(c.step, func(t *testing.T) {
			if c.setUp != nil {
				c.setUp()
			}
			before := w.counts()
			c.call.Workspace, c.call.Agent, c.call.Session = "default", c.agent.ID, reeve.RandomSecret(8)
			res, err := h.Host.Call(t.Context(), c.call)
			if reeve.CodeOf(err) != c.code || !res.IsError || res.Code != c.code || res.CallID == "" {
				t.Fatalf("%+v, %v", res, err)
			}
			after := w.counts()
			for i, n := range c.ran {
				if after[i]-before[i] != n {
					t.Errorf("scope, check, preview and handler ran %v times before and %v after, want %v more", before,
						after, c.ran)
					break
				}
			}
			p := kit.PairCalls(h, kit.ListThread(h, c.agent.ID, "session="+c.call.Session))[res.CallID]
			trail := kit.ActionInfo(t, p[0]).Trace
			if len(trail) == 0 || trail[len(trail)-1].Name != c.step || trail[len(trail)-1].Verdict != reeve.Refused ||
				trail[len(trail)-1].Why == "" {
				t.Fatalf("the trail ends %+v", trail)
			}
			for i, s := range trail {
				if s.Name != gateSteps[i] || (i < len(trail)-1 && s.Verdict != "") {
					t.Errorf("step %d is %+v, want %s passed", i, s, gateSteps[i])
				}
			}
			if info := kit.ResultInfo(t, p[1]); info.Step.Name != c.step || info.Status != "error" ||
				info.Code != c.code {
				t.Errorf("the result says %+v", info)
			}
			if n := len(kit.ListOperations(h)); n != 1 {
				t.Errorf("%d operations, want the one of the set-up", n)
			}
		})
	}
}

// The budget is the last step: every other step has run, the handler has not.
func TestG01_BudgetIsTheLastStep(t *testing.T) {
	t.Parallel()
	var w observedTool
	costly := w.tool("watched")
	costly.Cost = reeve.Amount{Micros: 5}
	h := reevetest.Start(t, costly)
	w.useCategory(h, "work")
	a := h.Agent("a", "watched")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/a", map[string]any{"categories": []string{"work"}})
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/workspace", map[string]any{"limit": map[string]any{"micros": 4}})
	_, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "watched"})
	if status != http.StatusPaymentRequired || p.Code != reeve.BudgetExceeded {
		t.Fatalf("%d %+v", status, p)
	}
	if w.counts() != [4]int64{1, 1, 1, 0} {
		t.Errorf("scope, check, preview and handler ran %v times", w.counts())
	}
	pair := kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[p.CallID]
	if info := kit.ResultInfo(t, pair[1]); info.Step.Name != "budget" {
		t.Errorf("refused by %+v", info.Step)
	}
}

// A call that is let through has passed every step in order, and each part of the tool ran once.
func TestG01_CallPassesEveryStepInOrder(t *testing.T) {
	t.Parallel()
	var w observedTool
	h := reevetest.Start(t, w.tool("watched"))
	w.useCategory(h, "work")
	kit.NewCategory(h, "other")
	a := h.Agent("a", "watched")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/a", map[string]any{"categories": []string{"work", "other"}})
	res := h.Call(a.ID, "watched", map[string]any{"n": 1})
	trail := kit.ActionInfo(t, kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID][0]).Trace
	if len(trail) != len(gateSteps) {
		t.Fatalf("the trail is %+v", trail)
	}
	for i, s := range trail {
		if s.Name != gateSteps[i] || s.Verdict != "" || s.Why == "" {
			t.Errorf("step %d is %+v", i, s)
		}
	}
	if w.counts() != [4]int64{1, 1, 1, 1} {
		t.Errorf("scope, check, preview and handler ran %v times", w.counts())
	}
}

// A read is decided by the current rules before it runs, not only before it is recorded. A rule that another server
// just changed counts.
func TestG01_ReadIsDecidedBeforeItRuns(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	reads := kit.Tool("reads", reeve.Read, ran.Handle)
	reads.Tier, reads.Capability = reeve.ReadOnly, "files.read"
	one, shared := reevetest.Start(t, reads), kit.StartTwoServers(t, reads)
	for name, servers := range map[string][2]*reevetest.Host{"here": {one, one}, "elsewhere": {shared[0], shared[1]}} {
		for _, change := range []struct {
			method, path string
			body         any
			status       int
			code         reeve.Code
		}{
			{"PATCH", "/api/agents/%s", kit.Object{"policy": kit.Object{"tools": kit.Object{"reads": "deny"}}}, 403,
				reeve.Denied},
			{"PATCH", "/api/agents/%s", kit.Object{"policy": kit.Object{"tools": kit.Object{"reads": "ask"}}}, 202,
				reeve.ApprovalRequired},
			{"PATCH", "/api/agents/%s", kit.Object{"kind": "powerless"}, 403, reeve.OutOfScope},
			{"DELETE", "/api/agents/%s/tools/reads", nil, 404, reeve.NotFound},
			{"DELETE", "/api/agents/%s", nil, 404, reeve.NotFound},
		} {
			caller, alter := servers[0], servers[1]
			a := caller.Agent(fmt.Sprintf("reader-%d", ran.Count()), "reads")
			caller.Call(a.ID, "reads", nil)
			before := ran.Count()
			if r := alter.Do(change.method, fmt.Sprintf(change.path, a.ID), change.body); r.Status >= 300 {
				t.Fatalf("%s %s: %d %s", change.method, change.path, r.Status, r.Body)
			}
			res, p, status := kit.TryCall(caller, a.ID, kit.Call{"tool": "reads"})
			if status != change.status || p.Code != change.code && res.Code != change.code || ran.Count() != before {
				t.Errorf("%s, %s %s %v: %d %s%s, made %d times", name, change.method, change.path, change.body, status,
					p.Code, res.Code, ran.Count()-before)
			}
		}
	}
}

// A call by name belongs to the agent that has the name now, also if nothing is written before the handler runs.
func TestG01_NameMeansItsCurrentAgent(t *testing.T) {
	t.Parallel()
	one, shared := reevetest.Start(t), kit.StartTwoServers(t)
	for name, servers := range map[string][2]*reevetest.Host{"here": {one, one}, "elsewhere": {shared[0], shared[1]}} {
		t.Run(name, func(t *testing.T) {
			caller, alter := servers[0], servers[1]
			rename := func(id, to string) { alter.Want(200, nil, "PATCH", "/api/agents/"+id, kit.Object{"name": to}) }
			var ids []string
			for _, name := range []string{"ann", "bob"} {
				a := caller.Agent(name, "write_file", "read_file")
				caller.Call(name, "write_file", kit.Call{"path": "/who", "content": name})
				caller.Call(name, "read_file", kit.Call{"path": "/who"})
				ids = append(ids, a.ID)
			}
			rename(ids[0], "cas")
			rename(ids[1], "ann")
			if res := caller.Call("ann", "read_file", kit.Call{"path": "/who"}); !strings.Contains(res.Content, "bob") {
				t.Errorf("the name ann, which bob has taken, reads %q", res.Content)
			}
			if _, p, status := kit.TryCall(caller, "bob",
				kit.Call{"tool": "read_file", "args": kit.Object{"path": "/who"}}); status != 404 ||
				p.Code != reeve.NotFound {
				t.Errorf("a name that nobody has: %d %+v", status, p)
			}
			alter.Want(204, nil, "DELETE", "/api/agents/"+ids[1], nil)
			again := alter.Agent("ann", "read_file")
			if res, p, status := kit.TryCall(caller, "ann",
				kit.Call{"tool": "read_file", "args": kit.Object{"path": "/who"}}); status != 200 || !res.IsError &&
				res.Content == "bob" {
				t.Errorf("made anew as %s: %d %+v %+v", again.ID, status, res, p)
			}
		})
	}
}

// An error or panic in a tool's own check refuses the call at that step. The refusal is recorded, and no later step
// runs.
func TestG01_FailingToolCheckRefuses(t *testing.T) {
	t.Parallel()
	fail := map[string]func() error{
		"error":  func() error { return errors.New("no") },
		"panic":  func() error { panic("boom") },
		"typed":  func() error { return reeve.Errorf(reeve.Internal, "no") },
		"nilled": func() error { var e *reeve.Error; return e },
	}
	var list []reeve.Tool
	var ran kit.Counter
	for name, f := range fail {
		c := kit.Tool("check_"+name, reeve.Keyed, ran.Handle)
		c.Check = func(context.Context, *reeve.Invocation) error { return f() }
		s := kit.Tool("scope_"+name, reeve.Keyed, ran.Handle)
		s.Categories = func(context.Context, *reeve.Invocation) ([]string, error) { return nil, f() }
		p := kit.Tool("preview_"+name, reeve.Keyed, ran.Handle)
		p.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) { return reeve.Preview{}, f() }
		list = append(list, c, s, p)
	}
	hang := kit.Tool("check_hang", reeve.Keyed, ran.Handle)
	hang.TimeoutMS = 20
	never := make(chan struct{})
	hang.Check = func(context.Context, *reeve.Invocation) error { <-never; return nil }
	t.Cleanup(func() { close(never) })
	h := reevetest.Start(t, append(list, hang)...)
	a := h.Agent("a")
	want := map[string]string{"check": "security", "scope": "scope", "preview": "preview"}
	for _, tool := range append(list, hang) {
		res, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: tool.ID,
			Tools: []string{tool.ID}, Session: tool.ID})
		if err == nil || res.CallID == "" {
			t.Errorf("%s: %+v, %v", tool.ID, res, err)
			continue
		}
		prefix, _, _ := strings.Cut(tool.ID, "_")
		if info := kit.ResultInfo(t, kit.PairCalls(h, kit.ListThread(h, a.ID, "session="+tool.ID))[res.CallID][1]); info.Step.Name != want[prefix] {
			t.Errorf("%s was refused by %+v", tool.ID, info.Step)
		}
	}
	if ran.Count() != 0 || len(kit.ListOperations(h)) != 0 {
		t.Errorf("%d ran, %d operations", ran.Count(), len(kit.ListOperations(h)))
	}
}
