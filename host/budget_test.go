package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/api"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

func budget(h *reevetest.Host, subject string, body map[string]any) {
	h.T.Helper()
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/"+subject, body)
}

func budgetOf(h *reevetest.Host, subject string) reeve.Budget {
	h.T.Helper()
	var list api.BudgetList
	h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil)
	for _, b := range list.Budgets {
		if b.Subject == subject {
			return b
		}
	}
	h.T.Fatalf("no budget for %s in %+v", subject, list)
	return reeve.Budget{}
}

// spender is a tool that costs what it says, at most.
func spender(id string, effect reeve.Effect, most, real reeve.Amount, ran *counter) reeve.Tool {
	t := tool(id, effect, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		ran.n.Add(1)
		inv.Spend(real.Tokens, real.Micros)
		return "spent", nil
	})
	t.Cost = most
	return t
}

// Each of the things a budget counts ends a call that would go over it, whatever the effect class, and what is shown is
// what was spent.
func TestG17_ABudgetEndsWhatWouldGoOverIt(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed, reeve.Unsafe} {
		for what, limit := range map[string]map[string]any{"calls": {"calls": 2}, "tokens": {"tokens": 25},
			"money": {"micros": 250}} {
			t.Run(string(effect)+" "+what, func(t *testing.T) {
				var ran counter
				h := reevetest.Start(t, spender("x", effect, reeve.Amount{Tokens: 10, Micros: 100},
					reeve.Amount{Tokens: 9, Micros: 90}, &ran))
				a := h.Agent("a", "x")
				budget(h, "agent:a", map[string]any{"limit": limit})
				for range 2 {
					if res := h.Call(a.ID, "x", nil); res.IsError || res.Spent.Tokens != 9 || res.Spent.Micros != 90 ||
						res.Spent.Calls != 1 {
						t.Fatalf("%+v", res)
					}
				}
				_, p, status := do(h, a.ID, call{"tool": "x"})
				if status != http.StatusPaymentRequired || p.Code != reeve.BudgetExceeded ||
					!strings.Contains(p.Detail, what) || ran.count() != 2 {
					t.Errorf("%d %+v after %d", status, p, ran.count())
				}
				b := budgetOf(h, "agent:"+a.ID)
				if b.Used.Calls != 2 || b.Used.Tokens != 18 || b.Used.Micros != 180 || b.Used.Millis < 2 ||
					!b.Reserved.IsZero() {
					t.Errorf("the budget shows %+v", b)
				}
				// raised: it goes on, and nothing is forgotten
				budget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 100}})
				h.Call(a.ID, "x", nil)
				if b := budgetOf(h, "agent:"+a.ID); b.Used.Calls != 3 || b.Used.Tokens != 27 {
					t.Errorf("the budget shows %+v", b)
				}
			})
		}
	}
}

// Time is a budget too: a call may use what is left of it and no more.
func TestG17_TimeLeftIsTheTimeout(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	x := tool("x", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
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
	budget(h, "workspace", map[string]any{"limit": map[string]any{"millis": 60}})
	if res := h.Call(a.ID, "x", nil); res.Code != reeve.Timeout {
		t.Errorf("%+v", res)
	}
	b := budgetOf(h, "workspace")
	if b.Used.Millis < 60 || b.Used.Millis > 2000 || b.Used.Calls != 1 || !b.Reserved.IsZero() {
		t.Errorf("the budget shows %+v", b)
	}
	if _, p, status := do(h, a.ID, call{"tool": "x"}); status != http.StatusPaymentRequired ||
		!strings.Contains(p.Detail, "seconds") {
		t.Errorf("%d %+v", status, p)
	}
}

// A run draws on its own budget, on its parents', on its agent's and on its workspace's.
func TestG17_AChildDrawsOnItsParents(t *testing.T) {
	t.Parallel()
	var ran counter
	h := reevetest.Start(t, spender("x", reeve.Keyed, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
	a := h.Agent("a", "x")
	budget(h, "run:grand", map[string]any{"limit": map[string]any{"micros": 35}})
	budget(h, "run:parent", map[string]any{"limit": map[string]any{"micros": 1000}, "parent": "run:grand"})
	budget(h, "run:child", map[string]any{"limit": map[string]any{"micros": 25}, "parent": "run:parent"})
	budget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 1000}})
	spend := func(run string, want int) {
		t.Helper()
		if _, p, status := do(h, a.ID, call{"tool": "x", "run": run}); status != want {
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
		b := budgetOf(h, subject)
		if b.Used.Micros != want || !b.Reserved.IsZero() {
			t.Errorf("%s shows %+v, want %d used", subject, b, want)
		}
	}
}

// Over budget, a call that changes something waits for a person where the operator says so; what they let through is
// counted.
func TestG17_ABudgetParksWhereTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	var ran counter
	h := reevetest.Start(t, spender("x", reeve.Keyed, reeve.Amount{}, reeve.Amount{}, &ran),
		spender("r", reeve.Read, reeve.Amount{}, reeve.Amount{}, &ran))
	a := h.Agent("a", "x", "r")
	budget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 1}, "on_exceed": "park"})
	h.Call(a.ID, "x", nil)
	res := h.Call(a.ID, "x", nil)
	if res.State != reeve.Parked || !strings.Contains(res.Message, "calls") {
		t.Fatalf("%+v", res)
	}
	if in := inbox(h); len(in.Approvals) != 1 || !strings.Contains(in.Approvals[0].Why, "budget") {
		t.Errorf("%+v", in)
	}
	if b := budgetOf(h, "agent:"+a.ID); !b.Reserved.IsZero() || b.Used.Calls != 1 { // what waits holds nothing
		t.Errorf("%+v", b)
	}
	// nobody is asked about a read
	if _, p, status := do(h, a.ID, call{"tool": "r"}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	decide(h, res.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	if op := operation(h, res.OperationID); op.State != reeve.Committed || ran.count() != 2 {
		t.Errorf("%+v", op)
	}
	if b := budgetOf(h, "agent:"+a.ID); b.Used.Calls != 2 || !b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
	denied := h.Call(a.ID, "x", nil)
	decide(h, denied.ApprovalID, "deny")
	if b := budgetOf(h, "agent:"+a.ID); b.Used.Calls != 2 || ran.count() != 2 {
		t.Errorf("%+v", b)
	}
}

// Who approves a privileged call approves the call, not an overdraft: where the budget ends calls it does, and where it
// asks it asks again.
func TestG17_AnApprovalIsNoOverdraft(t *testing.T) {
	t.Parallel()
	for _, onExceed := range []string{"end", "park"} {
		t.Run(onExceed, func(t *testing.T) {
			var ran counter
			x := spender("x", reeve.Unsafe, reeve.Amount{}, reeve.Amount{}, &ran)
			x.Tier = reeve.Privileged
			h := reevetest.Start(t, x, spender("free", reeve.Keyed, reeve.Amount{}, reeve.Amount{}, &ran))
			a := h.Agent("a", "x", "free")
			budget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 1}, "on_exceed": onExceed})
			res := h.Call(a.ID, "x", nil)
			h.Call(a.ID, "free", nil) // takes what is left
			decide(h, res.ApprovalID, "approve")
			h.RunUntilIdle(t.Context())
			op := operation(h, res.OperationID)
			if ran.count() != 1 {
				t.Fatalf("it ran over budget: %+v", op)
			}
			if onExceed == "end" {
				if op.State != reeve.DeniedOp || op.Code != reeve.BudgetExceeded {
					t.Errorf("%+v", op)
				}
				return
			}
			in := inbox(h)
			if op.State != reeve.Parked || len(in.Approvals) != 1 || in.Approvals[0].ID == res.ApprovalID {
				t.Fatalf("%+v, inbox %+v", op, in)
			}
			decide(h, in.Approvals[0].ID, "approve")
			h.RunUntilIdle(t.Context())
			if op := operation(h, res.OperationID); op.State != reeve.Committed || ran.count() != 2 {
				t.Errorf("%+v", op)
			}
			pairs(h, thread(h, a.ID, ""))
		})
	}
}

// Of calls made at once, no more get through than the budget has room for, of any kind.
func TestG17_ConcurrentCallsNeverOverspend(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		t.Run(string(effect), func(t *testing.T) {
			var ran counter
			h := reevetest.Start(t, spender("x", effect, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
			a := h.Agent("a", "x")
			budget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 55}})
			budget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 100}})
			var ok, over atomic.Int64
			var wg sync.WaitGroup
			for range 24 {
				wg.Go(func() {
					switch _, p, status := do(h, a.ID, call{"tool": "x"}); status {
					case http.StatusOK:
						ok.Add(1)
					case http.StatusPaymentRequired:
						over.Add(1)
					default:
						t.Errorf("%d %+v", status, p)
					}
				})
			}
			wg.Wait()
			if ok.Load() != 5 || over.Load() != 19 || (effect != reeve.Local && ran.count() != 5) {
				t.Errorf("%d passed, %d were refused, %d ran", ok.Load(), over.Load(), ran.count())
			}
			for _, s := range []string{"workspace", "agent:" + a.ID} {
				if b := budgetOf(h, s); b.Used.Micros != 50 || b.Used.Calls != 5 || !b.Reserved.IsZero() {
					t.Errorf("%s shows %+v", s, b)
				}
			}
			if n := len(pairs(h, thread(h, a.ID, ""))); n != 24 {
				t.Errorf("%d actions", n)
			}
		})
	}
}

// What is reserved is shown while a call is under way, kept for one that a crash left open, and given back in the end.
func TestG17_ReservationsOutliveACrashAndEnd(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	open := make(chan struct{})
	w.after = func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			<-open
		}
		return false
	}
	started, release := make(chan struct{}), make(chan struct{})
	slow := tool("slow", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		started <- struct{}{}
		<-release
		return "", nil
	})
	h := reevetest.StartWith(t, quick(t), slow)
	define(h, "send", reeve.Keyed, map[string]any{"method": "POST", "url": w.URL},
		map[string]any{"timeout_ms": 20000, "cost": map[string]any{"micros": 7}})
	a := h.Agent("a", "send", "slow")
	budget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 10, "calls": 10}})
	var wg sync.WaitGroup
	for _, id := range []string{"send", "slow"} {
		wg.Go(func() { _, _ = h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: id}) })
	}
	t.Cleanup(func() { close(open); close(release); wg.Wait() })
	<-w.reached
	<-started
	if b := budgetOf(h, "workspace"); b.Reserved.Micros != 7 || b.Reserved.Calls != 2 || b.Used.Calls != 0 {
		t.Errorf("under way: %+v", b)
	}
	if _, p, status := do(h, a.ID, call{"tool": "send"}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	after := crashed(h, slow)
	op := operations(after)[0]
	if got := settle(after, op.ID); got.State != reeve.Committed || got.Spent.Calls != 1 {
		t.Errorf("%+v", got)
	}
	// the read left nothing to finish: what it held is dropped
	after.RunUntilIdle(t.Context())
	// it does not say what it cost: what it declares
	if b := budgetOf(after, "workspace"); !b.Reserved.IsZero() || b.Used.Calls != 1 || b.Used.Micros != 7 {
		t.Errorf("after the crash: %+v", b)
	}
	budget(after, "workspace", map[string]any{"limit": map[string]any{"micros": 14}})
	if res := after.Call(a.ID, "send", nil); res.State != reeve.Committed {
		t.Errorf("%+v", res)
	}
}

// A call whose outcome takes several tries is one call, and holds its claim until the end.
func TestG17_AnOpenOutcomeIsCountedOnce(t *testing.T) {
	t.Parallel()
	var sent counter
	x := tool("x", reeve.Verifiable, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		sent.n.Add(1)
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
	h := reevetest.StartWith(t, quick(t), x)
	a := h.Agent("a", "x")
	budget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 100}})
	res := h.Call(a.ID, "x", nil)
	if b := budgetOf(h, "workspace"); res.State != reeve.Dispatched || b.Reserved.Micros != 5 || b.Used.Micros != 3 ||
		b.Used.Calls != 1 {
		t.Errorf("%+v, %+v", res, b)
	}
	know.Store(true)
	op := settle(h, res.OperationID)
	b := budgetOf(h, "workspace")
	if op.State != reeve.Committed || op.Spent.Micros != 3 || op.Spent.Calls != 1 || b.Used.Micros != 3 ||
		b.Used.Calls != 1 || !b.Reserved.IsZero() || b.Used.Millis != op.Spent.Millis {
		t.Errorf("%+v, %+v", op, b)
	}
}

// An operation whose agent is removed while its outcome is open holds no budget, is not due any more, and a person is
// asked about it: in the inbox, and in the conversation that the call was made in.
func TestG17_AnAgentThatIsGoneHoldsNothing(t *testing.T) {
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
			var sent counter
			send := tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
				if sent.n.Add(1); sent.count() == c.last {
					h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/sender", nil)
				}
				return nil, c.says
			})
			send.Async, send.Cost = c.async, reeve.Amount{Micros: 5}
			cfg := quick(t)
			cfg.RetryAttempts, cfg.Model = 2,
				script(t, "answers:\n- {when: begin, text: 'I have begun', fail: {hang: true, after: 1}}\n")
			h = reevetest.Run(t, cfg, send)
			h.Agent("bot")
			h.Agent("sender", "send")
			budget(h, "workspace", object{"limit": object{"micros": 100}})
			talk := h.StartConversation("bot")
			turn := speak(h, talk.ID, "begin")
			res, p, status := do(h, "sender", call{"tool": "send", "run": turn.ID})
			if status != http.StatusAccepted {
				t.Fatalf("%d %+v", status, p)
			}
			open := func() []reeve.Operation { return inbox(h).Unknown }
			eventually(t, "a person to be asked", func() bool { return len(open()) == 1 })
			if c.last > 1 {
				h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/resolve",
					object{"resolution": "retry"})
				eventually(t, "a person to be asked again", func() bool {
					return sent.count() == c.last &&
						len(open()) == 1
				})
			}
			op := operation(h, res.OperationID)
			if op.State != reeve.Unknown || !strings.Contains(op.Message, "the agent no longer exists") ||
				op.NextAttemptAt != nil || op.TimeoutAt != nil {
				t.Errorf("%+v", op)
			}
			if b := budgetOf(h, "workspace"); b.Reserved.Micros != 0 { // the turn's model holds no money
				t.Errorf("%+v", b)
			}
			var told []reeve.Frame
			for _, f := range kept(h, talk.ID) {
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

// Calls that fail cost what they cost; calls that are refused cost nothing.
func TestG17_FailuresAreCountedRefusalsAreNot(t *testing.T) {
	t.Parallel()
	var list []reeve.Tool
	for _, e := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		x := tool("x_"+string(e), e, func(_ context.Context, inv *reeve.Invocation) (any, error) {
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
	budget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 1000}})
	for _, x := range list {
		h.Call(a.ID, x.ID, nil)
		do(h, a.ID, call{"tool": x.ID, "args": map[string]any{"a": 1}})
	}
	if b := budgetOf(h, "workspace"); b.Used.Calls != 3 || b.Used.Tokens != 3 || b.Used.Micros != 6 ||
		!b.Reserved.IsZero() {
		t.Errorf("%+v", b)
	}
}

// A budget whose parent changes, or that goes, while a call is under way keeps nothing of the call's claim.
func TestG17_AChainThatChangesUnderWayHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed} {
		started, release := make(chan struct{}), make(chan struct{})
		slow := tool("slow", effect, func(context.Context, *reeve.Invocation) (any, error) {
			started <- struct{}{}
			<-release
			return "", nil
		})
		h := reevetest.StartWith(t, quick(t), slow)
		a := h.Agent("a", "slow")
		limit := map[string]any{"calls": 10}
		budget(h, "run:old", map[string]any{"limit": limit})
		budget(h, "run:new", map[string]any{"limit": limit})
		budget(h, "agent:a", map[string]any{"limit": limit, "parent": "run:old"})
		budget(h, "workspace", map[string]any{"limit": limit})
		done := make(chan error, 1)
		go func() {
			_, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "slow"})
			done <- err
		}()
		<-started
		if b := budgetOf(h, "run:old"); b.Reserved.Calls != 1 {
			t.Errorf("%s, under way: %+v", effect, b)
		}
		budget(h, "agent:a", map[string]any{"limit": limit, "parent": "run:new"})
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/budgets/workspace", nil)
		go func() { <-started }() // a read is judged again, and so made again
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		budget(h, "workspace", map[string]any{"limit": limit}) // what was claimed of it before is not claimed now
		for subject, used := range map[string]int64{"run:old": 0, "run:new": 1, "agent:" + a.ID: 1, "workspace": 0} {
			if b := budgetOf(h, subject); !b.Reserved.IsZero() || b.Used.Calls != used {
				t.Errorf("%s, %s: %+v", effect, subject, b)
			}
		}
	}
}

// A budget that would be its own parent is refused, at whatever distance, by name or by id.
func TestG17_NoBudgetIsItsOwnParent(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a, b := h.Agent("a"), h.Agent("b")
	limit := object{"calls": 1}
	budget(h, "agent:a", object{"limit": limit, "parent": "agent:b"})
	for subject, parent := range map[string]string{"agent:a": "agent:" + a.ID, "agent:b": "agent:a"} {
		var p api.Problem
		h.Want(http.StatusBadRequest, &p, "PUT", "/api/budgets/"+subject, object{"limit": limit, "parent": parent})
		if p.Code != reeve.Validation || len(p.Errors) != 1 || p.Errors[0].Path != "/parent" ||
			!strings.Contains(p.Detail, a.ID) {
			t.Errorf("%+v", p)
		}
	}
	h.Want(http.StatusNotFound, nil, "PUT", "/api/budgets/agent:a", object{"limit": limit, "parent": "agent:nobody"})
	var list api.BudgetList
	if h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil); len(list.Budgets) != 1 ||
		list.Budgets[0].Parent != "agent:"+b.ID {
		t.Errorf("%+v", list)
	}
}

// A call that is answered later costs what its tool declares, once, whether its outcome comes after its request is
// answered or before.
func TestG17_WhatIsAnsweredLaterIsCharged(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"after": false, "before": true} {
		t.Run(name, func(t *testing.T) {
			entered, finish := make(chan struct{}, 1), make(chan struct{})
			send := tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
				if entered <- struct{}{}; early {
					<-finish
				}
				return nil, &reeve.Error{Code: reeve.InProgress, Message: "it will come", RetryAfter: time.Minute}
			})
			send.Async, send.Cost = true, reeve.Amount{Micros: 5, Tokens: 7}
			h := reevetest.Run(t, quick(t), send)
			h.Agent("sender", "send")
			budget(h, "workspace", object{"limit": object{"micros": 100}})
			res, p, status := do(h, "sender", call{"tool": "send"})
			if status != http.StatusAccepted {
				t.Fatalf("%d %+v", status, p)
			}
			id := res.OperationID
			<-entered
			if !early {
				eventually(t, "its request to be answered",
					func() bool { op := operation(h, id); return op.IsAwaited() })
			}
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+id+"/result", object{"content": "done"})
			close(finish)
			eventually(t, "nothing to be held", func() bool { return budgetOf(h, "workspace").Reserved.Micros == 0 })
			if b, op := budgetOf(h, "workspace"), operation(h, id); b.Used.Micros != 5 || b.Used.Tokens != 7 ||
				b.Used.Calls != 1 || op.Spent.Micros != 5 {
				t.Errorf("used %+v, the operation %+v", b.Used, op.Spent)
			}
		})
	}
}

// Budgets are held in one order, parents among them: of two calls that draw on the same ones, one waits for the other,
// and not both. So it is when a call claims, and when it spends what it has claimed.
func TestG17_BudgetsAreHeldInOneOrder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := quick(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	var during atomic.Pointer[func()]
	look := tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		if f := during.Swap(nil); f != nil {
			(*f)()
		}
		return "seen", nil
	})
	h := reevetest.StartWith(t, cfg, look)
	a, b := h.Agent("a", "look"), h.Agent("b", "look")
	limit := object{"calls": 100}
	budget(h, "workspace", object{"limit": limit})
	budget(h, "agent:"+b.ID, object{"limit": limit})
	budget(h, "agent:"+a.ID, object{"limit": limit, "parent": "agent:" + b.ID})
	connect := func() *pgx.Conn {
		t.Helper()
		c, err := pgx.Connect(ctx, cfg.Database)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	other, watch := connect(), connect()
	run := func(c *pgx.Conn, query string) {
		t.Helper()
		if _, err := c.Exec(ctx, query); err != nil {
			t.Error(err)
		}
	}
	hold := func() { run(other, "BEGIN; SELECT 1 FROM budgets WHERE subject = 'agent:"+b.ID+"' FOR UPDATE") }
	for _, when := range []string{"claims", "spends"} {
		if when == "claims" {
			hold()
		} else {
			during.Store(&hold)
		}
		done := make(chan int, 1)
		go func() { done <- h.Do("POST", "/api/agents/a/calls", call{"tool": "look"}).Status }()
		eventually(t, "a call that "+when+" waits for the parent", func() (waits bool) {
			err := watch.QueryRow(ctx,
				"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = "+
					"'Lock'").Scan(&waits)
			return err == nil && waits
		})
		if _, err := watch.Exec(ctx,
			"SELECT 1 FROM budgets WHERE subject = 'workspace' FOR UPDATE NOWAIT"); err != nil {
			t.Errorf("a call that %s and waits for the parent holds what comes after it: %v", when, err)
		}
		run(other, "COMMIT")
		if status := <-done; status != http.StatusOK {
			t.Errorf("a call that %s: %d", when, status)
		}
	}
}

// What a run spent is what its budgets were charged, also for a call of which a person says what became of it, and for
// one that ends after the run was cancelled.
func TestG17_ARunShowsWhatItsCallsCost(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"happened", "skip", "cancel", "cancel and try again", "cancel and doubt"} {
		t.Run(way, func(t *testing.T) {
			entered, finish := make(chan struct{}, 1), make(chan struct{})
			var sent atomic.Int64
			send := tool("send", reeve.Unsafe, func(_ context.Context, inv *reeve.Invocation) (any, error) {
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
			eachTalker(t, "- {when: begin, calls: [{name: send, args: {}}]}\n- {text: well}\n", []reeve.Tool{send},
				func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
					finish = make(chan struct{})
					sent.Store(0)
					turn := speak(h, h.StartConversation("bot").ID, "begin")
					if strings.HasPrefix(way, "cancel") {
						<-entered
						h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
						close(finish)
					} else {
						eventually(t, "a person to be asked", func() bool { return len(inbox(h).Unknown) == 1 })
						h.Want(http.StatusOK, nil, "POST", "/api/operations/"+inbox(h).Unknown[0].ID+"/resolve",
							object{"resolution": way})
					}
					if way == "cancel and try again" {
						<-entered
					}
					var op reeve.Operation
					eventually(t, "the call to be over",
						func() bool {
							op = operations(h)[0]
							return op.State == reeve.Committed ||
								op.State == reeve.Unknown
						})
					d := over(h, turn.ID)
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
