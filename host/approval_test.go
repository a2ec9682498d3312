package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// guarded is a tool whose calls a person approves, with a preview.
type guarded struct {
	ran  counter
	args atomic.Value
	op   atomic.Value
	base atomic.Value
}

func (g *guarded) tool() reeve.Tool {
	g.base.Store("v1")
	t := tool("guarded", reeve.Unsafe, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		g.ran.n.Add(1)
		g.args.Store(string(inv.Args))
		g.op.Store(inv.Operation)
		return "ran", nil
	})
	t.Tier, t.Capability = reeve.Privileged, "files.write"
	t.Preview = func(_ context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: "+ " + string(inv.Args), Base: g.base.Load().(string)}, nil
	}
	t.ConfigSchema = json.RawMessage(anything)
	return t
}

func TestG14_APrivilegedCallIsParkedAsARow(t *testing.T) {
	var g guarded
	cfg := quick(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	h.Call(a.ID, "guarded", map[string]any{"n": 0})
	before := runtime.NumGoroutine()
	for range 20 {
		h.Call(a.ID, "guarded", map[string]any{"n": 1})
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines before, %d after 20 calls were parked", before, after)
	}
	res, _, status := do(h, a.ID, call{"tool": "guarded", "args": map[string]any{"b": 2, "a": 1.0},
		"reason": "the boss wants it", "run": "r1"})
	if status != http.StatusAccepted || res.State != reeve.Parked || res.Code != reeve.ApprovalRequired ||
		res.ApprovalID == "" || res.IsError {
		t.Fatalf("%d %+v", status, res)
	}
	// the run is parked
	if _, p, status := do(h, a.ID, call{"tool": "guarded", "run": "r1"}); status != http.StatusConflict ||
		p.Code != reeve.Conflict {
		t.Errorf("another call of the run: %d %+v", status, p)
	}
	h.Stop()
	h = reevetest.StartWith(t, cfg, g.tool())
	var got reeve.Approval
	for _, x := range inbox(h).Approvals {
		if x.ID == res.ApprovalID {
			got = x
		}
	}
	if got.Tool != "guarded" || got.Args != `{"a":1,"b":2}` || got.AgentID != a.ID ||
		got.Reason != "the boss wants it" || got.Why == "" ||
		got.Preview != `+ {"a":1,"b":2}` || got.OperationID != res.OperationID || got.State != reeve.ApprovalPending {
		t.Errorf("the inbox shows %+v", got)
	}
	if n := len(inbox(h).Approvals); n != 22 || g.ran.count() != 0 {
		t.Errorf("%d wait, %d ran", n, g.ran.count())
	}
	decide(h, res.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	if g.ran.count() != 1 || g.args.Load() != `{"a":1,"b":2}` || g.op.Load() != res.OperationID {
		t.Errorf("%d ran, with %v as %v", g.ran.count(), g.args.Load(), g.op.Load())
	}
	// and the run goes on
	if res, _, status := do(h, a.ID, call{"tool": "guarded", "run": "r1"}); status != http.StatusAccepted {
		t.Errorf("%d %+v", status, res)
	}
}

// While it waits, the same call gives the same answer, and the same key for another is a conflict.
func TestG14_AskingAgainAsksOnce(t *testing.T) {
	t.Parallel()
	var g guarded
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	first := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	again := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	if !again.Replayed || again.ApprovalID != first.ApprovalID || again.State != reeve.Parked ||
		len(inbox(h).Approvals) != 1 {
		t.Errorf("%+v, then %+v", first, again)
	}
	if _, p, status := do(h, a.ID, call{"tool": "guarded", "args": map[string]any{"n": 2}}, "Idempotency-Key",
		"k"); status != http.StatusConflict {
		t.Errorf("%d %+v", status, p)
	}
}

// An approval holds for what was shown: the tool, the policy and the base as they were.
func TestG14_AnApprovalLapsesWhenWhatItWasGivenForChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *reevetest.Host, a reeve.Agent, g *guarded){
		"base": func(_ *reevetest.Host, _ reeve.Agent, g *guarded) { g.base.Store("v2") },
		"categories": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			patch(h, a, map[string]any{"categories": []string{category(h, "new")}})
		},
		"policy": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			patch(h, a, map[string]any{"policy": map[string]any{"tools": map[string]any{"guarded": "deny"}}})
		},
		"policy to allow": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			patch(h, a, map[string]any{"policy": map[string]any{"tiers": map[string]any{"privileged": "allow"}}})
		},
		"kind": func(h *reevetest.Host, a reeve.Agent, _ *guarded) { patch(h, a, map[string]any{"kind": "reader"}) },
		"profile": func(h *reevetest.Host, _ reeve.Agent, _ *guarded) {
			h.Want(http.StatusOK, nil, "PUT", "/api/profiles/assistant",
				map[string]any{"capabilities": []string{"files.write", "more"}})
		},
		"detached": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
		},
		"settings": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", map[string]any{"tool_id": "guarded",
				"config": map[string]any{"x": 1}})
		},
		"dormant": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			patch(h, a, map[string]any{"lifecycle": "dormant"})
		},
		"gone": func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		},
	} {
		for _, order := range []string{"before the answer", "after the answer"} {
			if name == "gone" && order == "before the answer" {
				continue // nobody is asked any more, see below
			}
			t.Run(name+" "+order, func(t *testing.T) {
				var g guarded
				h := reevetest.Start(t, g.tool())
				a := h.Agent("a", "guarded", "read_file")
				res := h.Call(a.ID, "guarded", map[string]any{"n": 1})
				if order == "before the answer" {
					change(h, a, &g)
				}
				decide(h, res.ApprovalID, "approve")
				if order == "after the answer" {
					change(h, a, &g)
				}
				h.RunUntilIdle(t.Context())
				op := operation(h, res.OperationID)
				var got reeve.Approval
				h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+res.ApprovalID, nil)
				if g.ran.count() != 0 || op.State != reeve.DeniedOp || op.ResultID == "" ||
					got.State != reeve.ApprovalLapsed {
					t.Errorf("%d ran, %+v, %+v", g.ran.count(), op, got)
				}
				if name == "gone" {
					return
				}
				info := resultInfo(t, pairs(h, thread(h, a.ID, ""))[res.CallID][1])
				if info.Status != "error" || info.Step.Name == "" || info.Message == "" {
					t.Errorf("the thread is told %+v", info)
				}
			})
		}
	}
}

// Nobody is asked about what an agent wanted that is gone.
func TestG14_TheApprovalsOfAnAgentThatIsGoneLapse(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			var g guarded
			h := reevetest.Start(t, g.tool())
			a, other := h.Agent("a", "guarded"), h.Agent("b", "guarded")
			res, stays := h.Call(a.ID, "guarded", map[string]any{"n": 1}),
				h.Call(other.ID, "guarded", map[string]any{"n": 2})
			end(h, a)
			left := inbox(h).Approvals
			if len(left) != 1 || left[0].ID != stays.ApprovalID {
				t.Errorf("the inbox has %+v", left)
			}
			var got reeve.Approval
			h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+res.ApprovalID, nil)
			if op := operation(h, res.OperationID); got.State != reeve.ApprovalLapsed ||
				got.Comment != "the agent was "+name ||
				op.State != reeve.DeniedOp || op.ResultID == "" {
				t.Errorf("%+v, %+v", got, op)
			}
			h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
				map[string]any{"decision": "approve"})
			decide(h, stays.ApprovalID, "approve")
			h.RunUntilIdle(t.Context())
			if g.ran.count() != 1 {
				t.Errorf("%d ran", g.ran.count())
			}
		})
	}
}

func patch(h *reevetest.Host, a reeve.Agent, body map[string]any) {
	h.T.Helper()
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID, body)
}

// A tool that was changed between asking and answering is not the one that was approved: defined ones and compiled-in
// ones.
func TestG14_AnotherToolVersionIsNotApproved(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	cfg := quick(t)
	var g guarded
	h := reevetest.StartWith(t, cfg, g.tool())
	spec := map[string]any{"method": "POST", "url": w.URL + "/one"}
	define(h, "send", reeve.Unsafe, spec, map[string]any{"tier": "privileged"})
	a := h.Agent("a", "send", "guarded")
	sent, compiled := h.Call(a.ID, "send", nil), h.Call(a.ID, "guarded", nil)
	body := map[string]any{"id": "send", "description": "Posts.", "effect": "unsafe", "tier": "privileged",
		"parameters": json.RawMessage(anything),
		"spec":       map[string]any{"method": "POST", "url": w.URL + "/two"}}
	h.Want(http.StatusOK, nil, "PUT", "/api/tools/send", body)
	h.Stop()
	other := g.tool()
	other.Description = "Now does something else."
	h = reevetest.StartWith(t, cfg, other)
	for _, res := range []reeve.Result{sent, compiled} {
		decide(h, res.ApprovalID, "approve")
	}
	h.RunUntilIdle(t.Context())
	for _, res := range []reeve.Result{sent, compiled} {
		if op := operation(h, res.OperationID); op.State != reeve.DeniedOp || op.Code != reeve.Stale {
			t.Errorf("%+v", op)
		}
	}
	if _, requests := w.total(); requests != 0 || g.ran.count() != 0 {
		t.Errorf("%d requests, %d ran", requests, g.ran.count())
	}
}

// The first answer counts, whoever else answers at the same time, and it counts once.
func TestG14_TheFirstAnswerWins(t *testing.T) {
	t.Parallel()
	var g guarded
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	for round := range 4 {
		g.ran.n.Store(0)
		res := h.Call(a.ID, "guarded", map[string]any{"round": round})
		var wg sync.WaitGroup
		var won atomic.Int64
		var verdict atomic.Value
		for i := range 12 {
			wg.Go(func() {
				d := []string{"approve", "deny"}[(i+round)%2]
				r := h.Do("POST", "/api/approvals/"+res.ApprovalID+"/decision", map[string]any{"decision": d})
				switch r.Status {
				case http.StatusOK:
					won.Add(1)
					verdict.Store(d)
				case http.StatusConflict:
				default:
					t.Errorf("status %d: %s", r.Status, r.Body)
				}
			})
			wg.Go(func() {
				if _, err := h.Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		h.RunUntilIdle(t.Context())
		want, runs := reeve.DeniedOp, 0
		if verdict.Load() == "approve" {
			want, runs = reeve.Committed, 1
		}
		if op := operation(h, res.OperationID); won.Load() != 1 || op.State != want || g.ran.count() != runs {
			t.Errorf("%d answers counted, the last %v, %d ran, %+v", won.Load(), verdict.Load(), g.ran.count(), op)
		}
	}
	pairs(h, thread(h, a.ID, ""))
}

// What nobody answers in time is closed, whether anybody looks or not.
func TestG14_AnApprovalExpiresClosed(t *testing.T) {
	t.Parallel()
	var g guarded
	cfg := quick(t)
	cfg.ApprovalTTL = host.Duration(time.Second) // the least there is
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	late, unseen := h.Call(a.ID, "guarded", map[string]any{"n": 1}), h.Call(a.ID, "guarded", map[string]any{"n": 2})
	var asked reeve.Approval
	h.Want(http.StatusOK, &asked, "GET", "/api/approvals/"+late.ApprovalID, nil)
	eventually(t, "the approval to expire", func() bool { return reeve.Now().After(asked.ExpiresAt) })
	h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+late.ApprovalID+"/decision",
		map[string]any{"decision": "approve"})
	eventually(t, "the other, which nobody looks at, to expire", func() bool {
		h.RunUntilIdle(t.Context())
		return operation(h, unseen.OperationID).State == reeve.DeniedOp
	})
	for _, res := range []reeve.Result{late, unseen} {
		var got reeve.Approval
		h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+res.ApprovalID, nil)
		if op := operation(h, res.OperationID); got.State != reeve.ApprovalExpired || op.State != reeve.DeniedOp ||
			op.Code != reeve.Denied {
			t.Errorf("%+v, %+v", got, op)
		}
		if info := resultInfo(t, pairs(h, thread(h, a.ID, ""))[res.CallID][1]); info.Code != reeve.Denied ||
			!strings.Contains(info.Message, "expired") {
			t.Errorf("the thread is told %+v", info)
		}
	}
	if g.ran.count() != 0 || len(inbox(h).Approvals) != 0 {
		t.Errorf("%d ran, inbox %+v", g.ran.count(), inbox(h))
	}
}

// Approving what was decided, has expired or has lapsed is a conflict, and changes nothing.
func TestG14_AVoidApprovalIsAConflict(t *testing.T) {
	t.Parallel()
	var g guarded
	h := reevetest.StartWith(t, quick(t), g.tool())
	a := h.Agent("a", "guarded")
	denied, lapsed, used := h.Call(a.ID, "guarded", map[string]any{"n": 1}),
		h.Call(a.ID, "guarded", map[string]any{"n": 2}), h.Call(a.ID, "guarded", map[string]any{"n": 3})
	decide(h, denied.ApprovalID, "deny")
	decide(h, used.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	decide(h, lapsed.ApprovalID, "approve")
	g.base.Store("v2")
	h.RunUntilIdle(t.Context())
	for _, c := range []struct {
		id   string
		want reeve.ApprovalState
		says string
	}{{denied.ApprovalID, reeve.ApprovalDenied, "decided already"}, {lapsed.ApprovalID, reeve.ApprovalLapsed,
		"has lapsed"},
		{used.ApprovalID, reeve.ApprovalApproved, "decided already"}} {
		for _, decision := range []string{"approve", "deny"} {
			var p api.Problem
			if h.Want(http.StatusConflict, &p, "POST", "/api/approvals/"+c.id+"/decision",
				map[string]any{"decision": decision}); !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s is told %q", c.want, p.Detail)
			}
		}
		var got reeve.Approval
		h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+c.id, nil)
		if got.State != c.want {
			t.Errorf("%+v, want it %s", got, c.want)
		}
	}
	if h.RunUntilIdle(t.Context()); g.ran.count() != 1 {
		t.Errorf("%d ran", g.ran.count())
	}
}

// The model is told that it was denied, by whom it cannot tell, and why if the person said so.
func TestG14_DeniedIsToldToTheModel(t *testing.T) {
	t.Parallel()
	var g guarded
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	res := h.Call(a.ID, "guarded", nil, "Idempotency-Key", "k")
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
		map[string]any{"decision": "deny", "comment": "use the other account"})
	p := pairs(h, thread(h, a.ID, ""))[res.CallID]
	if info := resultInfo(t, p[1]); info.Code != reeve.Denied ||
		!strings.Contains(p[1].Content, "use the other account") || info.Step.Name != "approval" {
		t.Errorf("%q %+v", p[1].Content, info)
	}
	again := h.Call(a.ID, "guarded", nil, "Idempotency-Key", "k")
	if !again.Replayed || !again.IsError || again.Code != reeve.Denied || again.State != reeve.DeniedOp {
		t.Errorf("the same call again: %+v", again)
	}
	h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
		map[string]any{"decision": "approve"})
	h.RunUntilIdle(t.Context())
	if g.ran.count() != 0 {
		t.Errorf("%d ran", g.ran.count())
	}
}

func TestG15_AnApprovedCallRunsAfterARestartOnce(t *testing.T) {
	t.Parallel()
	var g guarded
	cfg := quick(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	res := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	decide(h, res.ApprovalID, "approve") // and the server stops before it is run
	h.Stop()
	h = reevetest.StartWith(t, cfg, g.tool())
	var wg sync.WaitGroup
	for range 8 { // whoever takes it up, one does
		wg.Go(func() {
			if _, err := h.Step(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	op := operation(h, res.OperationID)
	if g.ran.count() != 1 || g.op.Load() != res.OperationID || op.State != reeve.Committed || op.CallID != res.CallID {
		t.Errorf("%d ran as %v, %+v", g.ran.count(), g.op.Load(), op)
	}
	h.Stop()
	h = reevetest.StartWith(t, cfg, g.tool())
	h.RunUntilIdle(t.Context())
	again := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	if g.ran.count() != 1 || !again.Replayed || again.Content != "ran" || again.State != reeve.Committed {
		t.Errorf("%d ran, %+v", g.ran.count(), again)
	}
	h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
		map[string]any{"decision": "approve"})
	pairs(h, thread(h, a.ID, ""))
}

// An approved call that was under way when the server died is not run again: its outcome is unknown.
func TestG15_AnApprovalIsUsedOnce(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	var ran counter
	hang := tool("hang", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		if ran.n.Add(1) == 1 {
			close(started)
			<-release
		}
		return "ran", nil
	})
	hang.Tier = reeve.Privileged
	h := reevetest.StartWith(t, quick(t), hang)
	a := h.Agent("a", "hang")
	res := h.Call(a.ID, "hang", nil)
	decide(h, res.ApprovalID, "approve")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = h.Step(t.Context()) })
	t.Cleanup(func() { close(release); wg.Wait() })
	<-started
	after := crashed(h, hang)
	if op := settle(after, res.OperationID); op.State != reeve.Unknown || ran.count() != 1 {
		t.Errorf("%d ran, %+v", ran.count(), op)
	}
}

// A person decides while the same call is being answered from what is recorded: the answer is of one moment, and not
// the state of one with the result of another.
func TestG15_TheSameCallWhileAPersonDenies(t *testing.T) {
	t.Parallel()
	between := func() {}
	slow := tool("slow", reeve.Unsafe, new(counter).handle)
	slow.Tier = reeve.Privileged
	// after the operation was read, and before its result is
	slow.Check = func(context.Context, *reeve.Invocation) error { between(); return nil }
	h := reevetest.StartWith(t, quick(t), slow)
	a := h.Agent("a", "slow")
	first, _, status := do(h, a.ID, call{"tool": "slow"}, "Idempotency-Key", "k")
	if status != http.StatusAccepted || first.State != reeve.Parked {
		t.Fatalf("%d %+v", status, first)
	}
	between = func() { between = func() {}; decide(h, first.ApprovalID, "deny") }
	if res, _, status := do(h, a.ID, call{"tool": "slow"}, "Idempotency-Key", "k"); status != http.StatusOK ||
		res.State != reeve.DeniedOp || res.Code != reeve.Denied || !res.Replayed {
		t.Errorf("%d %+v", status, res)
	}
}

// A server that runs takes up what is approved by itself.
func TestG15_ARunningServerTakesItUp(t *testing.T) {
	t.Parallel()
	var g guarded
	cfg := quick(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	res := h.Call(a.ID, "guarded", nil)
	h.Stop()
	cfg.Listen = "127.0.0.1:0"
	live, err := host.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := live.AddTool(g.tool()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- live.Run(ctx, func(url string) { ready <- url }) }()
	url := <-ready
	post := func(path, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.Token)
		req.Header.Set("X-Workspace-Id", "default")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if status := post("/api/approvals/"+res.ApprovalID+"/decision", `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatal(status)
	}
	eventually(t, "the approved call to run", func() bool { return g.ran.count() == 1 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	h = reevetest.StartWith(t, cfg, g.tool())
	h.RunUntilIdle(t.Context())
	if op := operation(h, res.OperationID); op.State != reeve.Committed || g.ran.count() != 1 {
		t.Errorf("%d ran, %+v", g.ran.count(), op)
	}
}

// A preview writes nothing, shows the exact change, and its base is what applying it is held to.
func TestG16_APreviewChangesNothing(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "file_write", "file_edit", "file_delete", "file_read")
	write := func(c call) (reeve.Result, api.Problem, int) { return do(h, a.ID, c.with("tool", "file_write")) }
	args := func(s string) map[string]any {
		return map[string]any{"path": "/shared/a.txt", "content": s, "overwrite": true}
	}
	read := func() string {
		res, _, _ := do(h, a.ID, call{"tool": "file_read", "args": map[string]any{"path": "/shared/a.txt"}})
		return res.Content
	}
	missing := read()
	shown, _, status := write(call{"args": args("one\n"), "preview_only": true})
	if status != http.StatusOK || !shown.Preview || shown.Base == "" || !strings.Contains(shown.Content, "one") ||
		shown.OperationID != "" {
		t.Fatalf("%d %+v", status, shown)
	}
	if read() != missing || len(operations(h)) != 0 {
		t.Errorf("after a preview there is %q, and %d operations", read(), len(operations(h)))
	}
	if res, _, _ := write(call{"args": args("one\n"), "base": shown.Base}); res.State != reeve.Committed {
		t.Fatalf("%+v", res)
	}
	if _, p, status := write(call{"args": args("two\n"), "base": shown.Base}); status != http.StatusConflict ||
		p.Code != reeve.Stale {
		t.Errorf("with a stale base: %d %+v", status, p)
	}
	second, _, _ := write(call{"args": args("two\n"), "preview_only": true})
	if !strings.Contains(second.Content, "-one") || !strings.Contains(second.Content, "+two") {
		t.Errorf("the diff is %q", second.Content)
	}
	if res, _, _ := write(call{"args": args("meanwhile\n")}); res.State != reeve.Committed {
		t.Fatalf("%+v", res)
	}
	if _, p, status := write(call{"args": args("two\n"), "base": second.Base}); status != http.StatusConflict ||
		p.Code != reeve.Stale || read() == missing {
		t.Errorf("%d %+v", status, p)
	}
	if !strings.Contains(read(), "meanwhile") {
		t.Errorf("the file holds %q", read())
	}
	for _, c := range []call{{"tool": "file_delete", "args": map[string]any{"path": "/shared/a.txt"}}} {
		res, p, status := do(h, a.ID, c.with("preview_only", true))
		if status != http.StatusOK || !res.Preview || !strings.Contains(read(), "meanwhile") {
			t.Errorf("%v: %d %+v %+v", c, status, res, p)
		}
	}
	if _, p, status := do(h, a.ID, call{"tool": "file_read", "args": map[string]any{"path": "/shared/a.txt"},
		"preview_only": true}); status != http.StatusNotImplemented || p.Code != reeve.Unsupported {
		t.Errorf("a preview of a tool that has none: %d %+v", status, p)
	}
}

// A preview asks nobody, but does not get around who may do what.
func TestG16_APreviewNeedsNoApprovalButIsJudged(t *testing.T) {
	t.Parallel()
	var g guarded
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	res, _, status := do(h, a.ID, call{"tool": "guarded", "preview_only": true, "idempotency_key": "k"})
	if status != http.StatusOK || !res.Preview || len(inbox(h).Approvals) != 0 {
		t.Errorf("%d %+v", status, res)
	}
	// the key is still free
	if res := h.Call(a.ID, "guarded", nil, "Idempotency-Key", "k"); res.Replayed || res.State != reeve.Parked {
		t.Errorf("%+v", res)
	}
	patch(h, a, map[string]any{"policy": map[string]any{"tools": map[string]any{"guarded": "deny"}}})
	if _, p, status := do(h, a.ID, call{"tool": "guarded", "preview_only": true}); status != http.StatusForbidden ||
		p.Code != reeve.Denied {
		t.Errorf("%d %+v", status, p)
	}
	if g.ran.count() != 0 {
		t.Errorf("%d ran", g.ran.count())
	}
}
