package gate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An accepted proposal is decided again when it is applied. If it changed, it is stale; if the agent lost the right, it
// is denied. Nothing is applied then, and the proposal says so.
func TestL27_AcceptedProposalIsDecidedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(h *reevetest.Host, a reeve.Agent, g *guardedTool)
		want   reeve.ProposalState
	}{
		"base": {func(_ *reevetest.Host, _ reeve.Agent, g *guardedTool) { g.base.Store("v2") }, reeve.ProposalStale},
		"settings": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools",
				kit.Object{"tool_id": "guarded", "config": kit.Object{"x": 1}})
		}, reeve.ProposalStale},
		"policy": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{"tools": kit.Object{"guarded": "deny"}}})
		}, reeve.ProposalDenied},
		"policy to allow": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{"tools": kit.Object{"guarded": "allow"}}})
		}, reeve.ProposalApplied},
		"capability": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, kit.Object{"kind": "reader"})
		},
			reeve.ProposalDenied},
		"dormant": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.UpdateAgent(h, a, kit.Object{"lifecycle": "dormant"})
		}, reeve.ProposalDenied},
		"gone": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		}, reeve.ProposalDenied},
		"detached": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/guarded", nil)
		}, reeve.ProposalDenied},
		"budget": {func(h *reevetest.Host, a reeve.Agent, _ *guardedTool) {
			kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": kit.Object{"calls": 1}})
			kit.TryCall(h, a.ID, kit.Call{"tool": "read_file", "args": kit.Object{"path": "/none"}}) // uses it up
		}, reeve.ProposalDenied},
	} {
		for _, order := range []string{"before the answer", "after the answer"} {
			t.Run(name+" "+order, func(t *testing.T) {
				var g guardedTool
				h := reevetest.Start(t, g.tool())
				a := newProposer(h, "a", "guarded", "read_file")
				res := h.Call(a.ID, "guarded", kit.Object{"n": 1})
				if p := kit.GetProposal(h, res.ProposalID); p.Base != "v1" || p.Preview != `+ {"n":1}` {
					t.Fatalf("%+v", p)
				}
				if order == "before the answer" {
					c.change(h, a, &g)
				}
				p, problem, status := kit.DecideProposal(h, res.ProposalID, "accept", "")
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
				h.RunUntilIdle(t.Context())
				ran := 0
				if c.want == reeve.ProposalApplied {
					ran = 1
				}
				if got := kit.GetProposal(h, p.ID); got.State != c.want || (ran == 0) != (got.Message != "") ||
					g.ran.Count() != ran {
					t.Errorf("%d ran, %+v", g.ran.Count(), got)
				}
				if ran == 1 {
					return
				}
				if _, problem, status := kit.DecideProposal(h, p.ID, "accept", ""); status != 409 ||
					(c.want == reeve.ProposalStale) != (problem.Code == reeve.Stale) {
					t.Errorf("accepted again: %d %+v", status, problem)
				}
				if name == "gone" {
					return
				}
				op := kit.GetOperation(h, p.OperationID)
				if info := kit.ResultInfo(t, kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[op.CallID][1]); info.Status != "error" ||
					info.Step.Name == "" {
					t.Errorf("the thread is told %+v", info)
				}
			})
		}
	}
}

// A change in our own database is bound to its base too. The same proposal on a newer base is a new item, and the old
// one can no longer be accepted.
func TestL27_StaleProposalIsNotApplied(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
		var task reeve.Task
		h.Want(201, &task, "POST", "/api/journal/tasks", kit.Object{"category_id": gym.ID, "title": "Squats"})
		a := newProposer(h, "coach", "update_task_fields")
		kit.UpdateAgent(h, a, kit.Object{"kind": "planner", "categories": []string{gym.ID}})
		rename := func(title string) {
			h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, kit.Object{"title": title})
		}
		title := func() string {
			var got reeve.Task
			h.Want(200, &got, "GET", "/api/journal/tasks/"+task.ID, nil)
			return got.Title
		}
		propose := func() reeve.Proposal {
			return kit.GetProposal(h, h.Call(a.ID, "update_task_fields",
				kit.Object{"task_id": task.ID, "title": "Deep squats"}).
				ProposalID)
		}
		first := propose()
		if first.Base == "" || !strings.Contains(first.Preview, "Deep squats") {
			t.Fatalf("%+v", first)
		}
		rename("Box squats")
		if _, p, status := kit.DecideProposal(h, first.ID, "accept", ""); status != 200 {
			t.Fatalf("%d %+v", status, p)
		}
		h.RunUntilIdle(t.Context())
		if got := kit.GetProposal(h, first.ID); got.State != reeve.ProposalStale ||
			!strings.Contains(got.Message, "changed since the preview") || title() != "Box squats" {
			t.Errorf("%s: %+v", title(), got)
		}
		second := propose()
		rename("Front squats")
		third := propose()
		if second.ID == first.ID || third.ID == second.ID || third.Base == second.Base || propose().ID != third.ID {
			t.Errorf("%+v, then %+v", second, third)
		}
		if _, p, status := kit.DecideProposal(h, second.ID, "accept", ""); status != 409 || p.Code != reeve.Stale ||
			kit.GetProposal(h, second.ID).State != reeve.ProposalStale {
			t.Errorf("%d %+v", status, p)
		}
		kit.DecideProposal(h, third.ID, "accept", "")
		h.RunUntilIdle(t.Context())
		if got := kit.GetProposal(h, third.ID); got.State != reeve.ProposalApplied || title() != "Deep squats" {
			t.Errorf("%s: %+v", title(), got)
		}
	})
}

// A proposal is stale if its tool has another version now.
func TestL27_AnotherToolVersionIsStale(t *testing.T) {
	t.Parallel()
	var g guardedTool
	cfg := kit.FastConfig(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := newProposer(h, "a", "guarded")
	res := h.Call(a.ID, "guarded", kit.Object{})
	h.Stop()
	other := g.tool()
	other.Description = "Now does something else."
	h = reevetest.StartWith(t, cfg, other)
	kit.DecideProposal(h, res.ProposalID, "accept", "")
	h.RunUntilIdle(t.Context())
	if got := kit.GetProposal(h, res.ProposalID); got.State != reeve.ProposalStale || g.ran.Count() != 0 {
		t.Errorf("%d ran, %+v", g.ran.Count(), got)
	}
}

// A proposal that is accepted while everything is stopped waits. After a crash it is applied once.
func TestL27_AcceptedProposalSurvivesAStopAndACrash(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	h := reevetest.StartWith(t, kit.FastConfig(t))
	kit.DefineHTTPTool(h, "send", reeve.Keyed, kit.Object{"method": "POST", "url": w.URL}, nil)
	a := newProposer(h, "a", "send")
	id := h.Call(a.ID, "send", kit.Object{}).ProposalID
	h.Want(204, nil, "POST", "/api/stop", kit.Object{"reason": "lunch"})
	kit.DecideProposal(h, id, "accept", "")
	h.RunUntilIdle(t.Context())
	if effects, requests := w.Count(); effects+requests != 0 || kit.GetProposal(h, id).State != reeve.ProposalAccepted {
		t.Fatalf("%d effects while stopped, %+v", effects, kit.GetProposal(h, id))
	}
	h = kit.RestartAfterCrash(h)
	h.Want(204, nil, "POST", "/api/resume", kit.Object{})
	h.RunUntilIdle(t.Context())
	kit.DecideProposal(h, id, "accept", "")
	h.RunUntilIdle(t.Context())
	if effects, requests := w.Count(); effects != 1 || requests != 1 || kit.GetProposal(h, id).
		State != reeve.ProposalApplied {
		t.Errorf("%d effects by %d requests, %+v", effects, requests, kit.GetProposal(h, id))
	}
}

// A proposal costs a call, so that budgets limit how much is proposed. A budget that would ask does not park it.
func TestL27_ProposalsCountAsCalls(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := reevetest.Start(t, newCostlyTool("x", reeve.Keyed, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
	a := newProposer(h, "a", "x")
	kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": kit.Object{"calls": 2}})
	first := h.Call(a.ID, "x", kit.Object{"n": 1})
	h.Call(a.ID, "x", kit.Object{"n": 2})
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "x", "args": kit.Object{"n": 3}}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	if b := kit.GetBudget(h, "agent:"+a.ID); b.Used.Calls != 2 || b.Used.Micros != 0 || !b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
	kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": kit.Object{"calls": 3, "micros": 5}, "on_exceed": "park"})
	if res := h.Call(a.ID, "x", kit.Object{"n": 3}); res.ProposalID == "" {
		t.Errorf("%+v", res)
	}
	kit.DecideProposal(h, first.ProposalID, "accept", "")
	h.RunUntilIdle(t.Context())
	if p := kit.GetProposal(h, first.ProposalID); p.State != reeve.ProposalAccepted || ran.Count() != 0 ||
		len(kit.GetInbox(h).Approvals) != 1 {
		t.Fatalf("%d ran, %+v", ran.Count(), p)
	}
	kit.Decide(h, kit.GetInbox(h).Approvals[0].ID, "approve") // of the budget
	h.RunUntilIdle(t.Context())
	if p := kit.GetProposal(h, first.ProposalID); p.State != reeve.ProposalApplied || ran.Count() != 1 {
		t.Errorf("%d ran, %+v", ran.Count(), p)
	}
}

// A proposal that is accepted while its run continues does not hold the run up, not even if its outcome is unknown.
func TestL27_RunContinuesAfterAnAcceptance(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), kit.Tool("lose", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any,
		error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	}))
	a := newProposer(h, "coach", "hold", "lose", "write_file")
	kit.SetRehearsal(h, a.ID, "done", kit.Object{"tool": "lose"}, kit.Object{"tool": "hold"},
		kit.WriteFileStep("/1.txt", "1"))
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	<-g.Reached
	id := kit.ListProposals(h, "")[0].ID
	kit.DecideProposal(h, id, "accept", "")
	finishOperation(h, reeve.ProposalKey(id))
	if p := kit.GetProposal(h, id); p.State != reeve.ProposalUnknown {
		t.Fatalf("%+v", p)
	}
	close(g.Release)
	kit.Eventually(t, "the run to end", func() bool { return len(kit.ListRuns(h, "state=completed")) == 1 })
	if s := getChangeSet(h, kit.GetProposal(h, id).SetID); s.Counts[reeve.ProposalPending] != 1 ||
		s.Counts[reeve.ProposalUnknown] != 1 {
		t.Errorf("%+v", s.Counts)
	}
	h.Want(200, nil, "POST", "/api/operations/"+kit.GetProposal(h, id).OperationID+"/resolve",
		kit.Object{"resolution": "happened"})
	if p := kit.GetProposal(h, id); p.State != reeve.ProposalApplied {
		t.Errorf("%+v", p)
	}
}
