package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Conformance(t, func(t *testing.T) *store.DB { return storetest.OpenPostgres(t) })
}

func BenchmarkUpdate(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) *store.DB { return storetest.OpenPostgres(b) })
}

func TestMigration(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyPostgresURL(t)
	storetest.Migration(t, func(t *testing.T) store.Engine {
		e, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err != nil {
			t.Error(err)
		}
		return e
	})
}

func TestForeignTables(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyPostgresURL(t)
	storetest.ForeignTables(t, func(t *testing.T) store.Engine {
		e, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

// openBare opens an engine with one table and without a store.
func openBare(t *testing.T, hook store.CommitHook) (*postgres.Engine, *sql.DB) {
	t.Helper()
	e, err := postgres.Open(t.Context(), postgres.Config{URL: storetest.EmptyPostgresURL(t), Hook: hook})
	if err != nil {
		t.Fatal(err)
	}
	h, _, err := e.Migrator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := h.ExecContext(t.Context(), "CREATE TABLE things (id TEXT PRIMARY KEY, n BIGINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return e, h
}

func insertThing(ctx context.Context, c store.Conn, id string) error {
	return c.Exec(ctx, nil, "INSERT INTO things (id, n) VALUES ($1, 0)", id)
}

func countThings(t *testing.T, h *sql.DB) (n int) {
	t.Helper()
	if err := h.QueryRowContext(t.Context(), "SELECT count(*) FROM things").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func faultKind(err error) store.FaultKind {
	var f store.Fault
	errors.As(err, &f)
	return f.Kind
}

// terminateOthers makes the server terminate all connections except the one that runs the statement.
const terminateOthers = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() " +
	"AND pid <> " +
	"pg_backend_pid()"

func TestConnectionLost(t *testing.T) {
	t.Parallel()
	var cutVia atomic.Pointer[sql.DB]
	var cutter sync.WaitGroup
	e, h := openBare(t, store.CommitHook{OnBefore: func() {
		if h := cutVia.Swap(nil); h != nil {
			cutter.Go(func() { // terminates the connection as soon as the server executes the statement
				for cut := false; !cut; {
					var n int
					err := h.QueryRow("SELECT count(*) FROM (" + terminateOthers +
						" AND wait_event = 'PgSleep') AS cut").Scan(&n)
					cut = err != nil || n > 0
				}
			})
		}
	}})
	ctx := t.Context()

	// During the transaction: the error is UNAVAILABLE, and nothing is changed.
	err := e.Update(ctx, func(c store.Conn) error {
		if err := insertThing(ctx, c, "a"); err != nil {
			return err
		}
		if _, err := c.ExecCount(ctx, "UPDATE things SET n = 1"); err != nil {
			return err
		}
		if _, err := h.ExecContext(ctx, terminateOthers); err != nil {
			return err
		}
		_, err := c.ExecCount(ctx, "UPDATE things SET n = 2")
		return err
	})
	if faultKind(err) != store.FaultDown || reeve.CodeOf(store.UserError(err)) != reeve.Unavailable {
		t.Fatalf("connection lost during the transaction: %v", err)
	}
	if countThings(t, h) != 0 {
		t.Fatal("part of the transaction is stored")
	}

	// During the commit: the outcome is unknown.
	for name, before := range map[string]func(store.Conn) error{
		"one batch":   func(store.Conn) error { return nil },
		"two batches": func(c store.Conn) error { _, err := c.ExecCount(ctx, "UPDATE things SET n = 3"); return err },
	} {
		err = e.Update(ctx, func(c store.Conn) error {
			if err := before(c); err != nil {
				return err
			}
			cutVia.Store(h)
			if err := insertThing(ctx, c, name); err != nil {
				return err
			}
			return c.Exec(ctx, nil, "SELECT pg_sleep(20)")
		})
		cutter.Wait()
		if faultKind(err) != store.FaultUncertain || reeve.CodeOf(store.UserError(err)) != reeve.UnknownOutcome {
			t.Fatalf("connection lost during the commit, %s: %v", name, err)
		}
	}
	if err := e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "works again") }); err != nil {
		t.Fatal(err)
	}
	// A caller that is canceled before the commit changes nothing.
	ended, cancel := context.WithCancel(ctx)
	err = e.Update(ended, func(c store.Conn) error {
		defer cancel()
		return insertThing(ended, c, "canceled before the commit")
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled: %v", err)
	}
	if n := countThings(t, h); n != 1 {
		t.Fatalf("%d things", n)
	}
}

// A canceled caller does not wait for its statement.
func TestCanceledDuringStatement(t *testing.T) {
	t.Parallel()
	e, h := openBare(t, store.CommitHook{})
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	err := e.Update(ctx, func(c store.Conn) error {
		time.AfterFunc(50*time.Millisecond, cancel)
		return errors.Join(insertThing(ctx, c, "a"),
			func() error { _, err := c.ExecCount(ctx, "SELECT pg_sleep(60)"); return err }())
	})
	if !errors.Is(err, context.Canceled) || time.Since(began) > 30*time.Second {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
	if err := e.Update(t.Context(), func(c store.Conn) error { return insertThing(t.Context(), c, "b") }); err != nil ||
		countThings(t, h) != 1 {
		t.Fatalf("%v; %d things", err, countThings(t, h))
	}
}

// A caller that is canceled just as the server responds does not leave a broken connection in the pool, on which the
// next caller would fail with FaultDown. The statement ends the transaction, so that release sends nothing.
func TestCanceledDuringResponse(t *testing.T) {
	t.Parallel()
	e, err := postgres.Open(t.Context(), postgres.Config{URL: storetest.EmptyPostgresURL(t), Conns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	if err := e.View(ctx, func(c store.Conn) error {
		rows, err := c.Query(ctx, "rollback")
		cancel()
		if err != nil {
			return err
		}
		return rows.Close()
	}); err != nil {
		t.Errorf("canceled caller: %v", err)
	}
	if err := e.View(t.Context(),
		func(c store.Conn) error { _, err := c.ExecCount(t.Context(), "SELECT 1"); return err }); err != nil {
		t.Errorf("next caller: %v", err)
	}
}

// Calls to a server that stops responding fail after the timeout. The server is used again when it responds.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	_, h := openBare(t, store.CommitHook{})
	ctx := t.Context()
	var url string
	if err := h.QueryRowContext(ctx, "SELECT current_database()").Scan(&url); err != nil {
		t.Fatal(err)
	}
	address, hold, _ := storetest.Hang(t)
	e, err := postgres.Open(ctx,
		postgres.Config{URL: fmt.Sprintf("postgres://reeve@%s/%s?sslmode=disable&pool_max_conns=2", address, url),
			Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	listThings := func() error {
		return e.View(ctx, func(c store.Conn) error {
			rows, err := c.Query(ctx, "SELECT id FROM things")
			if err != nil {
				return err
			}
			return rows.Close()
		})
	}
	if err := errors.Join(listThings(),
		e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "a") })); err != nil {
		t.Fatal(err)
	}
	hold(true)
	began := time.Now()
	var all sync.WaitGroup
	for range 3 { // more calls than connections
		all.Go(func() {
			if err := listThings(); faultKind(err) != store.FaultDown {
				t.Errorf("query: %v", err)
			}
		})
		all.Go(func() {
			err := e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "b") })
			if kind := faultKind(err); kind != store.FaultUncertain && kind != store.FaultDown {
				t.Errorf("commit: %v", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the calls took %s", took)
	}
	hold(false)
	var last error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = listThings(); last == nil {
			return
		}
	}
	t.Fatalf("the server is not used again: %v", last)
}

// Close ends calls that wait for a hanging server, and does not wait for the server.
func TestCloseWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	_, h := openBare(t, store.CommitHook{})
	ctx := t.Context()
	var name string
	if err := h.QueryRowContext(ctx, "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	address, hold, _ := storetest.Hang(t)
	url := fmt.Sprintf("postgres://reeve@%s/%s?sslmode=disable", address, name)
	e, err := postgres.Open(ctx, postgres.Config{URL: url, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- e.View(ctx, func(c store.Conn) error {
			if err := c.Flush(ctx); err != nil { // begins the transaction
				return err
			}
			hold(true)
			close(held)
			_, err := c.Query(ctx, "SELECT id FROM things")
			return err
		})
	}()
	<-held
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; faultKind(err) != store.FaultDown {
		t.Errorf("call before Close: %v", err)
	}
	err = e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, "b") })
	if faultKind(err) != store.FaultDown {
		t.Errorf("call after Close: %v", err)
	}
}

// Both transactions of a deadlock succeed, because the one that is refused runs again.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	e, h := openBare(t, store.CommitHook{})
	ctx := t.Context()
	if _, err := h.ExecContext(ctx, "INSERT INTO things VALUES ('a', 0), ('b', 0)"); err != nil {
		t.Fatal(err)
	}
	var met sync.WaitGroup
	met.Add(2)
	var runs atomic.Int32
	touch := func(first, second string) error {
		once := sync.OnceFunc(func() { met.Done(); met.Wait() })
		return e.Update(ctx, func(c store.Conn) error {
			runs.Add(1)
			if _, err := c.ExecCount(ctx, "UPDATE things SET n = n + 1 WHERE id = $1", first); err != nil {
				return err
			}
			once()
			return c.Exec(ctx, nil, "UPDATE things SET n = n + 1 WHERE id = $1", second)
		})
	}
	var all sync.WaitGroup
	for _, o := range [][2]string{{"a", "b"}, {"b", "a"}} {
		all.Go(func() {
			if err := touch(o[0], o[1]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var sum int
	if err := h.QueryRowContext(ctx, "SELECT sum(n) FROM things").Scan(&sum); err != nil || sum != 4 {
		t.Fatal(sum, err)
	}
	if runs.Load() < 3 { // a repeated transaction may deadlock again, so there may be more than 3
		t.Fatalf("%d runs, want at least one repetition", runs.Load())
	}
}

// waitForLock returns when a transaction waits for a lock.
func waitForLock(t *testing.T, h *sql.DB) {
	t.Helper()
	for n := 0; n == 0; {
		if err := h.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").
			Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

// Adding mail and deleting its inbox exclude each other, so that no mail remains without an inbox.
func TestAddMailWhileInboxIsDeleted(t *testing.T) {
	t.Parallel()
	const ws, box = "ws_one", "box"
	for name, first := range map[string]string{"add waits for remove": "remove", "remove waits for add": "add"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			url := storetest.EmptyPostgresURL(t)
			db := storetest.Open(t, postgres.Config{URL: url}, storetest.Key)
			h, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			add := func(tx *store.Tx) error {
				n, err := tx.Mail().AddMail(ctx, ws, "ann", []reeve.Email{{MessageID: "a", Inbox: box},
					{MessageID: "b", Inbox: box}}, false)
				if err == nil && n.Added != 2 {
					t.Errorf("%+v", n)
				}
				return err
			}
			remove := func(tx *store.Tx) error {
				inbox, err := tx.Mail().LockInbox(ctx, ws, box)
				if err == nil {
					_, err = tx.Mail().DeleteMail(ctx, inbox, 100)
				}
				return err
			}
			for _, f := range []func(*store.Tx) error{
				func(tx *store.Tx) error {
					_, err := tx.Mail().AddMail(ctx, ws, "ann",
						[]reeve.Email{{MessageID: "of another", Inbox: "another"}, {MessageID: "before", Inbox: box}},
						false)
					return err
				},
				remove, // removes the mail and leaves the inbox
			} {
				if err := db.Update(ctx, f); err != nil {
					t.Fatal(err)
				}
			}
			one, other := add, remove
			if first == "remove" {
				one, other = remove, add
			}
			done := make(chan error, 1)
			if err := db.Update(ctx, func(tx *store.Tx) error {
				if err := one(tx); err != nil {
					return err
				}
				// The read sends the queued statements.
				if _, err := tx.Mail().ListInboxes(ctx, ws); err != nil {
					return err
				}
				go func() { done <- db.Update(ctx, other) }()
				waitForLock(t, h)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if err := db.Update(ctx, func(tx *store.Tx) error {
				_, err := tx.Mail().AddMail(ctx, ws, "ann", []reeve.Email{{MessageID: "after", Inbox: box}}, false)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			var orphaned, counted, stored int
			if err := h.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM emails e WHERE NOT EXISTS (SELECT 1
				FROM inboxes i WHERE i.id = e.inbox_id AND i.id = e.id >> 28)),
				(SELECT messages FROM inboxes WHERE name = $1), (SELECT count(*) FROM emails e JOIN inboxes i
				ON i.id = e.inbox_id WHERE i.name = $1)`, box).Scan(&orphaned, &counted, &stored); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"remove": 3, "add": 1}[first]
			if orphaned != 0 || counted != want || stored != want {
				t.Errorf("%d emails without an inbox, %d counted, %d stored; want 0, %d, %d", orphaned, counted, stored,
					want, want)
			}
		})
	}
}

// Transactions lock rows in one order: budgets, node, workspace, agent, rows of the agent. They lock an approval before
// its operation. Therefore no transaction is repeated because of a deadlock.
func TestLockOrder(t *testing.T) {
	t.Parallel()
	const ws = "ws_one"
	ctx := t.Context()
	revise := func(tx *store.Tx) error { return tx.BeginRevision(ctx, ws) }
	rename := func(name string) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
			a.Name = name
			return errors.Join(err, tx.Agents().ChangeAgent(ctx, a))
		}
	}
	destroy := func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
		a.Lifecycle = reeve.AgentDestroyed
		return errors.Join(err, tx.Agents().ChangeAgent(ctx, a))
	}
	stop := func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
		a.StoppedAt = new(tx.Now())
		return errors.Join(err, tx.Agents().UpdateAgent(ctx, a))
	}
	write := func(tx *store.Tx) error { // locks like a call that writes to the journal, before the call is recorded
		_, err := tx.JournalWriter(ctx, store.JournalScope{Workspace: ws, All: true})
		return err
	}
	record := func(tx *store.Tx) error {
		_, err := tx.Queue().LockWorkspace(ctx, ws)
		return err
	}
	timer := func(id string) reeve.Timer {
		return reeve.Timer{ID: id, WorkspaceID: ws, AgentID: "agt_one", UserID: "ann", State: reeve.TimerPaused}
	}
	subscription := func(id string) reeve.Subscription {
		return reeve.Subscription{ID: id, WorkspaceID: ws, AgentID: "agt_one",
			Token: reeve.Token{Class: reeve.SemanticKey, Name: "x"}}
	}
	// a turn with a pending approval, and a run that one of its calls has started
	insertRuns := func(tx *store.Tx) error {
		one := reeve.Run{ID: "run_one", Key: "one", WorkspaceID: ws, AgentID: "agt_one", Reason: reeve.ReasonUser,
			Owner: "proc"}
		two := reeve.Run{ID: "run_two", Key: "two", WorkspaceID: ws, AgentID: "agt_one", Reason: reeve.ReasonUser,
			Owner: "proc", ParentID: one.ID,
			Ancestors: []reeve.Ancestor{{RunID: one.ID, AgentID: "agt_one"}}}
		_, err := tx.Runs().InsertRuns(ctx, []reeve.Run{one, two})
		op := reeve.Operation{ID: "op_one", WorkspaceID: ws, AgentID: "agt_one", CallID: "msg_one", RunID: one.ID,
			State: reeve.Parked}
		apr := reeve.Approval{ID: "apr_one", WorkspaceID: ws, OperationID: op.ID, CallID: op.CallID, AgentID: "agt_one",
			State: reeve.ApprovalPending}
		w, getErr := tx.Agents().GetWorkspace(ctx, ws)
		insertErr := tx.Ledger().InsertCall(ctx, store.Call{Operation: op, Request: []byte("{}")},
			store.Preconditions{Revision: w.Revision})
		return errors.Join(err, getErr, insertErr, tx.Ledger().InsertApproval(ctx, apr),
			tx.Runs().PutRunBudget(ctx, one, reeve.Amount{Calls: 9}),
			tx.Runs().PutRunBudget(ctx, two, reeve.Amount{Calls: 9}))
	}
	lockBudget := func(subject string) func(*store.Tx) error { // locks like a call before it is recorded
		return func(tx *store.Tx) error {
			_, _, err := tx.Ledger().LockBudget(ctx, ws, subject)
			return err
		}
	}
	for name, c := range map[string]struct{ first, then, other func(*store.Tx) error }{
		"budget changed": {lockBudget("workspace"), record, func(tx *store.Tx) error {
			return tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: "workspace", Limit: reeve.Amount{Calls: 2}})
		}},
		"budget deleted": {lockBudget("workspace"), record, func(tx *store.Tx) error {
			return tx.Ledger().DeleteBudget(ctx, ws, "workspace")
		}},
		"run cancelled": {lockBudget("run:run_two"), record, func(tx *store.Tx) error {
			run, err := tx.Runs().GetRun(ctx, ws, "run_one")
			if err != nil {
				return err
			}
			_, err = tx.Runs().CancelRun(ctx, run, reeve.Errorf(reeve.Canceled, "enough"))
			return err
		}},
		"run cancelled while an approval is decided": {func(tx *store.Tx) error {
			return tx.Ledger().TransitionApproval(ctx, reeve.Approval{ID: "apr_one", State: reeve.ApprovalApproved},
				reeve.ApprovalPending)
		}, func(tx *store.Tx) error {
			was, err := tx.Ledger().GetOperation(ctx, ws, "op_one")
			is := was
			is.State = reeve.Prepared
			return errors.Join(err, tx.Ledger().TransitionOperation(ctx, was, is, nil))
		}, func(tx *store.Tx) error {
			run, err := tx.Runs().GetRun(ctx, ws, "run_one")
			if err != nil {
				return err
			}
			if _, err = tx.Runs().CancelRun(ctx, run, reeve.Errorf(reeve.Canceled, "enough")); err != nil {
				return err
			}
			if err := tx.Ledger().TransitionApproval(ctx, reeve.Approval{ID: "apr_one", State: reeve.ApprovalLapsed},
				reeve.ApprovalPending); reeve.CodeOf(err) != reeve.Conflict {
				return errors.Join(errors.New("an approved approval has lapsed"), err)
			}
			return nil
		}},
		"schedule created": {revise, rename("two"), func(tx *store.Tx) error {
			v := timer("tmr_two")
			v.State = reeve.TimerActive
			return tx.Queue().PutTimer(ctx, v)
		}},
		"schedule changed": {revise, destroy, func(tx *store.Tx) error {
			v, err := tx.Queue().GetTimer(ctx, ws, "", "tmr_one")
			return errors.Join(err, tx.Queue().PutTimer(ctx, v))
		}},
		"schedule created by a call": {func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) }, stop,
			func(tx *store.Tx) error {
				v := timer("tmr_two")
				v.State = reeve.TimerActive
				if err := tx.Queue().PutTimer(ctx, v); err != nil {
					return err
				}
				return record(tx)
			}},
		"subscription created": {write, record, func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(ctx, subscription("sub_two"))
		}},
		"subscription deleted": {write, record, func(tx *store.Tx) error {
			return tx.Queue().DeleteSubscription(ctx, ws, "sub_one")
		}},
		"agent created": {revise, rename("two"), func(tx *store.Tx) error {
			if err := tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_two", WorkspaceID: ws, Name: "two",
				Kind: "assistant", Lifecycle: reeve.AgentActive}); err != nil {
				return err
			}
			return tx.Agents().StampAgent(ctx, "agt_two")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.EmptyPostgresURL(t)
			db := storetest.Open(t, postgres.Config{URL: url}, storetest.Key)
			h, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if err := db.Update(ctx, func(tx *store.Tx) error {
				_, err := tx.Agents().InsertWorkspace(ctx, ws, ws)
				agent := reeve.Agent{ID: "agt_one", WorkspaceID: ws, Name: "one", Kind: "assistant",
					Lifecycle: reeve.AgentActive}
				return errors.Join(err, tx.Agents().InsertAgent(ctx, agent), tx.Agents().StampAgent(ctx, "agt_one"),
					tx.Queue().PutTimer(ctx, timer("tmr_one")),
					tx.Queue().InsertSubscription(ctx, subscription("sub_one")),
					tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: "workspace"}), insertRuns(tx))
			}); err != nil {
				t.Fatal(err)
			}
			var runs atomic.Int32
			done := make(chan error, 1)
			begin := sync.OnceFunc(func() {
				go func() { done <- db.Update(ctx, func(tx *store.Tx) error { runs.Add(1); return c.other(tx) }) }()
				waitForLock(t, h)
			})
			if err := db.Update(ctx, func(tx *store.Tx) error {
				runs.Add(1)
				if err := c.first(tx); err != nil {
					return err
				}
				// The read sends the queued statements.
				if _, err := tx.Agents().GetWorkspace(ctx, ws); err != nil {
					return err
				}
				begin()
				return c.then(tx)
			}); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil && name != "agent created" { // the other transaction has taken its name
				t.Error(err)
			}
			if n := runs.Load(); n != 2 {
				t.Errorf("%d runs of two transactions, want 2", n)
			}
		})
	}
}

func TestOpenFailureHidesPassword(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://me:hunter2@/x?host=" + t.TempDir()})
	if reeve.CodeOf(err) != reeve.Unavailable || strings.Contains(err.Error(), "hunter2") {
		t.Fatal(err)
	}
	_, err = postgres.Open(t.Context(), postgres.Config{URL: "postgres://me:hunter2@host:port/x"})
	if reeve.CodeOf(err) != reeve.Validation || strings.Contains(err.Error(), "hunter2") {
		t.Fatal(err)
	}
}

// Backup writes a file in the format of pg_dump.
func TestBackup(t *testing.T) {
	t.Parallel()
	e, h := openBare(t, store.CommitHook{})
	if _, err := h.ExecContext(t.Context(), "INSERT INTO things VALUES ('a', 0)"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy")
	if err := e.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "PGDMP") {
		t.Fatal(err)
	}
}

// In a batch, arguments arrive unchanged, an error is attributed to the statement that failed, and a failure rolls back
// the whole transaction.
func TestBatch(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e, h := openBare(t, store.CommitHook{})
	if _, err := h.ExecContext(ctx, `CREATE TABLE kinds (id BIGINT PRIMARY KEY, words TEXT NOT NULL, bytes BYTEA
		NOT NULL,
		other BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)`); err != nil {
		t.Fatal(err)
	}
	const insert = "INSERT INTO kinds (id, words, bytes, other) VALUES ($1, $2, $3, $4)"
	words, raw := `a 'quote', a "quote", a \\ and \\x41, $1, ünïcode 😀`, []byte("\x00\\x41 \\ \xff '")
	update := func(statements ...[]any) error {
		return e.Update(ctx, func(c store.Conn) error {
			var errs []error
			for i, args := range statements {
				refused := func(f store.Fault) error { return fmt.Errorf("statement %d: %w", i, f) }
				errs = append(errs, c.Exec(ctx, refused, insert, args...))
			}
			return errors.Join(errs...)
		})
	}
	check := func(want int) {
		t.Helper()
		var n int
		if err := h.QueryRowContext(ctx, "SELECT count(*) FROM kinds WHERE words = $1 AND bytes = $2", words, raw).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Fatalf("%d rows, want %d", n, want)
		}
	}
	if err := update([]any{1, words, raw, int64(-1)}, []any{int64(1) << 62, words, raw, 2}); err != nil {
		t.Fatal(err)
	}
	check(2)
	err := update([]any{3, words, raw, 3}, []any{1, words, raw, 4}, []any{5, words, raw, 5})
	if faultKind(err) != store.FaultUnique || !strings.HasPrefix(err.Error(), "statement 1: ") {
		t.Errorf("failure of the second statement: %v", err)
	}
	err = update([]any{3, words, raw, 3}, []any{4, words, raw, 2})
	if faultKind(err) != store.FaultUnique || strings.Contains(err.Error(), "statement") {
		t.Errorf("failure of the commit: %v", err)
	}
	check(2)
	var many [][]any
	for i := range 700 {
		many = append(many, []any{100 + i, words, raw, 100 + i})
	}
	if err := update(many...); err != nil {
		t.Fatal(err)
	}
	check(702)
}

// queryHook is an engine that runs a function once, before the next query of a transaction.
type queryHook struct {
	store.Engine
	beforeQuery func()
}

func (b *queryHook) Update(ctx context.Context, f func(store.Conn) error) error {
	return b.Engine.Update(ctx, func(c store.Conn) error { return f(queryHookConn{c, b}) })
}

type queryHookConn struct {
	store.Conn
	b *queryHook
}

func (c queryHookConn) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if f := c.b.beforeQuery; f != nil {
		c.b.beforeQuery = nil
		f()
	}
	return c.Conn.Query(ctx, query, args...)
}

// A key that its owner releases while another attempt reads the owner is claimed by the other attempt.
func TestIdempotencyKey_ReleasedDuringClaim(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e, err := postgres.Open(ctx, postgres.Config{URL: storetest.EmptyPostgresURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	b := &queryHook{Engine: e}
	db, err := store.Open(ctx, b, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Update(ctx, func(tx *store.Tx) error {
		return tx.System().RegisterProcess(ctx, "prc_1")
	}); err != nil {
		t.Fatal(err)
	}
	request := store.Request{ID: "req_1", Hash: "h", Process: "prc_1", Claim: "first"}
	active := func(string) bool { return true }
	claim := func() (old store.Request, isOwner bool) {
		t.Helper()
		if err := db.Update(ctx, func(tx *store.Tx) (err error) {
			old, isOwner, err = tx.Ledger().ClaimRequest(ctx, request, tx.Now().Add(-time.Hour), active)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return old, isOwner
	}
	if _, isOwner := claim(); !isOwner {
		t.Fatal("a new key was not claimed")
	}
	b.beforeQuery = func() {
		if err := db.Update(ctx, func(tx *store.Tx) error {
			return tx.Ledger().ReleaseRequest(ctx, request)
		}); err != nil {
			t.Error(err)
		}
	}
	if old, isOwner := claim(); !isOwner || old.Hash != "h" {
		t.Errorf("the released key was not claimed; its owner is %+v", old)
	}
}
