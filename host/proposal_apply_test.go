package host_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// What was accepted is judged again when it is applied. If it is not what was proposed it is stale; if the agent may
// not do it any more it is denied; either way nothing is applied, and the proposal says so.
func TestL27_AcceptedIsJudgedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(h *reevetest.Host, a reeve.Agent, g *guarded)
		want   reeve.ProposalState
	}{
		"base": {func(_ *reevetest.Host, _ reeve.Agent, g *guarded) { g.base.Store("v2") }, reeve.ProposalStale},
		"settings": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools",
				object{"tool_id": "guarded", "config": object{"x": 1}})
		}, reeve.ProposalStale},
		"policy": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			patch(h, a, object{"policy": object{"tools": object{"guarded": "deny"}}})
		}, reeve.ProposalDenied},
		"policy to allow": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			patch(h, a, object{"policy": object{"tools": object{"guarded": "allow"}}})
		}, reeve.ProposalApplied},
		"capability": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) { patch(h, a, object{"kind": "reader"}) },
			reeve.ProposalDenied},
		"dormant": {func(h *reevetest.Host, a reeve.Agent,
			_ *guarded) {
			patch(h, a, object{"lifecycle": "dormant"})
		}, reeve.ProposalDenied},
		"gone": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		}, reeve.ProposalDenied},
		"detached": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
		}, reeve.ProposalDenied},
		"budget": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			budget(h, "agent:"+a.ID, object{"limit": object{"calls": 1}})
			do(h, a.ID, call{"tool": "read_file", "args": object{"path": "/none"}}) // uses it up
		}, reeve.ProposalDenied},
	} {
		for _, order := range []string{"before the answer", "after the answer"} {
			t.Run(name+" "+order, func(t *testing.T) {
				var g guarded
				h := reevetest.Start(t, g.tool())
				a := proposer(h, "a", "guarded", "read_file")
				res := h.Call(a.ID, "guarded", object{"n": 1})
				if p := proposal(h, res.ProposalID); p.Base != "v1" || p.Preview != `+ {"n":1}` {
					t.Fatalf("%+v", p)
				}
				if order == "before the answer" {
					c.change(h, a, &g)
				}
				p, problem, status := say(h, res.ProposalID, "accept", "")
				if name == "gone" && order == "before the answer" { // so nobody is asked any more
					if status != 409 || problem.Code != reeve.Stale || !strings.Contains(problem.Detail, "removed") ||
						g.ran.count() != 0 {
						t.Errorf("%d %+v", status, problem)
					}
					return
				}
				if status != 200 {
					t.Fatalf("%d %+v", status, problem)
				}
				if order == "after the answer" {
					c.change(h, a, &g)
				}
				h.RunUntilIdle(t.Context())
				ran := 0
				if c.want == reeve.ProposalApplied {
					ran = 1
				}
				if got := proposal(h, p.ID); got.State != c.want || (ran == 0) != (got.Message != "") ||
					g.ran.count() != ran {
					t.Errorf("%d ran, %+v", g.ran.count(), got)
				}
				if ran == 1 {
					return
				}
				if _, problem, status := say(h, p.ID, "accept", ""); status != 409 ||
					(c.want == reeve.ProposalStale) != (problem.Code == reeve.Stale) {
					t.Errorf("accepted again: %d %+v", status, problem)
				}
				if name == "gone" {
					return
				}
				op := operation(h, p.OperationID)
				if info := resultInfo(t, pairs(h, thread(h, a.ID, ""))[op.CallID][1]); info.Status != "error" ||
					info.Step.Name == "" {
					t.Errorf("the thread is told %+v", info)
				}
			})
		}
	}
}

// A change in our own database is held to its base too. An agent that looks again and proposes the same on another base
// makes a new item, and the old one can be accepted no more.
func TestL27_StaleIsNotApplied(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
		var task reeve.Task
		h.Want(201, &task, "POST", "/api/journal/tasks", object{"category_id": gym.ID, "title": "Squats"})
		a := proposer(h, "coach", "update_task_fields")
		patch(h, a, object{"kind": "planner", "categories": []string{gym.ID}})
		rename := func(title string) {
			h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID,
				object{"title": title})
		}
		title := func() string {
			var got reeve.Task
			h.Want(200, &got, "GET", "/api/journal/tasks/"+task.ID, nil)
			return got.Title
		}
		propose := func() reeve.Proposal {
			return proposal(h, h.Call(a.ID, "update_task_fields", object{"task_id": task.ID, "title": "Deep squats"}).
				ProposalID)
		}
		first := propose()
		if first.Base == "" || !strings.Contains(first.Preview, "Deep squats") {
			t.Fatalf("%+v", first)
		}
		rename("Box squats")
		if _, p, status := say(h, first.ID, "accept", ""); status != 200 {
			t.Fatalf("%d %+v", status, p)
		}
		h.RunUntilIdle(t.Context())
		if got := proposal(h, first.ID); got.State != reeve.ProposalStale ||
			!strings.Contains(got.Message, "out of date") || title() != "Box squats" {
			t.Errorf("%s: %+v", title(), got)
		}
		second := propose()
		rename("Front squats")
		third := propose()
		if second.ID == first.ID || third.ID == second.ID || third.Base == second.Base || propose().ID != third.ID {
			t.Errorf("%+v, then %+v", second, third)
		}
		if _, p, status := say(h, second.ID, "accept", ""); status != 409 || p.Code != reeve.Stale ||
			proposal(h, second.ID).State != reeve.ProposalStale {
			t.Errorf("%d %+v", status, p)
		}
		say(h, third.ID, "accept", "")
		h.RunUntilIdle(t.Context())
		if got := proposal(h, third.ID); got.State != reeve.ProposalApplied || title() != "Deep squats" {
			t.Errorf("%s: %+v", title(), got)
		}
	})
}

// Another version of the tool is not what was proposed.
func TestL27_AnotherToolVersionIsStale(t *testing.T) {
	t.Parallel()
	var g guarded
	cfg := quick(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := proposer(h, "a", "guarded")
	res := h.Call(a.ID, "guarded", object{})
	h.Stop()
	other := g.tool()
	other.Description = "Now does something else."
	h = reevetest.StartWith(t, cfg, other)
	say(h, res.ProposalID, "accept", "")
	h.RunUntilIdle(t.Context())
	if got := proposal(h, res.ProposalID); got.State != reeve.ProposalStale || g.ran.count() != 0 {
		t.Errorf("%d ran, %+v", g.ran.count(), got)
	}
}

// Accepted while everything is stopped, it waits; after a crash it is applied, once.
func TestL27_AcceptedOutlivesAStopAndACrash(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	h := reevetest.StartWith(t, quick(t))
	define(h, "send", reeve.Keyed, object{"method": "POST", "url": w.URL}, nil)
	a := proposer(h, "a", "send")
	id := h.Call(a.ID, "send", object{}).ProposalID
	h.Want(204, nil, "POST", "/api/stop", object{"reason": "lunch"})
	say(h, id, "accept", "")
	h.RunUntilIdle(t.Context())
	if effects, requests := w.total(); effects+requests != 0 || proposal(h, id).State != reeve.ProposalAccepted {
		t.Fatalf("%d effects while stopped, %+v", effects, proposal(h, id))
	}
	h = crashed(h)
	h.Want(204, nil, "POST", "/api/resume", object{})
	h.RunUntilIdle(t.Context())
	say(h, id, "accept", "")
	h.RunUntilIdle(t.Context())
	if effects, requests := w.total(); effects != 1 || requests != 1 || proposal(h, id).State != reeve.ProposalApplied {
		t.Errorf("%d effects by %d requests, %+v", effects, requests, proposal(h, id))
	}
}

// A proposal costs a call, so that budgets bound how much is proposed; one that would ask does not hold it up.
func TestL27_ProposalsAreCounted(t *testing.T) {
	t.Parallel()
	var ran counter
	h := reevetest.Start(t, spender("x", reeve.Keyed, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
	a := proposer(h, "a", "x")
	budget(h, "agent:"+a.ID, object{"limit": object{"calls": 2}})
	first := h.Call(a.ID, "x", object{"n": 1})
	h.Call(a.ID, "x", object{"n": 2})
	if _, p, status := do(h, a.ID, call{"tool": "x", "args": object{"n": 3}}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	if b := budgetOf(h, "agent:"+a.ID); b.Used.Calls != 2 || b.Used.Micros != 0 || !b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
	budget(h, "agent:"+a.ID, object{"limit": object{"calls": 3, "micros": 5}, "on_exceed": "park"})
	if res := h.Call(a.ID, "x", object{"n": 3}); res.ProposalID == "" {
		t.Errorf("%+v", res)
	}
	say(h, first.ProposalID, "accept", "")
	h.RunUntilIdle(t.Context())
	if p := proposal(h, first.ProposalID); p.State != reeve.ProposalAccepted || ran.count() != 0 ||
		len(inbox(h).Approvals) != 1 {
		t.Fatalf("%d ran, %+v", ran.count(), p)
	}
	decide(h, inbox(h).Approvals[0].ID, "approve") // of the budget
	h.RunUntilIdle(t.Context())
	if p := proposal(h, first.ProposalID); p.State != reeve.ProposalApplied || ran.count() != 1 {
		t.Errorf("%d ran, %+v", ran.count(), p)
	}
}

// What a person accepts while the run goes on does not hold the run up, not even when nobody can tell what became of
// it.
func TestL27_TheRunGoesOn(t *testing.T) {
	t.Parallel()
	g := newGatekeeper()
	h := reevetest.Start(t, g.tool(), tool("lose", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	}))
	a := proposer(h, "coach", "hold", "lose", "write_file")
	rehearse(h, a.ID, "done", object{"tool": "lose"}, object{"tool": "hold"}, write("/1.txt", "1"))
	live(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	<-g.reached
	id := proposals(h, "")[0].ID
	say(h, id, "accept", "")
	settle(h, reeve.ProposalKey(id))
	if p := proposal(h, id); p.State != reeve.ProposalUnknown {
		t.Fatalf("%+v", p)
	}
	close(g.open)
	eventually(t, "the run to end", func() bool { return len(runsOf(h, "state=completed")) == 1 })
	if s := changeSet(h, proposal(h, id).SetID); s.Counts[reeve.ProposalPending] != 1 ||
		s.Counts[reeve.ProposalUnknown] != 1 {
		t.Errorf("%+v", s.Counts)
	}
	h.Want(200, nil, "POST", "/api/operations/"+proposal(h, id).OperationID+"/resolve",
		object{"resolution": "happened"})
	if p := proposal(h, id); p.State != reeve.ProposalApplied {
		t.Errorf("%+v", p)
	}
}
