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
				Object{"tool_id": "guarded", "config": Object{"x": 1}})
		}, reeve.ProposalStale},
		"policy": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			UpdateAgent(h, a, Object{"policy": Object{"tools": Object{"guarded": "deny"}}})
		}, reeve.ProposalDenied},
		"policy to allow": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			UpdateAgent(h, a, Object{"policy": Object{"tools": Object{"guarded": "allow"}}})
		}, reeve.ProposalApplied},
		"capability": {func(h *reevetest.Host, a reeve.Agent,
			_ *guarded) {
			UpdateAgent(h, a, Object{"kind": "reader"})
		},
			reeve.ProposalDenied},
		"dormant": {func(h *reevetest.Host, a reeve.Agent,
			_ *guarded) {
			UpdateAgent(h, a, Object{"lifecycle": "dormant"})
		}, reeve.ProposalDenied},
		"gone": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		}, reeve.ProposalDenied},
		"detached": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
		}, reeve.ProposalDenied},
		"budget": {func(h *reevetest.Host, a reeve.Agent, _ *guarded) {
			SetBudget(h, "agent:"+a.ID, Object{"limit": Object{"calls": 1}})
			TryCall(h, a.ID, Call{"tool": "read_file", "args": Object{"path": "/none"}}) // uses it up
		}, reeve.ProposalDenied},
	} {
		for _, order := range []string{"before the answer", "after the answer"} {
			t.Run(name+" "+order, func(t *testing.T) {
				var g guarded
				h := reevetest.Start(t, g.tool())
				a := proposer(h, "a", "guarded", "read_file")
				res := h.Call(a.ID, "guarded", Object{"n": 1})
				if p := GetProposal(h, res.ProposalID); p.Base != "v1" || p.Preview != `+ {"n":1}` {
					t.Fatalf("%+v", p)
				}
				if order == "before the answer" {
					c.change(h, a, &g)
				}
				p, problem, status := DecideProposal(h, res.ProposalID, "accept", "")
				if name == "gone" && order == "before the answer" { // so nobody is asked any more
					if status != 409 || problem.Code != reeve.Stale || !strings.Contains(problem.Detail, "removed") ||
						g.ran.Count() != 0 {
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
				h.Settle(t.Context())
				ran := 0
				if c.want == reeve.ProposalApplied {
					ran = 1
				}
				if got := GetProposal(h, p.ID); got.State != c.want || (ran == 0) != (got.Message != "") ||
					g.ran.Count() != ran {
					t.Errorf("%d ran, %+v", g.ran.Count(), got)
				}
				if ran == 1 {
					return
				}
				if _, problem, status := DecideProposal(h, p.ID, "accept", ""); status != 409 ||
					(c.want == reeve.ProposalStale) != (problem.Code == reeve.Stale) {
					t.Errorf("accepted again: %d %+v", status, problem)
				}
				if name == "gone" {
					return
				}
				op := GetOperation(h, p.OperationID)
				if info := ResultInfo(t, PairCalls(h, ListThread(h, a.ID, ""))[op.CallID][1]); info.Status != "error" ||
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
	StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", Object{"name": "Gym"})
		var task reeve.Task
		h.Want(201, &task, "POST", "/api/journal/tasks", Object{"category_id": gym.ID, "title": "Squats"})
		a := proposer(h, "coach", "update_task_fields")
		UpdateAgent(h, a, Object{"kind": "planner", "categories": []string{gym.ID}})
		rename := func(title string) {
			h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID,
				Object{"title": title})
		}
		title := func() string {
			var got reeve.Task
			h.Want(200, &got, "GET", "/api/journal/tasks/"+task.ID, nil)
			return got.Title
		}
		propose := func() reeve.Proposal {
			return GetProposal(h, h.Call(a.ID, "update_task_fields",
				Object{"task_id": task.ID, "title": "Deep squats"}).
				ProposalID)
		}
		first := propose()
		if first.Base == "" || !strings.Contains(first.Preview, "Deep squats") {
			t.Fatalf("%+v", first)
		}
		rename("Box squats")
		if _, p, status := DecideProposal(h, first.ID, "accept", ""); status != 200 {
			t.Fatalf("%d %+v", status, p)
		}
		h.Settle(t.Context())
		if got := GetProposal(h, first.ID); got.State != reeve.ProposalStale ||
			!strings.Contains(got.Message, "out of date") || title() != "Box squats" {
			t.Errorf("%s: %+v", title(), got)
		}
		second := propose()
		rename("Front squats")
		third := propose()
		if second.ID == first.ID || third.ID == second.ID || third.Base == second.Base || propose().ID != third.ID {
			t.Errorf("%+v, then %+v", second, third)
		}
		if _, p, status := DecideProposal(h, second.ID, "accept", ""); status != 409 || p.Code != reeve.Stale ||
			GetProposal(h, second.ID).State != reeve.ProposalStale {
			t.Errorf("%d %+v", status, p)
		}
		DecideProposal(h, third.ID, "accept", "")
		h.Settle(t.Context())
		if got := GetProposal(h, third.ID); got.State != reeve.ProposalApplied || title() != "Deep squats" {
			t.Errorf("%s: %+v", title(), got)
		}
	})
}

// Another version of the tool is not what was proposed.
func TestL27_AnotherToolVersionIsStale(t *testing.T) {
	t.Parallel()
	var g guarded
	cfg := FastConfig(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := proposer(h, "a", "guarded")
	res := h.Call(a.ID, "guarded", Object{})
	h.Stop()
	other := g.tool()
	other.Description = "Now does something else."
	h = reevetest.StartWith(t, cfg, other)
	DecideProposal(h, res.ProposalID, "accept", "")
	h.Settle(t.Context())
	if got := GetProposal(h, res.ProposalID); got.State != reeve.ProposalStale || g.ran.Count() != 0 {
		t.Errorf("%d ran, %+v", g.ran.Count(), got)
	}
}

// Accepted while everything is stopped, it waits; after a crash it is applied, once.
func TestL27_AcceptedOutlivesAStopAndACrash(t *testing.T) {
	t.Parallel()
	w := NewWitness(t)
	h := reevetest.StartWith(t, FastConfig(t))
	DefineHTTPTool(h, "send", reeve.Keyed, Object{"method": "POST", "url": w.URL}, nil)
	a := proposer(h, "a", "send")
	id := h.Call(a.ID, "send", Object{}).ProposalID
	h.Want(204, nil, "POST", "/api/stop", Object{"reason": "lunch"})
	DecideProposal(h, id, "accept", "")
	h.Settle(t.Context())
	if effects, requests := w.Count(); effects+requests != 0 || GetProposal(h, id).State != reeve.ProposalAccepted {
		t.Fatalf("%d effects while stopped, %+v", effects, GetProposal(h, id))
	}
	h = RestartAfterCrash(h)
	h.Want(204, nil, "POST", "/api/resume", Object{})
	h.Settle(t.Context())
	DecideProposal(h, id, "accept", "")
	h.Settle(t.Context())
	if effects, requests := w.Count(); effects != 1 || requests != 1 || GetProposal(h, id).
		State != reeve.ProposalApplied {
		t.Errorf("%d effects by %d requests, %+v", effects, requests, GetProposal(h, id))
	}
}

// A proposal costs a call, so that budgets bound how much is proposed; one that would ask does not hold it up.
func TestL27_ProposalsAreCounted(t *testing.T) {
	t.Parallel()
	var ran Counter
	h := reevetest.Start(t, spender("x", reeve.Keyed, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
	a := proposer(h, "a", "x")
	SetBudget(h, "agent:"+a.ID, Object{"limit": Object{"calls": 2}})
	first := h.Call(a.ID, "x", Object{"n": 1})
	h.Call(a.ID, "x", Object{"n": 2})
	if _, p, status := TryCall(h, a.ID,
		Call{"tool": "x", "args": Object{"n": 3}}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	if b := GetBudget(h, "agent:"+a.ID); b.Used.Calls != 2 || b.Used.Micros != 0 || !b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
	SetBudget(h, "agent:"+a.ID, Object{"limit": Object{"calls": 3, "micros": 5}, "on_exceed": "park"})
	if res := h.Call(a.ID, "x", Object{"n": 3}); res.ProposalID == "" {
		t.Errorf("%+v", res)
	}
	DecideProposal(h, first.ProposalID, "accept", "")
	h.Settle(t.Context())
	if p := GetProposal(h, first.ProposalID); p.State != reeve.ProposalAccepted || ran.Count() != 0 ||
		len(GetInbox(h).Approvals) != 1 {
		t.Fatalf("%d ran, %+v", ran.Count(), p)
	}
	Decide(h, GetInbox(h).Approvals[0].ID, "approve") // of the budget
	h.Settle(t.Context())
	if p := GetProposal(h, first.ProposalID); p.State != reeve.ProposalApplied || ran.Count() != 1 {
		t.Errorf("%d ran, %+v", ran.Count(), p)
	}
}

// What a person accepts while the run goes on does not hold the run up, not even when nobody can tell what became of
// it.
func TestL27_TheRunGoesOn(t *testing.T) {
	t.Parallel()
	g := NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), Tool("lose", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	}))
	a := proposer(h, "coach", "hold", "lose", "write_file")
	SetRehearsal(h, a.ID, "done", Object{"tool": "lose"}, Object{"tool": "hold"}, WriteFileStep("/1.txt", "1"))
	StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", Object{})
	<-g.Reached
	id := ListProposals(h, "")[0].ID
	DecideProposal(h, id, "accept", "")
	finishOperation(h, reeve.ProposalKey(id))
	if p := GetProposal(h, id); p.State != reeve.ProposalUnknown {
		t.Fatalf("%+v", p)
	}
	close(g.Release)
	Eventually(t, "the run to end", func() bool { return len(ListRuns(h, "state=completed")) == 1 })
	if s := changeSet(h, GetProposal(h, id).SetID); s.Counts[reeve.ProposalPending] != 1 ||
		s.Counts[reeve.ProposalUnknown] != 1 {
		t.Errorf("%+v", s.Counts)
	}
	h.Want(200, nil, "POST", "/api/operations/"+GetProposal(h, id).OperationID+"/resolve",
		Object{"resolution": "happened"})
	if p := GetProposal(h, id); p.State != reeve.ProposalApplied {
		t.Errorf("%+v", p)
	}
}
