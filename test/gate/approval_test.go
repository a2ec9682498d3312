package gate_test

import (
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
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestG14_APrivilegedCallIsParkedAsARow(t *testing.T) { // not parallel: it counts goroutines
	var g guardedTool
	cfg := kit.FastConfig(t)
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
	res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "args": map[string]any{"b": 2, "a": 1.0},
		"reason": "the boss wants it", "run": "r1"})
	if status != http.StatusAccepted || res.State != reeve.Parked || res.Code != reeve.ApprovalRequired ||
		res.ApprovalID == "" || res.IsError {
		t.Fatalf("%d %+v", status, res)
	}
	// the run is parked
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "run": "r1"}); status != http.StatusConflict ||
		p.Code != reeve.Conflict {
		t.Errorf("another call of the run: %d %+v", status, p)
	}
	h.Stop()
	h = reevetest.StartWith(t, cfg, g.tool())
	var got reeve.Approval
	for _, x := range kit.GetInbox(h).Approvals {
		if x.ID == res.ApprovalID {
			got = x
		}
	}
	if got.Tool != "guarded" || got.Args != `{"a":1,"b":2}` || got.AgentID != a.ID ||
		got.Reason != "the boss wants it" || got.Why == "" ||
		got.Preview != `+ {"a":1,"b":2}` || got.OperationID != res.OperationID || got.State != reeve.ApprovalPending {
		t.Errorf("the inbox shows %+v", got)
	}
	if n := len(kit.GetInbox(h).Approvals); n != 22 || g.ran.Count() != 0 {
		t.Errorf("%d wait, %d ran", n, g.ran.Count())
	}
	kit.Decide(h, res.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	if g.ran.Count() != 1 || g.args.Load() != `{"a":1,"b":2}` || g.op.Load() != res.OperationID {
		t.Errorf("%d ran, with %v as %v", g.ran.Count(), g.args.Load(), g.op.Load())
	}
	// and the run goes on
	if res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "run": "r1"}); status != http.StatusAccepted {
		t.Errorf("%d %+v", status, res)
	}
}

// While an approval is pending, the same call gets the same answer, and another call with the same key is a conflict.
func TestG14_RepeatedCallKeepsItsApproval(t *testing.T) {
	t.Parallel()
	var g guardedTool
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	first := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	again := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	if !again.Replayed || again.ApprovalID != first.ApprovalID || again.State != reeve.Parked ||
		len(kit.GetInbox(h).Approvals) != 1 {
		t.Errorf("%+v, then %+v", first, again)
	}
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "args": map[string]any{"n": 2}},
		"Idempotency-Key",
		"k"); status != http.StatusConflict {
		t.Errorf("%d %+v", status, p)
	}
}

// An approval is valid only for the tool, the policy and the base that the person saw.
func TestG14_ApprovalLapsesAfterAChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *reevetest.Host, a reeve.Agent, g *guardedTool){
		"base": func(_ *reevetest.Host, _ reeve.Agent, g *guardedTool) { g.base.Store("v2") },
		"categories": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, map[string]any{"categories": []string{kit.NewCategory(h, "new")}})
		},
		"policy": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, map[string]any{"policy": map[string]any{"tools": map[string]any{"guarded": "deny"}}})
		},
		"policy to allow": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, map[string]any{
				"policy": map[string]any{"tiers": map[string]any{"privileged": "allow"}}})
		},
		"kind": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, map[string]any{"kind": "reader"})
		},
		"profile": func(h *reevetest.Host, _ reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusOK, nil, "PUT", "/api/profiles/assistant",
				map[string]any{"capabilities": []string{"files.write", "more"}})
		},
		"detached": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
		},
		"settings": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", map[string]any{"tool_id": "guarded",
				"config": map[string]any{"x": 1}})
		},
		"dormant": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, map[string]any{"lifecycle": "dormant"})
		},
		"gone": func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		},
	} {
		for _, order := range []string{"before the answer", "after the answer"} {
			if name == "gone" && order == "before the answer" {
				continue // nobody is asked any more, see below
			}
			t.Run(name+" "+order, func(t *testing.T) {
				var g guardedTool
				h := reevetest.Start(t, g.tool())
				a := h.Agent("a", "guarded", "read_file")
				res := h.Call(a.ID, "guarded", map[string]any{"n": 1})
				if order == "before the answer" {
					change(h, a, &g)
				}
				kit.Decide(h, res.ApprovalID, "approve")
				if order == "after the answer" {
					change(h, a, &g)
				}
				h.RunUntilIdle(t.Context())
				op := kit.GetOperation(h, res.OperationID)
				var got reeve.Approval
				h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+res.ApprovalID, nil)
				if g.ran.Count() != 0 || op.State != reeve.DeniedOp || op.ResultID == "" ||
					got.State != reeve.ApprovalLapsed {
					t.Errorf("%d ran, %+v, %+v", g.ran.Count(), op, got)
				}
				if name == "gone" {
					return
				}
				info := kit.ResultInfo(t, kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID][1])
				if info.Status != "error" || info.Step.Name == "" || info.Message == "" {
					t.Errorf("the thread is told %+v", info)
				}
			})
		}
	}
}

// Pending approvals of an agent lapse when it is removed or destroyed.
func TestG14_ApprovalsOfARemovedAgentLapse(t *testing.T) {
	t.Parallel()
	for name, end := range kit.RemoveAgentBy {
		t.Run(name, func(t *testing.T) {
			var g guardedTool
			h := reevetest.Start(t, g.tool())
			a, other := h.Agent("a", "guarded"), h.Agent("b", "guarded")
			res, stays := h.Call(a.ID, "guarded", map[string]any{"n": 1}),
				h.Call(other.ID, "guarded", map[string]any{"n": 2})
			end(h, a)
			left := kit.GetInbox(h).Approvals
			if len(left) != 1 || left[0].ID != stays.ApprovalID {
				t.Errorf("the inbox has %+v", left)
			}
			var got reeve.Approval
			h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+res.ApprovalID, nil)
			if op := kit.GetOperation(h, res.OperationID); got.State != reeve.ApprovalLapsed ||
				got.Comment != "the agent was "+
					name ||
				op.State != reeve.DeniedOp || op.ResultID == "" {
				t.Errorf("%+v, %+v", got, op)
			}
			h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
				map[string]any{"decision": "approve"})
			kit.Decide(h, stays.ApprovalID, "approve")
			h.RunUntilIdle(t.Context())
			if g.ran.Count() != 1 {
				t.Errorf("%d ran", g.ran.Count())
			}
		})
	}
}

// A tool that changed between request and decision is not the approved one. This holds for defined and for compiled-in
// tools.
func TestG14_ApprovalLapsesWithAnotherToolVersion(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	cfg := kit.FastConfig(t)
	var g guardedTool
	h := reevetest.StartWith(t, cfg, g.tool())
	spec := map[string]any{"method": "POST", "url": w.URL + "/one"}
	kit.DefineHTTPTool(h, "send", reeve.Unsafe, spec, map[string]any{"tier": "privileged"})
	a := h.Agent("a", "send", "guarded")
	sent, compiled := h.Call(a.ID, "send", nil), h.Call(a.ID, "guarded", nil)
	body := map[string]any{"id": "send", "description": "Posts.", "effect": "unsafe", "tier": "privileged",
		"parameters": json.RawMessage(kit.AnyObject),
		"spec":       map[string]any{"method": "POST", "url": w.URL + "/two"}}
	h.Want(http.StatusOK, nil, "PUT", "/api/tools/send", body)
	h.Stop()
	other := g.tool()
	other.Description = "Now does something else."
	h = reevetest.StartWith(t, cfg, other)
	for _, res := range []reeve.Result{sent, compiled} {
		kit.Decide(h, res.ApprovalID, "approve")
	}
	h.RunUntilIdle(t.Context())
	for _, res := range []reeve.Result{sent, compiled} {
		if op := kit.GetOperation(h, res.OperationID); op.State != reeve.DeniedOp || op.Code != reeve.Stale {
			t.Errorf("%+v", op)
		}
	}
	if _, requests := w.Count(); requests != 0 || g.ran.Count() != 0 {
		t.Errorf("%d requests, %d ran", requests, g.ran.Count())
	}
}

// Of several decisions at the same time the first counts, once.
func TestG14_FirstDecisionWins(t *testing.T) {
	t.Parallel()
	var g guardedTool
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	for round := range 4 {
		g.ran.N.Store(0)
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
		if op := kit.GetOperation(h, res.OperationID); won.Load() != 1 || op.State != want || g.ran.Count() != runs {
			t.Errorf("%d answers counted, the last %v, %d ran, %+v", won.Load(), verdict.Load(), g.ran.Count(), op)
		}
	}
	kit.PairCalls(h, kit.ListThread(h, a.ID, ""))
}

// An approval that nobody decides in time is closed, whether or not a client reads it.
func TestG14_ApprovalExpiresAsDenied(t *testing.T) {
	t.Parallel()
	var g guardedTool
	cfg := kit.FastConfig(t)
	cfg.ApprovalTTL = host.Duration(time.Second) // the minimum
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	late, unseen := h.Call(a.ID, "guarded", map[string]any{"n": 1}), h.Call(a.ID, "guarded", map[string]any{"n": 2})
	var asked reeve.Approval
	h.Want(http.StatusOK, &asked, "GET", "/api/approvals/"+late.ApprovalID, nil)
	kit.Eventually(t, "the approval to expire", func() bool { return reeve.Now().After(asked.ExpiresAt) })
	h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+late.ApprovalID+"/decision",
		map[string]any{"decision": "approve"})
	kit.Eventually(t, "the other, which nobody looks at, to expire", func() bool {
		h.RunUntilIdle(t.Context())
		return kit.GetOperation(h, unseen.OperationID).State == reeve.DeniedOp
	})
	for _, res := range []reeve.Result{late, unseen} {
		var got reeve.Approval
		h.Want(http.StatusOK, &got, "GET", "/api/approvals/"+res.ApprovalID, nil)
		if op := kit.GetOperation(h, res.OperationID); got.State != reeve.ApprovalExpired ||
			op.State != reeve.DeniedOp ||
			op.Code != reeve.Denied {
			t.Errorf("%+v, %+v", got, op)
		}
		if info := kit.ResultInfo(t,
			kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID][1]); info.Code != reeve.Denied ||
			!strings.Contains(info.Message, "expired") {
			t.Errorf("the thread is told %+v", info)
		}
	}
	if g.ran.Count() != 0 || len(kit.GetInbox(h).Approvals) != 0 {
		t.Errorf("%d ran, inbox %+v", g.ran.Count(), kit.GetInbox(h))
	}
}

// Approving an approval that was decided, expired or lapsed is a conflict and changes nothing.
func TestG14_DecidingAClosedApprovalIsAConflict(t *testing.T) {
	t.Parallel()
	var g guardedTool
	h := reevetest.StartWith(t, kit.FastConfig(t), g.tool())
	a := h.Agent("a", "guarded")
	denied, lapsed, used := h.Call(a.ID, "guarded", map[string]any{"n": 1}),
		h.Call(a.ID, "guarded", map[string]any{"n": 2}), h.Call(a.ID, "guarded", map[string]any{"n": 3})
	kit.Decide(h, denied.ApprovalID, "deny")
	kit.Decide(h, used.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	kit.Decide(h, lapsed.ApprovalID, "approve")
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
	if h.RunUntilIdle(t.Context()); g.ran.Count() != 1 {
		t.Errorf("%d ran", g.ran.Count())
	}
}

// The model learns that its call was denied and why, but not by whom.
func TestG14_ModelLearnsThatACallWasDenied(t *testing.T) {
	t.Parallel()
	var g guardedTool
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	res := h.Call(a.ID, "guarded", nil, "Idempotency-Key", "k")
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
		map[string]any{"decision": "deny", "comment": "use the other account"})
	p := kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID]
	if info := kit.ResultInfo(t, p[1]); info.Code != reeve.Denied ||
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
	if g.ran.Count() != 0 {
		t.Errorf("%d ran", g.ran.Count())
	}
}

// A call that is repeated after its approval expired is answered or asked about again at once, although the loop that
// closes approvals does not run. No list shows the old approval as pending.
func TestG14_ExpiredApprovalIsSeenWithoutTheLoop(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			var g guardedTool
			cfg := kit.FastConfig(t)
			cfg.ApprovalTTL = host.Duration(time.Second) // the minimum
			if engine == "postgres" {
				cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
			}
			h := reevetest.StartWith(t, cfg, g.tool())
			a := h.Agent("a", "guarded")
			late := func(res reeve.Result) {
				t.Helper()
				kit.Eventually(t, "the approval's time to be over", func() bool {
					var v reeve.Approval
					h.Want(http.StatusOK, &v, "GET", "/api/approvals/"+res.ApprovalID, nil)
					return v.State == reeve.ApprovalExpired
				})
			}
			keyed, inRun := kit.Call{"tool": "guarded", "idempotency_key": "k"}, kit.Call{"tool": "guarded", "run": "r"}
			first, _, _ := kit.TryCall(h, a.ID, keyed)
			late(first)
			var list api.ApprovalList
			h.Want(http.StatusOK, &list, "GET", "/api/approvals?state=pending", nil)
			if op := kit.GetOperation(h, first.OperationID); len(list.Approvals) != 0 || len(kit.GetInbox(h).
				Approvals) != 0 ||
				op.State != reeve.Parked {
				t.Errorf("%+v is pending; %+v", list.Approvals, op)
			}
			if h.Want(http.StatusOK, &list, "GET", "/api/approvals?state=expired", nil); len(list.Approvals) != 1 ||
				list.Approvals[0].State != reeve.ApprovalExpired {
				t.Errorf("%+v has expired", list.Approvals)
			}
			if x := getExplanation(h, first.CallID); x.Approval.State != reeve.ApprovalExpired ||
				!strings.Contains(x.Outcome, "expired") {
				t.Errorf("it is explained as %q, %+v", x.Outcome, x.Approval)
			}
			again, _, _ := kit.TryCall(h, a.ID, keyed)
			if op := kit.GetOperation(h, first.OperationID); again.State != reeve.DeniedOp ||
				again.OperationID != first.OperationID || !strings.Contains(again.Message, "expired") ||
				op.State != reeve.DeniedOp {
				t.Errorf("%+v, %+v", again, op)
			}
			was, _, _ := kit.TryCall(h, a.ID, inRun)
			late(was)
			anew, problem, _ := kit.TryCall(h, a.ID, inRun)
			if anew.State != reeve.Parked || anew.ApprovalID == was.ApprovalID || kit.GetOperation(h, was.OperationID).
				State != reeve.DeniedOp {
				t.Errorf("%+v %+v", anew, problem)
			}
			if g.ran.Count() != 0 {
				t.Errorf("%d ran", g.ran.Count())
			}
		})
	}
}
