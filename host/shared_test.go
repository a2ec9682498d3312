package host_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Servers that share a database have a directory each: the one that came first keeps its own, with the address in it.
func TestSharedDatabase_NeedsADirectoryEach(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	first := reevetest.Run(t, cfg)
	address, err := os.ReadFile(filepath.Join(cfg.Dir, "server.json"))
	if err != nil || !strings.Contains(string(address), first.URL) {
		t.Fatalf("%s, %v", address, err)
	}
	h, err := host.New(t.Context(), cfg)
	if told := reeve.AsError(err); h != nil || told.Code != reeve.Unavailable ||
		!strings.Contains(told.Message, "another Reeve is using the data directory") ||
		!strings.Contains(told.Hint, "--dir") {
		t.Fatalf("%v, %v", h, err)
	}
	if now, err := os.ReadFile(filepath.Join(cfg.Dir, "server.json")); err != nil || string(now) != string(address) {
		t.Errorf("the address became %s, %v", now, err)
	}
	first.Stop()
	if now, err := os.ReadFile(filepath.Join(cfg.Dir, "server.json")); err == nil {
		t.Errorf("it has ended, and says that it is to be found at %s", now)
	}
	reevetest.StartWith(t, cfg) // once it has ended, another may
}

// A server that starts for the first time while another does, which has made the first workspace and not said so yet,
// waits for it and makes no second.
func TestSharedDatabase_TwoFirstStartsAtOnce(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	h, err := host.New(t.Context(), cfg) // the schema is there now
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	other, err := pgx.Connect(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		"INSERT INTO workspaces (id, name, revision, stopped_at, stop_reason, created_at) VALUES ('default', "+
			"'Default', 1, 0, '', 1)"); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { _, err := h.Handler(t.Context()); started <- err }()
	kit.Eventually(t, "it waits for the other", func() (waits bool) {
		err := tx.QueryRow(t.Context(),
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits)
		return err == nil && waits
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Error(err)
	}
}

// What holds for the calls of one server holds for those of two: the same call is made once, however it comes in.
func TestG13_TwoServersMakeTheSameCallOnce(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	servers := kit.StartTwoServers(t, kit.Tool("keyed", reeve.Keyed, ran.Handle),
		kit.Tool("put", reeve.Local, put(nil)))
	a := servers[0].Agent("a", "keyed", "put")
	for _, id := range []string{"keyed", "put"} {
		var fresh atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				res, p, status := kit.TryCall(servers[i%2], a.ID, kit.Call{"tool": id}, "Idempotency-Key", "k"+id)
				if status != http.StatusOK && status != http.StatusAccepted {
					t.Errorf("%d %+v", status, p)
				}
				if !res.Replayed {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		if fresh.Load() != 1 {
			t.Errorf("%s: %d of them made it", id, fresh.Load())
		}
	}
	if n := len(kit.ListOperations(servers[1])); ran.Count() != 1 || n != 2 {
		t.Errorf("%d ran, %d operations", ran.Count(), n)
	}
}

// An approval is answered once and its call run once, whichever server hears of it.
func TestG14_TwoServersRunAnApprovedCallOnce(t *testing.T) {
	t.Parallel()
	var g guarded
	servers := kit.StartTwoServers(t, g.tool())
	a := servers[0].Agent("a", "guarded")
	for round := range 3 {
		g.ran.N.Store(0)
		res := servers[0].Call(a.ID, "guarded", map[string]any{"round": round})
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if servers[i%2].Do("POST", "/api/approvals/"+res.ApprovalID+"/decision",
					map[string]any{"decision": "approve"}).Status == http.StatusOK {
					won.Add(1)
				}
				if _, err := servers[(i+1)%2].Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		finishOperation(servers[1], res.OperationID)
		if op := kit.GetOperation(servers[0], res.OperationID); won.Load() != 1 || g.ran.Count() != 1 ||
			op.State != reeve.Committed {
			t.Errorf("%d answers, %d ran, %+v", won.Load(), g.ran.Count(), op)
		}
	}
}

// What one server has changed before a call was parked is no reason for another, which has not heard of it, to refuse
// the call once it is approved.
func TestG14_AnApprovalHoldsOnAServerThatKnewLess(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	servers := kit.StartTwoServers(t, kit.Tool("keyed", reeve.Keyed, ran.Handle),
		kit.Tool("late", reeve.Keyed, ran.Handle))
	a := servers[0].Agent("a", "keyed")
	servers[1].Call(a.ID, "keyed", nil) // fills what it remembers
	ran.N.Store(0)
	servers[0].Want(http.StatusOK, nil, "PATCH", "/api/agents/a",
		map[string]any{"policy": map[string]any{"tools": map[string]any{"keyed": "ask", "late": "ask"}}})
	servers[0].Want(http.StatusCreated, nil, "POST", "/api/agents/a/tools", map[string]any{"tool_id": "late"})
	for i, id := range []string{"keyed", "late"} {
		res := servers[0].Call(a.ID, id, nil)
		servers[1].Want(http.StatusOK, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
			map[string]any{"decision": "approve"})
		if op := finishOperation(servers[1], res.OperationID); op.State != reeve.Committed || ran.Count() != i+1 {
			t.Errorf("%s: %d ran, %+v", id, ran.Count(), op)
		}
	}
}

func TestG17_TwoServersNeverOverspend(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed, reeve.Local} {
		t.Run(string(effect), func(t *testing.T) {
			var ran kit.Counter
			servers := kit.StartTwoServers(t, spender("x", effect, reeve.Amount{Micros: 10}, reeve.Amount{Micros: 10},
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

// A switch thrown on one server stops the other too, at once, although it has seen nothing of it.
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
		servers[1].Call(a.ID, id, nil) // fills what it remembers
	}
	stop(servers[0], "a")
	ran.N.Store(0)
	for _, id := range []string{"keyed", "local"} {
		if _, p, status := kit.TryCall(servers[1], a.ID, kit.Call{"tool": id}); status != http.StatusLocked {
			t.Errorf("%s: %d %+v", id, status, p)
		}
	}
	resume(servers[1], "a")
	for _, id := range []string{"keyed", "local"} {
		if _, p, status := kit.TryCall(servers[0], a.ID, kit.Call{"tool": id}); status != http.StatusOK {
			t.Errorf("%s: %d %+v", id, status, p)
		}
	}
	// A tool that is taken away while a read is under way: its answer is not given.
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

// What a person has approved does not begin after a stop that came while it was let go: here, while it waited for a
// budget that another call held.
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
			stop(h, "a")
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Prepared {
				t.Errorf("after the stop it is %s", op.State)
			}
			resume(h, "a")
			if op := finishOperation(h, res.OperationID); op.State != reeve.Committed {
				t.Errorf("resumed, it is %s", op.State)
			}
		})
	}
}

// The owner's token of each server is valid in every workspace, whoever made it; other tokens stay where they are.
func TestI06_EveryServersOwnerIsOwnerOfAll(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	apart := kit.NewTokenFor(servers[0], "bob", "owner") // valid in all there is now, and not in what comes
	servers[0].Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "team"})
	servers[1].Want(http.StatusOK, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team")
	alike := func(more map[string]any) []string { // called as the servers' own are, and yet not one of them
		var made struct {
			Token string `json:"token"`
		}
		more["name"], more["user"], more["role"] = "owner", "owner", "owner"
		servers[0].Want(http.StatusCreated, &made, "POST", "/api/tokens", more)
		return []string{"Authorization", "Bearer " + made.Token}
	}
	partial := alike(map[string]any{"workspaces": []string{"team"}})
	passing := alike(map[string]any{"workspaces": []string{"default", "team"}, "expires_at": time.Now().Add(time.Hour)})
	servers[1].Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "crew"}, "X-Workspace-Id",
		"team")
	for _, token := range [][]string{partial, passing} {
		servers[0].Want(http.StatusOK, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", "team"},
			token...)...)
		servers[0].Want(http.StatusForbidden, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", "crew"},
			token...)...)
	}
	for _, h := range servers {
		var list api.WorkspaceList
		h.Want(http.StatusOK, &list, "GET", "/api/workspaces", nil)
		if len(list.Workspaces) != 3 {
			t.Errorf("%+v", list)
		}
		for _, w := range []string{"team", "crew"} {
			h.Want(http.StatusForbidden, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", w},
				apart...)...)
		}
	}
	for round := range 5 { // at once: one of them makes it, and the others hear that it is there
		var made, there atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				switch r := servers[i%2].Do("POST", "/api/workspaces",
					map[string]any{"id": "w" + string(rune('0'+round))}); r.Status {
				case http.StatusCreated:
					made.Add(1)
				case http.StatusConflict:
					there.Add(1)
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 || there.Load() != 5 {
			t.Errorf("%d were made, %d there already", made.Load(), there.Load())
		}
	}
}

// A workspace that the token in the file is not valid in, as a Reeve of old left it, is opened to it at the next start.
func TestI06_AnOwnerGetsBackWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir := h.Dir()
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "team"})
	less := strings.TrimPrefix(kit.NewTokenFor(h, "less", "owner")[1], "Bearer ")
	h.Want(http.StatusForbidden, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team", "Authorization",
		"Bearer "+less)
	h.Stop()
	if err := os.WriteFile(filepath.Join(dir, "owner.token"), []byte(less), 0o600); err != nil {
		t.Fatal(err)
	}
	h = reevetest.StartWith(t, host.Config{Dir: dir})
	h.Want(http.StatusOK, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team")
	if h.Token != less {
		t.Error("a token that is valid was made anew")
	}
}
