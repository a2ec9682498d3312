package gate_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

func stopAgent(h *reevetest.Host, agent string) {
	h.T.Helper()
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", map[string]any{"agent": agent, "reason": "a fire drill"})
}

func resumeAgent(h *reevetest.Host, agent string) {
	h.T.Helper()
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", map[string]any{"agent": agent})
}

func TestG25_TheKillSwitchStopsOneOrAll(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	var g guardedTool
	cfg := kit.FastConfig(t)
	tools := []reeve.Tool{kit.Tool("read", reeve.Read, ran.Handle), kit.Tool("local", reeve.Local, ran.Handle),
		kit.Tool("keyed", reeve.Keyed, ran.Handle), kit.Tool("unsafe", reeve.Unsafe, ran.Handle), g.tool()}
	h := reevetest.StartWith(t, cfg, tools...)
	a, b := h.Agent("a", "read", "local", "keyed", "unsafe", "guarded"), h.Agent("b", "local", "guarded")
	for _, whom := range []string{"a", ""} {
		approved := h.Call(a.ID, "guarded", map[string]any{"n": 1})
		parked := h.Call(a.ID, "guarded", map[string]any{"n": 2})
		kit.Decide(h, approved.ApprovalID, "approve")
		stopAgent(h, whom)
		ran.N.Store(0)
		for _, id := range []string{"local", "keyed", "unsafe", "guarded"} {
			_, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": id})
			if status != http.StatusLocked || p.Code != reeve.Stopped {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
		if ran.Count() != 0 {
			t.Errorf("%d ran while stopped", ran.Count())
		}
		if res := h.Call(a.ID, "read", nil); res.IsError { // reads are still allowed
			t.Errorf("%+v", res)
		}
		if _, _, status := kit.TryCall(h, b.ID, kit.Call{"tool": "local"}); (status == http.StatusOK) != (whom == "a") {
			t.Errorf("the other agent: %d with %q stopped", status, whom)
		}
		// A call that is approved while the agent is stopped waits, also across a restart, and runs after the resume.
		kit.Decide(h, parked.ApprovalID, "approve")
		h.RunUntilIdle(t.Context())
		h.Stop()
		h = reevetest.StartWith(t, cfg, tools...)
		h.RunUntilIdle(t.Context())
		for _, res := range []reeve.Result{approved, parked} {
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Prepared || g.ran.Count() != 0 {
				t.Errorf("%+v after %d runs", op, g.ran.Count())
			}
		}
		resumeAgent(h, whom)
		finishOperation(h, approved.OperationID)
		finishOperation(h, parked.OperationID)
		for _, res := range []reeve.Result{approved, parked} {
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Committed {
				t.Errorf("%+v", op)
			}
		}
		if g.ran.Count() != 2 {
			t.Errorf("%d ran after it was resumed", g.ran.Count())
		}
		g.ran.N.Store(0)
		if res := h.Call(a.ID, "local", nil); res.State != reeve.Committed {
			t.Errorf("%+v", res)
		}
	}
}

// After the kill switch is on no call starts, however many are being decided.
func TestG25_NothingStartsAfterTheSwitch(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Local} {
		t.Run(string(effect), func(t *testing.T) {
			var off, late, ran atomic.Int64
			x := kit.Tool("x", effect, func(context.Context, *reeve.Invocation) (any, error) {
				ran.Add(1)
				return "", nil
			})
			h := reevetest.Start(t, x)
			a := h.Agent("a", "x")
			var wg sync.WaitGroup
			begun := make(chan struct{}, 1000)
			for range 8 {
				wg.Go(func() {
					for range 25 {
						was := off.Load()
						_, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "x"})
						begun <- struct{}{}
						if err == nil && was == 1 {
							late.Add(1)
						}
						if err != nil && reeve.CodeOf(err) != reeve.Stopped {
							t.Error(err)
						}
					}
				})
			}
			for range 20 {
				<-begun
			}
			stopAgent(h, "")
			off.Store(1)
			wg.Wait()
			if late.Load() != 0 {
				t.Errorf("%d began after the switch", late.Load())
			}
			committed := 0
			for _, op := range kit.ListOperations(h) {
				if op.State == reeve.Committed {
					committed++
				}
			}
			if effect == reeve.Keyed && int64(committed) != ran.Load() {
				t.Errorf("%d ran, %d are recorded", ran.Load(), committed)
			}
			if n := len(kit.PairCalls(h, kit.ListThread(h, a.ID, ""))); n != 200 {
				t.Errorf("%d actions", n)
			}
		})
	}
}

// A call that is being retried when the switch is turned on sends no more requests.
func TestG25_KillSwitchEndsRetries(t *testing.T) {
	t.Parallel()
	var n kit.Counter
	first := make(chan struct{})
	x := kit.Tool("x", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		if n.N.Add(1) == 1 {
			close(first)
		}
		return nil, reeve.Errorf(reeve.Unavailable, "down")
	})
	x.Retry = reeve.Retry{Attempts: 10, DelayMS: 300, MaxMS: 300}
	h := reevetest.Start(t, x)
	a := h.Agent("a", "x")
	got := make(chan reeve.Result)
	go func() {
		res, _ := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "x"})
		got <- res
	}()
	<-first
	stopAgent(h, "a")
	if res := <-got; res.State != reeve.Failed || n.Count() != 1 {
		t.Errorf("%d attempts, %+v", n.Count(), res)
	}
}

// Retries end if the delegator is stopped or the run is cancelled.
func TestG25_StopEndsRetriesOnBehalf(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		for name, end := range map[string]func(h *reevetest.Host, run string){
			"stopped": func(h *reevetest.Host, _ string) { stopAgent(h, "boss") },
			"cancelled": func(h *reevetest.Host, run string) {
				h.Want(http.StatusOK, nil, "POST", "/api/runs/"+run+"/cancel", nil)
			},
		} {
			t.Run(engine+", "+name, func(t *testing.T) {
				var n kit.Counter
				first, ended := make(chan string, 1), make(chan struct{})
				act := kit.Tool("act", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
					if n.N.Add(1) == 1 {
						first <- inv.Run
						<-ended
						return nil, reeve.Errorf(reeve.Unavailable, "down")
					}
					return "done", nil
				})
				act.Retry = reeve.Retry{Attempts: 3, DelayMS: 1}
				h, _ := kit.RunBossAndHelper(t, engine, "allow", act)
				kit.StartTurn(h, h.StartConversation("boss").ID, "go")
				end(h, <-first)
				close(ended)
				var op reeve.Operation
				kit.Eventually(t, "the attempt is recorded", func() bool {
					for _, op = range kit.ListOperations(h) {
						if op.Tool == "act" && op.State != reeve.Dispatched {
							return true
						}
					}
					return false
				})
				if op.State != reeve.Failed || n.Count() != 1 {
					t.Errorf("%d attempts, %+v", n.Count(), op)
				}
			})
		}
	}
}

// While everything is stopped, nothing is sent again. An outcome that cannot be determined goes to a person at once.
func TestG25_OpenOutcomesWait(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	h, _, op := crashMidCall(t, w, reeve.Keyed, nil, nil)
	stopAgent(h, "")
	for range 3 {
		if _, err := h.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, requests := w.Count(); requests != 1 || kit.GetOperation(h, op.ID).State != reeve.Dispatched {
		t.Errorf("%d requests, %+v", requests, kit.GetOperation(h, op.ID))
	}
	resumeAgent(h, "")
	if got := finishOperation(h, op.ID); got.State != reeve.Committed {
		t.Errorf("%+v", got)
	}
}

// A kill switch that is turned on at one server stops the other at once, although its cache is older.
func TestG25_ASwitchOnOneServerStopsTheOther(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	started, release := make(chan struct{}), make(chan struct{})
	slow := kit.Tool("slow", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		close(started)
		<-release
		return "seen", nil
	})
	servers := kit.StartTwoServers(t, kit.Tool("keyed", reeve.Keyed, ran.Handle),
		kit.Tool("local", reeve.Local, ran.Handle), slow)
	a := servers[0].Agent("a", "keyed", "local", "slow")
	for _, id := range []string{"keyed", "local"} {
		servers[1].Call(a.ID, id, nil) // fills the cache of the second server
	}
	stopAgent(servers[0], "a")
	ran.N.Store(0)
	for _, id := range []string{"keyed", "local"} {
		if _, p, status := kit.TryCall(servers[1], a.ID, kit.Call{"tool": id}); status != http.StatusLocked {
			t.Errorf("%s: %d %+v", id, status, p)
		}
	}
	resumeAgent(servers[1], "a")
	for _, id := range []string{"keyed", "local"} {
		if _, p, status := kit.TryCall(servers[0], a.ID, kit.Call{"tool": id}); status != http.StatusOK {
			t.Errorf("%s: %d %+v", id, status, p)
		}
	}
	// If a tool is detached while a read runs, the answer is discarded.
	done := make(chan int)
	go func() {
		_, _, status := kit.TryCall(servers[1], a.ID, kit.Call{"tool": "slow"})
		done <- status
	}()
	<-started
	servers[0].Want(http.StatusNoContent, nil, "DELETE", "/api/agents/a/tools/slow", nil)
	close(release)
	if status := <-done; status != http.StatusNotFound {
		t.Errorf("status %d after the tool was taken away", status)
	}
}

// An approved call does not begin after a stop, not even if it waited for a locked budget when the stop came.
func TestG25_NothingApprovedBeginsAfterAStop(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Local} {
		t.Run(string(effect), func(t *testing.T) {
			ctx := t.Context()
			cfg := kit.FastConfig(t)
			cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
			act := kit.Tool("act", effect, new(kit.Counter).Handle)
			act.Tier = reeve.Privileged
			h := reevetest.StartWith(t, cfg, act)
			a := h.Agent("a", "act")
			kit.SetBudget(h, "workspace", kit.Object{"limit": kit.Object{"calls": 100}})
			res := h.Call(a.ID, "act", nil)
			kit.Decide(h, res.ApprovalID, "approve")
			other, err := pgx.Connect(ctx, cfg.Database)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Close(context.Background()) })
			tx, err := other.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(ctx, "SELECT 1 FROM budgets WHERE subject = 'workspace' FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { _, err := h.Step(ctx); done <- err }()
			kit.Eventually(t, "it waits for the budget", func() (waits bool) {
				err := tx.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = "+
					"current_database() AND wait_event_type = 'Lock'").Scan(&waits)
				return err == nil && waits
			})
			stopAgent(h, "a")
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Prepared {
				t.Errorf("after the stop it is %s", op.State)
			}
			resumeAgent(h, "a")
			if op := finishOperation(h, res.OperationID); op.State != reeve.Committed {
				t.Errorf("resumed, it is %s", op.State)
			}
		})
	}
}
