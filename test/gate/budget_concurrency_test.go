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

// Of concurrent calls, no more pass than the budget allows, in every effect class.
func TestG17_ConcurrentCallsNeverOverspend(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		t.Run(string(effect), func(t *testing.T) {
			var ran kit.Counter
			h := reevetest.Start(t, newCostlyTool("x", effect, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10}, &ran))
			a := h.Agent("a", "x")
			kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 55}})
			kit.SetBudget(h, "agent:a", map[string]any{"limit": map[string]any{"calls": 100}})
			var ok, over atomic.Int64
			var wg sync.WaitGroup
			for range 24 {
				wg.Go(func() {
					switch _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "x"}); status {
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
			if ok.Load() != 5 || over.Load() != 19 || (effect != reeve.Local && ran.Count() != 5) {
				t.Errorf("%d passed, %d were refused, %d ran", ok.Load(), over.Load(), ran.Count())
			}
			for _, s := range []string{"workspace", "agent:" + a.ID} {
				if b := kit.GetBudget(h, s); b.Used.Micros != 50 || b.Used.Calls != 5 || !b.Reserved.IsZero() {
					t.Errorf("%s shows %+v", s, b)
				}
			}
			if n := len(kit.PairCalls(h, kit.ListThread(h, a.ID, ""))); n != 24 {
				t.Errorf("%d actions", n)
			}
		})
	}
}

// A reservation is visible while a call runs, survives a crash that leaves the outcome open, and is released at the
// end.
func TestG17_ReservationsSurviveACrash(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	open := make(chan struct{})
	w.After = func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			<-open
		}
		return false
	}
	started, release := make(chan struct{}), make(chan struct{})
	slow := kit.Tool("slow", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		started <- struct{}{}
		<-release
		return "", nil
	})
	h := reevetest.StartWith(t, kit.FastConfig(t), slow)
	kit.DefineHTTPTool(h, "send", reeve.Keyed, map[string]any{"method": "POST", "url": w.URL},
		map[string]any{"timeout_ms": 20000, "cost": map[string]any{"micros": 7}})
	a := h.Agent("a", "send", "slow")
	kit.SetBudget(h, "workspace", map[string]any{"limit": map[string]any{"micros": 10, "calls": 10}})
	var wg sync.WaitGroup
	for _, id := range []string{"send", "slow"} {
		wg.Go(func() { _, _ = h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: id}) })
	}
	t.Cleanup(func() { close(open); close(release); wg.Wait() })
	<-w.Reached
	<-started
	if b := kit.GetBudget(h, "workspace"); b.Reserved.Micros != 7 || b.Reserved.Calls != 2 || b.Used.Calls != 0 {
		t.Errorf("under way: %+v", b)
	}
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "send"}); status != http.StatusPaymentRequired {
		t.Errorf("%d %+v", status, p)
	}
	after := kit.RestartAfterCrash(h, slow)
	op := kit.ListOperations(after)[0]
	if got := finishOperation(after, op.ID); got.State != reeve.Committed || got.Spent.Calls != 1 {
		t.Errorf("%+v", got)
	}
	// the read left nothing to finish: what it held is dropped
	after.RunUntilIdle(t.Context())
	// the interrupted call reports no cost, so its declared cost is charged
	if b := kit.GetBudget(after, "workspace"); !b.Reserved.IsZero() || b.Used.Calls != 1 || b.Used.Micros != 7 {
		t.Errorf("after the crash: %+v", b)
	}
	kit.SetBudget(after, "workspace", map[string]any{"limit": map[string]any{"micros": 14}})
	if res := after.Call(a.ID, "send", nil); res.State != reeve.Committed {
		t.Errorf("%+v", res)
	}
}

// A budget whose parent changes, or that is deleted, while a call runs keeps no reservation of that call.
func TestG17_BudgetChangeDuringACallReleasesReservations(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed} {
		started, release := make(chan struct{}), make(chan struct{})
		slow := kit.Tool("slow", effect, func(context.Context, *reeve.Invocation) (any, error) {
			started <- struct{}{}
			<-release
			return "", nil
		})
		h := reevetest.StartWith(t, kit.FastConfig(t), slow)
		a := h.Agent("a", "slow")
		limit := map[string]any{"calls": 10}
		kit.SetBudget(h, "run:old", map[string]any{"limit": limit})
		kit.SetBudget(h, "run:new", map[string]any{"limit": limit})
		kit.SetBudget(h, "agent:a", map[string]any{"limit": limit, "parent": "run:old"})
		kit.SetBudget(h, "workspace", map[string]any{"limit": limit})
		done := make(chan error, 1)
		go func() {
			_, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "slow"})
			done <- err
		}()
		<-started
		if b := kit.GetBudget(h, "run:old"); b.Reserved.Calls != 1 {
			t.Errorf("%s, under way: %+v", effect, b)
		}
		kit.SetBudget(h, "agent:a", map[string]any{"limit": limit, "parent": "run:new"})
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/budgets/workspace", nil)
		go func() { <-started }() // a read is judged again, and so made again
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		// what was claimed of it before is not claimed now
		kit.SetBudget(h, "workspace", map[string]any{"limit": limit})
		for subject, used := range map[string]int64{"run:old": 0, "run:new": 1, "agent:" + a.ID: 1, "workspace": 0} {
			if b := kit.GetBudget(h, subject); !b.Reserved.IsZero() || b.Used.Calls != used {
				t.Errorf("%s, %s: %+v", effect, subject, b)
			}
		}
	}
}

// Budgets are locked in one order, parents included, so that two calls on the same budgets do not deadlock: neither
// when they reserve nor when they spend.
func TestG17_BudgetsAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	var during atomic.Pointer[func()]
	look := kit.Tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		if f := during.Swap(nil); f != nil {
			(*f)()
		}
		return "seen", nil
	})
	h := reevetest.StartWith(t, cfg, look)
	a, b := h.Agent("a", "look"), h.Agent("b", "look")
	limit := kit.Object{"calls": 100}
	kit.SetBudget(h, "workspace", kit.Object{"limit": limit})
	kit.SetBudget(h, "agent:"+b.ID, kit.Object{"limit": limit})
	kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": limit, "parent": "agent:" + b.ID})
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
		go func() { done <- h.Do("POST", "/api/agents/a/calls", kit.Call{"tool": "look"}).Status }()
		kit.Eventually(t, "a call that "+when+" waits for the parent", func() (waits bool) {
			err := watch.QueryRow(ctx,
				"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = "+
					"'Lock'").Scan(&waits)
			return err == nil && waits
		})
		if _, err := watch.Exec(ctx, "SELECT 1 FROM budgets WHERE subject = 'workspace' FOR UPDATE NOWAIT"); err != nil {
			t.Errorf("a call that %s and waits for the parent holds what comes after it: %v", when, err)
		}
		run(other, "COMMIT")
		if status := <-done; status != http.StatusOK {
			t.Errorf("a call that %s: %d", when, status)
		}
	}
}

func TestG17_TwoServersNeverOverspend(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed, reeve.Local} {
		t.Run(string(effect), func(t *testing.T) {
			var ran kit.Counter
			servers := kit.StartTwoServers(t, newCostlyTool("x", effect, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10},
				&ran))
			a := servers[0].Agent("a", "x")
			kit.SetBudget(servers[0], "workspace", map[string]any{"limit": map[string]any{"micros": 55}})
			var ok atomic.Int64
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					switch _, p, status := kit.TryCall(servers[i%2], a.ID, kit.Call{"tool": "x"}); status {
					case http.StatusOK:
						ok.Add(1)
					case http.StatusPaymentRequired:
					default:
						t.Errorf("%d %+v", status, p)
					}
				})
			}
			wg.Wait()
			if b := kit.GetBudget(servers[1], "workspace"); ok.Load() != 5 || b.Used.Micros != 50 ||
				!b.Reserved.IsZero() {
				t.Errorf("%d passed, %+v", ok.Load(), b)
			}
		})
	}
}
