package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Every quantity that a budget counts refuses a call that would exceed it, in every effect class, and the budget shows
// what was spent.
func TestG17_BudgetRefusesCallsOverIt(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed, reeve.Unsafe} {
		for what, limit := range map[string]map[string]any{"calls": {"calls": 2}, "tokens": {"tokens": 25},
			"money": {"micros": 250}} {
			t.Run(string(effect)+" "+what, func(t *testing.T) {
				var ran kit.Counter
				h := reevetest.Start(t, newCostlyTool("x", effect, reeve.Amount{Tokens: 10, Micros: 100},
					reeve.Amount{Tokens: 9, Micros: 90}, &ran))
				a := h.Agent("a", "x")
				kit.SetBudget(h, "agent:a", map[string]any{"limit": limit})
				for range 2 {
					if res := h.Call(a.ID, "x", nil); res.IsError || res.Spent.Tokens != 9 || res.Spent.Micros != 90 ||
						res.Spent.Calls != 1 {
						t.Fatalf("%+v", res)
					}
				}
				_, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "x"})
				if status != http.StatusPaymentRequired || p.Code != reeve.BudgetExceeded ||
					!strings.Contains(p.Detail, what) || ran.Count() != 2 {
					t.Errorf("%d %+v after %d", status, p, ran.Count())
				}
				b := kit.GetBudget(h, "agent:"+a.ID)
				if b.Used.Calls != 2 || b.Used.Tokens != 18 || b.Used.Micros != 180 || b.Used.Millis < 2 ||
					!b.Reserved.IsZero() {
					t.Errorf("the budget shows %+v", b)
				}
				// after the limit is raised, calls work again and earlier use still counts
				kit.SetBudget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 100}})
				h.Call(a.ID, "x", nil)
				if b := kit.GetBudget(h, "agent:"+a.ID); b.Used.Calls != 3 || b.Used.Tokens != 27 {
					t.Errorf("the budget shows %+v", b)
				}
			})
		}
	}
}

// Time is a budget too: a call may use what is left of it.
func TestG17_TimeLeftIsTheTimeout(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	x := kit.Tool("x", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-never:
			return nil, nil
		}
	})
	x.Retry = reeve.Retry{Attempts: 5}
	h := reevetest.Start(t, x)
	a := h.Agent("a", "x")
	kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"millis": 60}})
	if res := h.Call(a.ID, "x", nil); res.Code != reeve.Timeout {
		t.Errorf("%+v", res)
	}
	b := kit.GetBudget(h, "workspace")
	if b.Used.Millis < 60 || b.Used.Millis > 2000 || b.Used.Calls != 1 || !b.Reserved.IsZero() {
		t.Errorf("the budget shows %+v", b)
	}
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "x"}); status != http.StatusPaymentRequired ||
		!strings.Contains(p.Detail, "seconds") {
		t.Errorf("%d %+v", status, p)
	}
}

// A run draws on its own budget and on those of its parents, its agent and its workspace.
func TestG17_AChildDrawsOnItsParents(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := reevetest.Start(t, newCostlyTool("x", reeve.Keyed, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
	a := h.Agent("a", "x")
	kit.SetBudget(h, "run:grand", map[string]any{"limit": map[string]any{"micros": 35}})
	kit.SetBudget(h, "run:parent", map[string]any{"limit": map[string]any{"micros": 1000}, "parent": "run:grand"})
	kit.SetBudget(h, "run:child", map[string]any{"limit": map[string]any{"micros": 25}, "parent": "run:parent"})
	kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 1000}})
	spend := func(run string, want int) {
		t.Helper()
		if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "x", "run": run}); status != want {
			t.Fatalf("%s: %d %+v", run, status, p)
		}
	}
	spend("child", http.StatusOK)
	spend("child", http.StatusOK)
	spend("child", http.StatusPaymentRequired) // its own is used up
	spend("parent", http.StatusOK)
	spend("parent", http.StatusPaymentRequired) // its parent's is
	spend("else", http.StatusOK)
	for subject, want := range map[string]int64{"run:child": 20, "run:parent": 30, "run:grand": 30, "workspace": 40} {
		b := kit.GetBudget(h, subject)
		if b.Used.Micros != want || !b.Reserved.IsZero() {
			t.Errorf("%s shows %+v, want %d used", subject, b, want)
		}
	}
}

// If the operator says so, a call over the budget waits for a person. What the person lets through is counted.
func TestG17_BudgetParksCallsIfConfigured(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := reevetest.Start(t, newCostlyTool("x", reeve.Keyed, reeve.Amount{}, reeve.Amount{}, &ran),
		newCostlyTool("r", reeve.Read, reeve.Amount{}, reeve.Amount{}, &ran))
	a := h.Agent("a", "x", "r")
	kit.SetBudget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 1}, "on_exceed": "park"})
	h.Call(a.ID, "x", nil)
	res := h.Call(a.ID, "x", nil)
	if res.State != reeve.Parked || !strings.Contains(res.Message, "calls") {
		t.Fatalf("%+v", res)
	}
	if in := kit.GetInbox(h); len(in.Approvals) != 1 || !strings.Contains(in.Approvals[0].Why, "budget") {
		t.Errorf("%+v", in)
	}
	if b := kit.GetBudget(h, "agent:"+a.ID); !b.Reserved.IsZero() || b.Used.Calls != 1 { // waiting reserves nothing
		t.Errorf("%+v", b)
	}
	// a read over the budget is refused without asking a person
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "r"}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	kit.Decide(h, res.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Committed || ran.Count() != 2 {
		t.Errorf("%+v", op)
	}
	if b := kit.GetBudget(h, "agent:"+a.ID); b.Used.Calls != 2 || !b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
	denied := h.Call(a.ID, "x", nil)
	kit.Decide(h, denied.ApprovalID, "deny")
	if b := kit.GetBudget(h, "agent:"+a.ID); b.Used.Calls != 2 || ran.Count() != 2 {
		t.Errorf("%+v", b)
	}
}

// Approving a privileged call does not approve an overdraft: a budget that refuses still refuses, and a budget that
// asks asks again.
func TestG17_ApprovalDoesNotExceedTheBudget(t *testing.T) {
	t.Parallel()
	for _, onExceed := range []string{"end", "park"} {
		t.Run(onExceed, func(t *testing.T) {
			var ran kit.Counter
			x := newCostlyTool("x", reeve.Unsafe, reeve.Amount{}, reeve.Amount{}, &ran)
			x.Tier = reeve.Privileged
			h := reevetest.Start(t, x, newCostlyTool("free", reeve.Keyed, reeve.Amount{}, reeve.Amount{}, &ran))
			a := h.Agent("a", "x", "free")
			kit.SetBudget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 1}, "on_exceed": onExceed})
			res := h.Call(a.ID, "x", nil)
			h.Call(a.ID, "free", nil) // takes what is left
			kit.Decide(h, res.ApprovalID, "approve")
			h.RunUntilIdle(t.Context())
			op := kit.GetOperation(h, res.OperationID)
			if ran.Count() != 1 {
				t.Fatalf("it ran over budget: %+v", op)
			}
			if onExceed == "end" {
				if op.State != reeve.DeniedOp || op.Code != reeve.BudgetExceeded {
					t.Errorf("%+v", op)
				}
				return
			}
			in := kit.GetInbox(h)
			if op.State != reeve.Parked || len(in.Approvals) != 1 || in.Approvals[0].ID == res.ApprovalID {
				t.Fatalf("%+v, inbox %+v", op, in)
			}
			kit.Decide(h, in.Approvals[0].ID, "approve")
			h.RunUntilIdle(t.Context())
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Committed || ran.Count() != 2 {
				t.Errorf("%+v", op)
			}
			kit.PairCalls(h, kit.ListThread(h, a.ID, ""))
		})
	}
}

// A call whose outcome takes several attempts counts as one call and keeps its reservation until the end.
func TestG17_AnOpenOutcomeIsCountedOnce(t *testing.T) {
	t.Parallel()
	var sent kit.Counter
	x := kit.Tool("x", reeve.Verifiable, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		sent.N.Add(1)
		inv.Spend(0, 3)
		return nil, reeve.Errorf(reeve.Timeout, "late")
	})
	var know atomic.Bool
	x.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		if know.Load() {
			return reeve.Applied, "there", nil
		}
		return reeve.CannotTell, nil, nil
	}
	x.Cost = reeve.Amount{Micros: 5}
	h := reevetest.StartWith(t, kit.FastConfig(t), x)
	a := h.Agent("a", "x")
	kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 100}})
	res := h.Call(a.ID, "x", nil)
	if b := kit.GetBudget(h, "workspace"); res.State != reeve.Dispatched || b.Reserved.Micros != 5 ||
		b.Used.Micros != 3 ||
		b.Used.Calls != 1 {
		t.Errorf("%+v, %+v", res, b)
	}
	know.Store(true)
	op := finishOperation(h, res.OperationID)
	b := kit.GetBudget(h, "workspace")
	if op.State != reeve.Committed || op.Spent.Micros != 3 || op.Spent.Calls != 1 || b.Used.Micros != 3 ||
		b.Used.Calls != 1 || !b.Reserved.IsZero() || b.Used.Millis != op.Spent.Millis {
		t.Errorf("%+v, %+v", op, b)
	}
}

// If an agent is removed while the outcome of an operation is open, the operation releases its reservation, is not
// retried, and waits for a person in the inbox and in its conversation.
func TestG17_RemovedAgentReleasesReservations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		async bool
		last  int // in which of its calls the agent is removed
		says  *reeve.Error
	}{
		"sent":       {false, 1, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")},
		"sent again": {false, 3, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")},
		"awaited": {true, 1, &reeve.Error{Code: reeve.InProgress, Message: "it will come",
			RetryAfter: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			var h *reevetest.Host
			var sent kit.Counter
			send := kit.Tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
				if sent.N.Add(1); sent.Count() == c.last {
					h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/sender", nil)
				}
				return nil, c.says
			})
			send.Async, send.Cost = c.async, reeve.Amount{Micros: 5}
			cfg := kit.FastConfig(t)
			cfg.RetryAttempts, cfg.Model = 2,
				kit.ScriptedModel(t, "answers:\n- {when: begin, text: 'I have begun', fail: {hang: true, after: 1}}\n")
			h = reevetest.Run(t, cfg, send)
			h.Agent("bot")
			h.Agent("sender", "send")
			kit.SetBudget(h, "workspace", kit.Object{"limit": kit.Object{"micros": 100}})
			talk := h.StartConversation("bot")
			turn := kit.StartTurn(h, talk.ID, "begin")
			res, p, status := kit.TryCall(h, "sender", kit.Call{"tool": "send", "run": turn.ID})
			if status != http.StatusAccepted {
				t.Fatalf("%d %+v", status, p)
			}
			open := func() []reeve.Operation { return kit.GetInbox(h).Unknown }
			kit.Eventually(t, "a person to be asked", func() bool { return len(open()) == 1 })
			if c.last > 1 {
				h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/resolve",
					kit.Object{"resolution": "retry"})
				kit.Eventually(t, "a person to be asked again", func() bool {
					return sent.Count() == c.last && len(open()) == 1
				})
			}
			op := kit.GetOperation(h, res.OperationID)
			if op.State != reeve.Unknown || !strings.Contains(op.Message, "the agent no longer exists") ||
				op.NextAttemptAt != nil || op.TimeoutAt != nil {
				t.Errorf("%+v", op)
			}
			if b := kit.GetBudget(h, "workspace"); b.Reserved.Micros != 0 { // the turn's model holds no money
				t.Errorf("%+v", b)
			}
			var told []reeve.Frame
			for _, f := range kit.ListFrames(h, talk.ID) {
				if f.Type == reeve.FrameApproval && strings.Contains(f.Message, "the agent no longer exists") {
					told = append(told, f)
				}
			}
			if len(told) != 1 || told[0].TurnID != turn.ID || told[0].OperationID != op.ID ||
				told[0].Code != reeve.UnknownOutcome || string(told[0].Args) != "{}" {
				t.Errorf("%+v", told)
			}
			h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		})
	}
}

// Failed calls cost what they cost. Refused calls cost nothing.
func TestG17_FailuresAreCountedRefusalsAreNot(t *testing.T) {
	t.Parallel()
	var list []reeve.Tool
	for _, e := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		x := kit.Tool("x_"+string(e), e, func(_ context.Context, inv *reeve.Invocation) (any, error) {
			inv.Spend(1, 2)
			return nil, errors.New("no")
		})
		x.Check = func(_ context.Context, inv *reeve.Invocation) error {
			if string(inv.Args) != "{}" {
				return reeve.Errorf(reeve.Denied, "no")
			}
			return nil
		}
		list = append(list, x)
	}
	h := reevetest.Start(t, list...)
	a := h.Agent("a", "x_read", "x_local", "x_keyed")
	kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 1000}})
	for _, x := range list {
		h.Call(a.ID, x.ID, nil)
		kit.TryCall(h, a.ID, kit.Call{"tool": x.ID, "args": map[string]any{"a": 1}})
	}
	if b := kit.GetBudget(h, "workspace"); b.Used.Calls != 3 || b.Used.Tokens != 3 || b.Used.Micros != 6 ||
		!b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
}

// A budget cannot be its own ancestor, by name or by id.
func TestG17_NoBudgetIsItsOwnParent(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a, b := h.Agent("a"), h.Agent("b")
	limit := kit.Object{"calls": 1}
	kit.SetBudget(h, "agent:a", kit.Object{"limit": limit, "parent": "agent:b"})
	for subject, parent := range map[string]string{"agent:a": "agent:" + a.ID, "agent:b": "agent:a"} {
		var p api.Problem
		h.Want(http.StatusBadRequest, &p, "PUT", "/api/budgets/"+subject, kit.Object{"limit": limit, "parent": parent})
		if p.Code != reeve.Validation || len(p.Errors) != 1 || p.Errors[0].Path != "/parent" ||
			!strings.Contains(p.Detail, a.ID) {
			t.Errorf("%+v", p)
		}
	}
	h.Want(http.StatusNotFound, nil, "PUT", "/api/budgets/agent:a",
		kit.Object{"limit": limit, "parent": "agent:nobody"})
	var list api.BudgetList
	if h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil); len(list.Budgets) != 1 ||
		list.Budgets[0].Parent != "agent:"+b.ID {
		t.Errorf("%+v", list)
	}
}

// An asynchronous call costs what its tool declares, once, whether its outcome comes before or after the answer to its
// request.
func TestG17_AsynchronousCallIsChargedOnce(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"after": false, "before": true} {
		t.Run(name, func(t *testing.T) {
			entered, finish := make(chan struct{}, 1), make(chan struct{})
			send := kit.Tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
				if entered <- struct{}{}; early {
					<-finish
				}
				return nil, &reeve.Error{Code: reeve.InProgress, Message: "it will come", RetryAfter: time.Minute}
			})
			send.Async, send.Cost = true, reeve.Amount{Micros: 5, Tokens: 7}
			h := reevetest.Run(t, kit.FastConfig(t), send)
			h.Agent("sender", "send")
			kit.SetBudget(h, "workspace", kit.Object{"limit": kit.Object{"micros": 100}})
			res, p, status := kit.TryCall(h, "sender", kit.Call{"tool": "send"})
			if status != http.StatusAccepted {
				t.Fatalf("%d %+v", status, p)
			}
			id := res.OperationID
			<-entered
			if !early {
				kit.Eventually(t, "its request to be answered",
					func() bool { op := kit.GetOperation(h, id); return op.IsAwaited() })
			}
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+id+"/result", kit.Object{"content": "done"})
			close(finish)
			kit.Eventually(t, "nothing to be held", func() bool {
				return kit.GetBudget(h, "workspace").Reserved.Micros == 0
			})
			if b, op := kit.GetBudget(h, "workspace"), kit.GetOperation(h, id); b.Used.Micros != 5 ||
				b.Used.Tokens != 7 ||
				b.Used.Calls != 1 || op.Spent.Micros != 5 {
				t.Errorf("used %+v, the operation %+v", b.Used, op.Spent)
			}
		})
	}
}

// The cost of a run is what its budgets were charged, including a call that a person resolved and a call that ended
// after the run was cancelled.
func TestG17_ARunShowsWhatItsCallsCost(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"happened", "skip", "cancel", "cancel and try again", "cancel and doubt"} {
		t.Run(way, func(t *testing.T) {
			entered, finish := make(chan struct{}, 1), make(chan struct{})
			var sent atomic.Int64
			send := kit.Tool("send", reeve.Unsafe, func(_ context.Context, inv *reeve.Invocation) (any, error) {
				inv.Spend(7, 0)
				if strings.HasPrefix(way, "cancel") {
					entered <- struct{}{}
					<-finish
				}
				if n := sent.Add(1); way == "cancel" || way == "cancel and try again" && n > 1 {
					return "done", nil
				}
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
			})
			if way == "cancel and try again" {
				send.Effect = reeve.Keyed
			}
			kit.RunOnBothDatabases(t, "- {when: begin, calls: [{name: send, args: {}}]}\n- {text: well}\n",
				[]reeve.Tool{send},
				func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
					finish = make(chan struct{})
					sent.Store(0)
					turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin")
					if strings.HasPrefix(way, "cancel") {
						<-entered
						h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
						close(finish)
					} else {
						kit.Eventually(t, "a person to be asked",
							func() bool { return len(kit.GetInbox(h).Unknown) == 1 })
						h.Want(http.StatusOK, nil, "POST", "/api/operations/"+kit.GetInbox(h).Unknown[0].ID+"/resolve",
							kit.Object{"resolution": way})
					}
					if way == "cancel and try again" {
						<-entered
					}
					var op reeve.Operation
					kit.Eventually(t, "the call to be over",
						func() bool {
							op = kit.ListOperations(h)[0]
							return op.State == reeve.Committed || op.State == reeve.Unknown
						})
					d := kit.WaitForTurn(h, turn.ID)
					for _, m := range d.Messages { // what the model cost
						var info struct{ Spent reeve.Amount }
						if err := json.Unmarshal(m.Metadata, &info); err != nil {
							t.Fatal(err)
						}
						if m.Kind == reeve.Thought {
							d.Spent = d.Spent.Minus(info.Spent)
						}
					}
					if op.Spent.Calls != 1 || op.Spent.Tokens != 7*sent.Load() || d.Spent != op.Spent {
						t.Errorf("sent %d times: the call cost %+v, and the calls of the turn %+v", sent.Load(),
							op.Spent,
							d.Spent)
					}
				})
		})
	}
}

// A tool that reports no cost is charged with the cost that it declares.
func TestG17_DeclaredCostIsCharged(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, reeve.MustTool(reeve.Tool{ID: "buys", Description: "Buys something.", Effect: reeve.Read,
		Cost: reeve.Amount{Micros: 5, Tokens: 1}},
		func(context.Context, struct{}) (string, error) { return "bought", nil }))
	a := h.Agent("buyer", "buys")
	h.Want(200, nil, "PUT", "/api/budgets/agent:"+a.ID, map[string]any{"limit": map[string]any{"micros": 12}})
	h.Call(a.ID, "buys", map[string]any{})
	h.Call(a.ID, "buys", map[string]any{})
	h.Want(402, nil, "POST", "/api/agents/"+a.ID+"/calls", map[string]any{"tool": "buys"})
	var list api.BudgetList
	h.Want(200, &list, "GET", "/api/budgets", nil)
	if b := list.Budgets[0]; b.Used.Micros != 10 || b.Used.Tokens != 2 || b.Reserved.Micros != 0 {
		t.Errorf("%+v", b)
	}
}
