package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// steps is the order of the gate, as records name it.
var steps = []string{"lookup", "attachment", "arguments", "capability", "scope", "item", "approval", "security",
	"preview", "idempotency", "budget"}

// watched is a tool whose every part counts that it was run and can be told to refuse.
type watched struct {
	scope, check, preview, handler atomic.Int64
	refuseCheck                    atomic.Bool
	base                           atomic.Value
	category                       atomic.Value // that every call touches; see in
}

// in makes a category that every call of the tool touches from now on.
func (w *watched) in(h *reevetest.Host, name string) string {
	h.T.Helper()
	id := category(h, name)
	w.category.Store(id)
	return id
}

// category makes a category and gives its id.
func category(h *reevetest.Host, name string) string {
	h.T.Helper()
	var c reeve.Category
	h.Want(http.StatusCreated, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: name})
	return c.ID
}

func (w *watched) tool(id string) reeve.Tool {
	w.base.Store("base-1")
	w.category.Store("none yet")
	t := tool(id, reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		w.handler.Add(1)
		return "ran",
			nil
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

func (w *watched) counts() [4]int64 {
	return [4]int64{w.scope.Load(), w.check.Load(), w.preview.Load(), w.handler.Load()}
}

// A refusal at any step runs nothing after it, and the record names the step.
func TestG01_ARefusalEndsTheWayAndNamesItsStep(t *testing.T) {
	t.Parallel()
	var w watched
	h := reevetest.Start(t, w.tool("watched"))
	w.in(h, "work")
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
		call{"tool": "watched", "args": map[string]any{"n": 1}}, "Idempotency-Key", "used")
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
			p := pairs(h, thread(h, c.agent.ID, "session="+c.call.Session))[res.CallID]
			trail := actionInfo(t, p[0]).Trace
			if len(trail) == 0 || trail[len(trail)-1].Name != c.step || trail[len(trail)-1].Verdict != reeve.Refused ||
				trail[len(trail)-1].Why == "" {
				t.Fatalf("the trail ends %+v", trail)
			}
			for i, s := range trail {
				if s.Name != steps[i] || (i < len(trail)-1 && s.Verdict != "") {
					t.Errorf("step %d is %+v, want %s passed", i, s, steps[i])
				}
			}
			if info := resultInfo(t, p[1]); info.Step.Name != c.step || info.Status != "error" || info.Code != c.code {
				t.Errorf("the result says %+v", info)
			}
			if n := len(operations(h)); n != 1 {
				t.Errorf("%d operations, want the one of the set-up", n)
			}
		})
	}
}

// The budget is the last to refuse: everything before it has run, the handler has not.
func TestG01_BudgetIsTheLastStep(t *testing.T) {
	t.Parallel()
	var w watched
	costly := w.tool("watched")
	costly.Cost = reeve.Amount{Micros: 5}
	h := reevetest.Start(t, costly)
	w.in(h, "work")
	a := h.Agent("a", "watched")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/a", map[string]any{"categories": []string{"work"}})
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/workspace", map[string]any{"limit": map[string]any{"micros": 4}})
	_, p, status := do(h, a.ID, call{"tool": "watched"})
	if status != http.StatusPaymentRequired || p.Code != reeve.BudgetExceeded {
		t.Fatalf("%d %+v", status, p)
	}
	if w.counts() != [4]int64{1, 1, 1, 0} {
		t.Errorf("scope, check, preview and handler ran %v times", w.counts())
	}
	pair := pairs(h, thread(h, a.ID, ""))[p.CallID]
	if info := resultInfo(t, pair[1]); info.Step.Name != "budget" {
		t.Errorf("refused by %+v", info.Step)
	}
}

// A call that is let through has passed every step, in order, and its parts ran once each.
func TestG01_ACallThatPassesHasSeenEveryStep(t *testing.T) {
	t.Parallel()
	var w watched
	h := reevetest.Start(t, w.tool("watched"))
	w.in(h, "work")
	category(h, "other")
	a := h.Agent("a", "watched")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/a", map[string]any{"categories": []string{"work", "other"}})
	res := h.Call(a.ID, "watched", map[string]any{"n": 1})
	trail := actionInfo(t, pairs(h, thread(h, a.ID, ""))[res.CallID][0]).Trace
	if len(trail) != len(steps) {
		t.Fatalf("the trail is %+v", trail)
	}
	for i, s := range trail {
		if s.Name != steps[i] || s.Verdict != "" || s.Why == "" {
			t.Errorf("step %d is %+v", i, s)
		}
	}
	if w.counts() != [4]int64{1, 1, 1, 1} {
		t.Errorf("scope, check, preview and handler ran %v times", w.counts())
	}
}

// A call that reads is judged by what holds now before it is made, and not only before it is recorded: what was
// forbidden a moment ago, here or on another server, reaches nobody.
func TestG01_AReadThatIsRefusedIsNotMade(t *testing.T) {
	t.Parallel()
	var ran counter
	reads := tool("reads", reeve.Read, ran.handle)
	reads.Tier, reads.Capability = reeve.ReadOnly, "files.read"
	one, shared := reevetest.Start(t, reads), two(t, reads)
	for name, servers := range map[string][2]*reevetest.Host{"here": {one, one}, "elsewhere": {shared[0], shared[1]}} {
		for _, change := range []struct {
			method, path string
			body         any
			status       int
			code         reeve.Code
		}{
			{"PATCH", "/api/agents/%s", object{"policy": object{"tools": object{"reads": "deny"}}}, 403, reeve.Denied},
			{"PATCH", "/api/agents/%s", object{"policy": object{"tools": object{"reads": "ask"}}}, 202,
				reeve.ApprovalRequired},
			{"PATCH", "/api/agents/%s", object{"kind": "powerless"}, 403, reeve.OutOfScope},
			{"DELETE", "/api/agents/%s/tools/reads", nil, 404, reeve.NotFound},
			{"DELETE", "/api/agents/%s", nil, 404, reeve.NotFound},
		} {
			caller, alter := servers[0], servers[1]
			a := caller.Agent(fmt.Sprintf("reader-%d", ran.count()), "reads")
			caller.Call(a.ID, "reads", nil)
			before := ran.count()
			if r := alter.Do(change.method, fmt.Sprintf(change.path, a.ID), change.body); r.Status >= 300 {
				t.Fatalf("%s %s: %d %s", change.method, change.path, r.Status, r.Body)
			}
			res, p, status := do(caller, a.ID, call{"tool": "reads"})
			if status != change.status || p.Code != change.code && res.Code != change.code || ran.count() != before {
				t.Errorf("%s, %s %s %v: %d %s%s, made %d times", name, change.method, change.path, change.body, status,
					p.Code, res.Code, ran.count()-before)
			}
		}
	}
}

// A call by a name is that agent's who has it now, also where nothing is written before its handler runs.
func TestG01_ANameIsWhoHasItNow(t *testing.T) {
	t.Parallel()
	one, shared := reevetest.Start(t), two(t)
	for name, servers := range map[string][2]*reevetest.Host{"here": {one, one}, "elsewhere": {shared[0], shared[1]}} {
		t.Run(name, func(t *testing.T) {
			caller, alter := servers[0], servers[1]
			rename := func(id, to string) { alter.Want(200, nil, "PATCH", "/api/agents/"+id, object{"name": to}) }
			var ids []string
			for _, name := range []string{"ann", "bob"} {
				a := caller.Agent(name, "write_file", "read_file")
				caller.Call(name, "write_file", call{"path": "/who", "content": name})
				caller.Call(name, "read_file", call{"path": "/who"})
				ids = append(ids, a.ID)
			}
			rename(ids[0], "cas")
			rename(ids[1], "ann")
			if res := caller.Call("ann", "read_file", call{"path": "/who"}); !strings.Contains(res.Content, "bob") {
				t.Errorf("the name ann, which bob has taken, reads %q", res.Content)
			}
			if _, p, status := do(caller, "bob",
				call{"tool": "read_file", "args": object{"path": "/who"}}); status != 404 || p.Code != reeve.NotFound {
				t.Errorf("a name that nobody has: %d %+v", status, p)
			}
			alter.Want(204, nil, "DELETE", "/api/agents/"+ids[1], nil)
			again := alter.Agent("ann", "read_file")
			if res, p, status := do(caller, "ann",
				call{"tool": "read_file", "args": object{"path": "/who"}}); status != 200 || !res.IsError &&
				res.Content == "bob" {
				t.Errorf("made anew as %s: %d %+v %+v", again.ID, status, res, p)
			}
		})
	}
}

// Whatever goes wrong in a tool's own judgement is that step's refusal, recorded, and nothing after it runs.
func TestG01_AToolsOwnJudgementThatFailsRefuses(t *testing.T) {
	t.Parallel()
	fail := map[string]func() error{
		"error":  func() error { return errors.New("no") },
		"panic":  func() error { panic("boom") },
		"typed":  func() error { return reeve.Errorf(reeve.Internal, "no") },
		"nilled": func() error { var e *reeve.Error; return e },
	}
	var list []reeve.Tool
	var ran counter
	for name, f := range fail {
		c := tool("check_"+name, reeve.Keyed, ran.handle)
		c.Check = func(context.Context, *reeve.Invocation) error { return f() }
		s := tool("scope_"+name, reeve.Keyed, ran.handle)
		s.Categories = func(context.Context, *reeve.Invocation) ([]string, error) { return nil, f() }
		p := tool("preview_"+name, reeve.Keyed, ran.handle)
		p.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) { return reeve.Preview{}, f() }
		list = append(list, c, s, p)
	}
	hang := tool("check_hang", reeve.Keyed, ran.handle)
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
		if info := resultInfo(t, pairs(h,
			thread(h, a.ID, "session="+tool.ID))[res.CallID][1]); info.Step.Name != want[prefix] {
			t.Errorf("%s was refused by %+v", tool.ID, info.Step)
		}
	}
	if ran.count() != 0 || len(operations(h)) != 0 {
		t.Errorf("%d ran, %d operations", ran.count(), len(operations(h)))
	}
}

// Every kind of call leaves one action and one result, linked, in its thread.
func TestG02_EveryCallLeavesOneActionAndOneResult(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	var ran counter
	hang := tool("hang", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { <-never; return nil, nil })
	hang.TimeoutMS = 20
	hangLocal := tool("hang_local", reeve.Local, func(context.Context, *reeve.Invocation) (any,
		error) {
		<-never
		return nil, nil
	})
	hangLocal.TimeoutMS = 20
	preview := tool("previewed", reeve.Keyed, ran.handle)
	preview.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: "+1"}, nil
	}
	privileged := tool("privileged", reeve.Unsafe, ran.handle)
	privileged.Tier = reeve.Privileged
	cfg := quick(t)
	h := reevetest.StartWith(t, cfg,
		tool("read", reeve.Read, ran.handle), tool("local", reeve.Local, ran.handle),
		tool("keyed", reeve.Keyed, ran.handle), tool("unsafe", reeve.Unsafe, ran.handle),
		tool("fails", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return nil,
				errors.New("no")
		}),
		tool("fails_local", reeve.Local, func(context.Context, *reeve.Invocation) (any, error) {
			return nil,
				errors.New("no")
		}),
		tool("fails_keyed", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
			return nil,
				errors.New("no")
		}),
		tool("panics", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { panic("boom") }),
		tool("panics_unsafe", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) { panic("boom") }),
		hang, hangLocal, preview, privileged)
	all := []string{"read", "local", "keyed", "unsafe", "fails", "fails_local", "fails_keyed", "panics",
		"panics_unsafe", "hang", "hang_local", "previewed", "privileged"}
	a := h.Agent("a", all...)
	made := 0
	ask := func(c call, headers ...string) reeve.Result {
		made++
		res, p, _ := do(h, a.ID, c, headers...)
		if res.CallID == "" && p.CallID == "" {
			t.Errorf("%v names no call: %+v", c, p)
		}
		return res
	}
	for _, id := range all[:11] {
		if res := ask(call{"tool": id}); res.State == reeve.Unknown { // its result comes with a person's word
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/resolve",
				map[string]any{"resolution": "skip"})
		}
	}
	ask(call{"tool": "previewed", "preview_only": true})
	ask(call{"tool": "read", "args": []int{1}})
	ask(call{"tool": "nope", "args": map[string]any{"any": "thing"}})
	ask(call{"tool": "file_read"})
	first := ask(call{"tool": "keyed"}, "Idempotency-Key", "k")
	again := h.Call(a.ID, "keyed", nil, "Idempotency-Key", "k") // the stored result: no call of its own
	if !again.Replayed || again.CallID != first.CallID {
		t.Errorf("the replay is %+v", again)
	}
	decide(h, ask(call{"tool": "privileged"}).ApprovalID, "approve")
	decide(h, ask(call{"tool": "privileged"}).ApprovalID, "deny")
	h.RunUntilIdle(t.Context())
	got := pairs(h, thread(h, a.ID, ""))
	if len(got) != made {
		t.Errorf("%d calls left %d actions", made, len(got))
	}
	for id, p := range got {
		if p[0].OperationID != p[1].OperationID {
			t.Errorf("the action of %s names operation %q, its result %q", id, p[0].OperationID, p[1].OperationID)
		}
	}
}

// Concurrent calls of one thread leave one chain, in which every action comes before its result.
func TestG02_ConcurrentCallsShareOneChain(t *testing.T) {
	t.Parallel()
	var ran counter
	h := reevetest.Start(t, tool("read", reeve.Read, ran.handle), tool("local", reeve.Local, ran.handle),
		tool("keyed", reeve.Keyed, ran.handle))
	a := h.Agent("a", "read", "local", "keyed")
	done := make(chan error)
	const n = 24
	for i := range n {
		go func() {
			_, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID,
				Tool: []string{"read", "local", "keyed"}[i%3]})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := pairs(h, thread(h, a.ID, "")); len(got) != n {
		t.Errorf("%d calls left %d actions", n, len(got))
	}
}

// A caller that goes away in the middle of a call leaves a whole record all the same.
func TestG02_ACallerThatGoesAwayIsRecorded(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		t.Run(string(effect), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h := reevetest.Start(t, tool("leave", effect, func(context.Context, *reeve.Invocation) (any,
				error) {
				cancel()
				return "done", nil
			}))
			a := h.Agent("a", "leave")
			res, err := h.Host.Call(ctx, reeve.Call{Workspace: "default", Agent: a.ID, Tool: "leave"})
			if err != nil {
				t.Errorf("%+v, %v", res, err)
			}
			if got := pairs(h, thread(h, a.ID, "")); len(got) != 1 {
				t.Errorf("%d actions", len(got))
			}
		})
	}
}

// So does one that goes away while the workspace changes: the call is judged again, and nobody is there for it.
func TestG02_ACallerThatGoesAwayFromAWorkspaceThatChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var h *reevetest.Host
	h = reevetest.Start(t, tool("leave", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		h.Want(http.StatusNoContent, nil, "POST", "/api/resume", map[string]any{"agent": "a"})
		cancel()
		return nil, ctx.Err()
	}))
	a := h.Agent("a", "leave")
	res, err := h.Host.Call(ctx, reeve.Call{Workspace: "default", Agent: a.ID, Tool: "leave"})
	if reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("%+v, %v", res, err)
	}
	if got := pairs(h, thread(h, a.ID, "")); len(got) != 1 || got[res.CallID][0].ID != res.CallID {
		t.Errorf("the call %q left %+v", res.CallID, got)
	}
}

// A tool that is not there, one that is another's and one of another workspace are told apart by nobody.
func TestG03_NotFoundSaysNothingMore(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "read_file")
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	body := map[string]any{"id": "theirs", "description": "d", "effect": "read",
		"parameters": json.RawMessage(anything),
		"spec":       map[string]any{"method": "GET", "url": "https://example.com/"}}
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", body, "X-Workspace-Id", "other")
	body["id"] = "broken"
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", body)
	answer := func(id string, c call) string {
		r := h.Do("POST", "/api/agents/"+a.ID+"/calls", c.with("tool", id))
		var p api.Problem
		r.Decode(t, &p)
		if r.Status != http.StatusNotFound || p.Code != reeve.NotFound {
			t.Errorf("%s: %d %s", id, r.Status, r.Body)
		}
		p.RequestID, p.CallID = "", ""
		b, _ := json.Marshal(p)
		return strings.ReplaceAll(string(b), id, "NAME")
	}
	for _, c := range []call{{}, {"args": map[string]any{"path": "/x"}}, {"args": "not json"}, {"preview_only": true},
		{"tools": []string{"read_file"}}, {"idempotency_key": "k"}} {
		want := answer("missing", c)
		for _, id := range []string{"theirs", "broken", "file_write", "write_file", "MISSING", "read_file ",
			"' OR 1=1 --"} {
			if got := answer(id, c); got != want {
				t.Errorf("%s answers %s, a missing one %s", id, got, want)
			}
		}
	}
}

// schemaCases is what G04 lists, each with the paths that must be named.
var schemaCases = []struct {
	args  string
	paths []string
}{
	{`{}`, []string{"/name"}},
	{`{"name":1.5,"n":"x"}`, []string{"/name", "/n"}},
	{`{"name":"ab","extra":1,"more":2}`, []string{"/extra", "/more"}},
	{`{"name":"ab","kind":"z"}`, []string{"/kind"}},
	{`{"name":"ab","n":0}`, []string{"/n"}},
	{`{"name":"ab","n":11}`, []string{"/n"}},
	{`{"name":"AB"}`, []string{"/name"}},
	{`{"name":"ab","o":{"deep":{"id":"x"}}}`, []string{"/o/deep/id"}},
	{`{"name":"ab","list":[1,"x",3,null]}`, []string{"/list/1", "/list/3"}},
	{`{"name":"ab","list":[]}`, []string{"/list"}},
	{`{"n":"x","kind":"z","o":{"deep":7},"list":[true]}`, []string{"/name", "/n", "/kind", "/o/deep", "/list/0"}},
	{`{"name":"ab","a/b~c":true}`, []string{"/a~1b~0c"}},
}

const strictShape = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
	"name":{"type":"string","pattern":"^[a-z]+$"},"n":{"type":"integer","minimum":1,"maximum":10},"kind":{"enum":["a","b"]},
	"o":{"type":"object","properties":{"deep":{"type":"object","properties":{"id":{"type":"integer"}}}}},
	"list":{"type":"array","minItems":1,"items":{"type":"integer"}}}}`

func TestG04_EveryWrongArgumentIsNamed(t *testing.T) {
	t.Parallel()
	var ran counter
	strict := tool("strict", reeve.Local, ran.handle)
	strict.Parameters = json.RawMessage(strictShape)
	h := reevetest.Start(t, strict)
	a := h.Agent("a", "strict")
	for _, c := range schemaCases {
		_, p, status := do(h, a.ID, call{"tool": "strict", "args": json.RawMessage(c.args)})
		if status != http.StatusBadRequest || p.Code != reeve.Validation {
			t.Errorf("%s: %d %+v", c.args, status, p)
			continue
		}
		got := map[string]bool{}
		for _, f := range p.Errors {
			got[f.Path] = true
			if f.Message == "" || f.Expected == "" {
				t.Errorf("%s: %+v does not say what was expected", c.args, f)
			}
		}
		for _, path := range c.paths {
			if !got[path] {
				t.Errorf("%s: %+v does not name %s", c.args, p.Errors, path)
			}
			if !strings.Contains(p.Detail, path) {
				t.Errorf("%s: a model that reads %q does not see %s", c.args, p.Detail, path)
			}
		}
		if len(got) != len(c.paths) {
			t.Errorf("%s: %+v, want %v", c.args, p.Errors, c.paths)
		}
		info := resultInfo(t, pairs(h, thread(h, a.ID, ""))[p.CallID][1])
		if len(info.Fields) != len(p.Errors) {
			t.Errorf("the record keeps %+v of %+v", info.Fields, p.Errors)
		}
	}
	if ran.count() != 0 {
		t.Errorf("the handler ran %d times", ran.count())
	}
	if res := h.Call(a.ID, "strict", map[string]any{"name": "ab", "n": 1}); res.IsError { // corrected on the next step
		t.Errorf("%+v", res)
	}
}

// A key whose call was refused can be used again: nothing was done with it.
func TestG04_ARefusedCallDoesNotUseUpItsKey(t *testing.T) {
	t.Parallel()
	var ran counter
	strict := tool("strict", reeve.Local, ran.handle)
	strict.Parameters = json.RawMessage(strictShape)
	h := reevetest.Start(t, strict)
	a := h.Agent("a", "strict")
	if _, _, status := do(h, a.ID, call{"tool": "strict"}, "Idempotency-Key", "k"); status != http.StatusBadRequest {
		t.Fatal(status)
	}
	if res := h.Call(a.ID, "strict", map[string]any{"name": "ab"}, "Idempotency-Key", "k"); res.IsError ||
		res.Replayed || ran.count() != 1 {
		t.Errorf("%+v", res)
	}
}

func TestG05_WhatModelsReallySend(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	strict := tool("strict", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		got.Store(string(inv.Args))
		return "ok", nil
	})
	strict.Parameters = json.RawMessage(strictShape)
	h := reevetest.Start(t, strict)
	a := h.Agent("a", "strict")
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		args string
		want string // canonical arguments, or what the error says after !
	}{
		{`{"name":"ab"}`, `{"name":"ab"}`},
		{`{"name":"ab","n":"3"}`, `{"n":3,"name":"ab"}`},
		{`{"name":"ab","n":" 3 "}`, `{"n":3,"name":"ab"}`},
		{`{"name":"ab","n":null}`, `{"name":"ab"}`},
		{`{"name":"ab","o":{"deep":{"id":null}}}`, `{"name":"ab","o":{"deep":{}}}`},
		{`{"name":"ab","o":{"deep":"{\"id\":\"4\"}"}}`, `{"name":"ab","o":{"deep":{"id":4}}}`},
		{`{"name":"ab","list":"[1,\"2\"]"}`, `{"list":[1,2],"name":"ab"}`},
		{`{"name":"ab","list":["1"]}`, `{"list":[1],"name":"ab"}`},
		{`"{\"name\":\"ab\"}"`, `{"name":"ab"}`},
		{`{"name":null}`, `!/name`},
		{`{"name":"ab","n":"3.5"}`, `!/n`},
		{`{"name":"ab","n":"three"}`, `!/n`},
		{`{"name":"ab","n":""}`, `!/n`},
		{`{"name":"ab"`, `!cut off`},
		{`{"name":"ab","list":[1,`, `!cut off`},
		{`{"name":"ab"}{"name":"cd"}`, `!2 JSON values`},
		{"{\"name\":\"ab\"}\n{\"name\":\"cd\"}\n", `!2 JSON values`},
		{`{"name":"ab","name":"cd"}`, `!twice`},
		{`{"name":"ab","n":1e999}`, `!out of range`},
		{`{"name":"ab","n":99999999999999999999}`, `!the arguments are not valid`},
		{`{"name":"\ud83d"}`, `!surrogate`},
		{"{\"name\":\"\xc3\x28\"}", `!UTF-8`},
		{"{\"name\":\"\x00\"}", `!not valid JSON`},
		{`{"name":"\u0000"}`, `!/name`},
		{`{"name":"` + big + `"}`, `{"name":"` + big + `"}`},
		{strings.Repeat(`{"o":`, 500) + `1` + strings.Repeat(`}`, 500), `!nesting`},
		{strings.Repeat(`[`, 1_000_000), `!nesting`},
		{`<tool>strict</tool>`, `!not valid JSON`},
		{"```json\n{\"name\":\"ab\"}\n```", `!not valid JSON`},
		{`{'name':'ab'}`, `!not valid JSON`},
		{`true`, `!an object`},
	} {
		for _, way := range []string{"go", "rest"} {
			var res reeve.Result
			var err error
			if way == "go" {
				res, err = h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "strict",
					Args: json.RawMessage(c.args)})
			} else if strings.ToValidUTF8(c.args, "") == c.args { // text that a model sent, in a request of its own
				r := h.Do("POST", "/api/agents/"+a.ID+"/calls", call{"tool": "strict", "args": c.args})
				if r.Status == http.StatusOK {
					r.Decode(t, &res)
				} else {
					var p api.Problem
					r.Decode(t, &p)
					err = &reeve.Error{Code: p.Code, Message: p.Detail}
					res.CallID = p.CallID
				}
			} else {
				continue
			}
			if res.CallID == "" {
				t.Errorf("%s %.60q: no record: %v", way, c.args, err)
			}
			if want, wrong := strings.CutPrefix(c.want, "!"); wrong {
				if reeve.CodeOf(err) != reeve.Validation || !strings.Contains(reeve.AsError(err).Message, want) {
					t.Errorf("%s %.60q: %.300v, want %s", way, c.args, err, want)
				}
				continue
			}
			if err != nil || got.Load() != c.want {
				t.Errorf("%s %.60q: %.100v, %v, want %.100s", way, c.args, got.Load(), err, c.want)
			}
		}
	}
}

// A model that corrects itself after an error sees, in the thread, what it sent and what was wrong with it, however
// large.
func TestG05_TheRecordOfBrokenArgumentsIsBounded(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "write_file")
	huge := `{"` + strings.Repeat("k", 1<<20) + `":1}`
	res, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "write_file",
		Args: json.RawMessage(huge)})
	if reeve.CodeOf(err) != reeve.Validation {
		t.Fatal(err)
	}
	p := pairs(h, thread(h, a.ID, ""))[res.CallID]
	for i, m := range p {
		if n := len(m.Content) + len(m.Metadata); n > 64<<10 {
			t.Errorf("message %d has %d bytes", i, n)
		}
	}
	if b, _ := json.Marshal(res); len(b) > 64<<10 {
		t.Errorf("the answer has %d bytes", len(b))
	}
}

// What an operator sets is nowhere to be seen: not in schemas, descriptions, errors or messages.
func TestG06_OperatorSettingsStayInside(t *testing.T) {
	t.Parallel()
	const sealed, header, key = "topsecret-value-1", "quiet-header-value",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	w := newWitness(t)
	w.before = func(n int, out http.ResponseWriter, r *http.Request) bool { // a far side that says back all it was told
		out.WriteHeader([]int{200, 400, 500}[n%3])
		fmt.Fprintf(out, "you sent %s and %s", r.Header.Get("X-Key"), r.URL.Query().Get("k"))
		return true
	}
	cfg := quick(t)
	cfg.SecretKey, cfg.OutputCap = key, 4321
	h := reevetest.StartWith(t, cfg)
	h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/KEY", map[string]any{"value": sealed})
	define(h, "post", reeve.Unsafe, map[string]any{"method": "POST", "url": w.URL + "/hook?k=${secret:KEY}",
		"headers": map[string]any{"X-Key": "${secret:KEY}", "X-Other": header}},
		map[string]any{"retry": map[string]any{"attempts": 2, "delay_ms": 1, "max_ms": 1}})
	define(h, "unreachable", reeve.Unsafe, map[string]any{"method": "POST", "url": closedPort + "/hook",
		"headers": map[string]any{"X-Key": "${secret:KEY}"}}, nil)
	a := h.Agent("a", "post", "unreachable")
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/workspace",
		map[string]any{"limit": map[string]any{"calls": 987654}})
	var said []string
	for range 3 {
		said = append(said, string(h.Do("POST", "/api/agents/a/calls", call{"tool": "post"}).Body))
	}
	said = append(said, string(h.Do("POST", "/api/agents/a/calls", call{"tool": "unreachable"}).Body),
		string(h.Do("POST", "/api/agents/a/calls", call{"tool": "post", "args": 5}).Body),
		string(h.Do("GET", "/api/agents/a/messages", nil).Body),
		string(h.Do("GET", "/api/operations", nil).Body),
		string(h.Do("GET", "/api/inbox", nil).Body))
	for _, m := range thread(h, a.ID, "") {
		said = append(said, string(h.Do("GET", "/api/calls/"+m.ID+"/explanation", nil).Body))
	}
	for _, text := range said {
		for _, v := range []string{sealed, header, key, h.Token, w.URL, w.Listener.Addr().String(), "987654", "4321",
			h.Dir()} {
			if strings.Contains(text, v) {
				t.Errorf("%q is in %s", v, text)
			}
		}
	}
	var tools api.ToolList
	h.Want(http.StatusOK, &tools, "GET", "/api/tools", nil)
	for _, v := range tools.Tools { // what a model is given: the spec is for those who define tools
		given := v.Description + string(v.Parameters) + v.ParametersSchema
		for _, value := range []string{sealed, header, key, h.Token, w.URL, h.Dir()} {
			if strings.Contains(given, value) || strings.Contains(string(v.Spec), sealed) {
				t.Errorf("%q is in what a model sees of %s", value, v.ID)
			}
		}
	}
}

// A tool that does not say what its calls do is unsafe, needs approval, and is never sent twice.
func TestG07_NoEffectMeansUnsafe(t *testing.T) {
	t.Parallel()
	var ran counter
	vague := reeve.Tool{ID: "vague", Description: "Does something.", Parameters: json.RawMessage(anything),
		Handler: ran.handle}
	h := reevetest.Start(t, vague)
	define(h, "vague_http", "", map[string]any{"method": "POST", "url": "https://example.com/"},
		map[string]any{"tier": nil, "effect": nil})
	for _, id := range []string{"vague", "vague_http"} {
		var v api.ToolView
		h.Want(http.StatusOK, &v, "GET", "/api/tools/"+id, nil)
		if v.Effect != reeve.Unsafe || v.Tier != reeve.Privileged {
			t.Errorf("%s has effect %q and tier %q", id, v.Effect, v.Tier)
		}
	}
	a := h.Agent("a", "vague")
	if res := h.Call(a.ID, "vague", nil); res.State != reeve.Parked || ran.count() != 0 {
		t.Errorf("%+v after %d runs", res, ran.count())
	}
	if err := h.AddTool(reeve.Tool{ID: "wrong", Description: "d", Effect: "harmless",
		Parameters: json.RawMessage(anything), Handler: ran.handle}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("an effect class of one's own: %v", err)
	}
	if err := h.AddTool(reeve.Tool{ID: "sly", Description: "d", Effect: reeve.Keyed, Tier: reeve.ReadOnly,
		Parameters: json.RawMessage(anything), Handler: ran.handle}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("a mutating tool that calls itself read_only: %v", err)
	}
	if err := h.AddTool(reeve.Tool{ID: "blind", Description: "d", Effect: reeve.Verifiable,
		Parameters: json.RawMessage(anything), Handler: ran.handle}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("a verifiable tool that cannot look: %v", err)
	}
}
