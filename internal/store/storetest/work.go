package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// work tests what processes do: claiming, heartbeats, approvals, budgets.
var work = map[string]func(*testing.T, *store.DB){
	// A summary that a process has taken, and of which it could not write what became of it, is not lost while the
	// process lives: it takes it again, and nobody else does.
	"summary that is left": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return errors.Join(tx.System().RegisterProcess(ctx, "proc_1"), tx.Chat().
				InsertConversation(ctx, reeve.Conversation{ID: "cnv_1", WorkspaceID: ws, AgentID: "agt_one"}),
				tx.Chat().QueueSummary(ctx, store.Summary{ThreadID: "th", UpTo: "run_1", WorkspaceID: ws,
					AgentID: "agt_one", ConversationID: "cnv_1"}))
		})
		claim := func(process string) (v store.Summary) {
			update(t, db, func(tx *store.Tx) (err error) {
				v, _, err = tx.Chat().
					ClaimSummary(ctx, process)
				return err
			})
			return v
		}
		due := func(process string) bool {
			return view(t, db, func(s *store.Snap) (bool, error) {
				_, ok, err := s.Chat().
					NextSummary(ctx, process)
				return ok, err
			})
		}
		equal(t, claim("proc_1").Attempts, 1, "taken")
		equal(t, due("proc_2"), false, "for another process, while this one lives")
		equal(t, claim("proc_2").Attempts, 0, "by another process")
		equal(t, due("proc_1"), true, "for the one that has left it")
		equal(t, claim("proc_1").Attempts, 2, "taken again")
	},
	"claiming": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		soon, past := reeve.Now().Add(time.Hour), reeve.Now().Add(-time.Hour)
		insert := func(id string, state reeve.State, owner string, next *time.Time) {
			update(t, db, func(tx *store.Tx) error {
				o := operation(id, state)
				o.Owner, o.NextAttemptAt = owner, next
				return insertOperation(ctx, tx, o)
			})
		}
		claim := func(n int) string {
			var list []reeve.Operation
			update(t, db, func(tx *store.Tx) (err error) {
				list, err = tx.Ledger().ClaimOperations(ctx, "proc_me", n)
				return err
			})
			for _, o := range list {
				equal(t, o.Owner, "proc_me", "owner of a claimed operation")
			}
			return ids(list, func(o reeve.Operation) string { return o.ID })
		}
		due := func() (ms int64, ok bool) {
			update(t, db, func(tx *store.Tx) (err error) { ms, ok, err = tx.Ledger().NextDue(ctx); return err })
			return ms, ok
		}
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_me") })
		if _, ok := due(); ok {
			t.Fatal("something is due in an empty store")
		}
		insert("op_later", reeve.Prepared, "", &soon)
		insert("op_mine", reeve.Dispatched, "proc_me", nil)
		insert("op_parked", reeve.Parked, "", nil)
		insert("op_done", reeve.Committed, "", nil)
		equal(t, claim(10), "", "nothing is due")
		if ms, ok := due(); !ok || ms != reeve.Millis(soon) {
			t.Fatalf("next due %d %v, want %d", ms, ok, reeve.Millis(soon))
		}
		insert("op_due", reeve.Prepared, "", &past)
		insert("op_now", reeve.Prepared, "", nil)
		insert("op_gone", reeve.Dispatched, "proc_gone", &past)
		insert("op_late", reeve.Prepared, "proc_gone", &soon) // whoever had it is gone, so it is due whatever it says
		equal(t, claim(2), "op_now op_due", "the first two")
		equal(t, claim(10), "op_gone op_late", "the rest")
		equal(t, claim(10), "", "nothing is left")

		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, tx.Now(), "drill") })
		insert("op_sent", reeve.Dispatched, "", nil)
		insert("op_unsent", reeve.Prepared, "", nil)
		equal(t, claim(10), "op_sent", "a stopped workspace keeps what was not sent")
		if _, ok := due(); ok {
			t.Fatal("what a stopped workspace keeps is not due")
		}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, time.Time{}, "") })
		at := reeve.Now()
		a.StoppedAt = &at
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, claim(10), "", "a stopped agent keeps it too")
		a.StoppedAt = nil
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, claim(10), "op_unsent", "started again")
	},

	"overdue": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		soon, past := reeve.Now().Add(time.Hour), reeve.Now().Add(-time.Hour)
		for id, o := range map[string]reeve.Operation{
			"op_over": {Effect: reeve.Local, State: reeve.Dispatched, NextAttemptAt: &past, TimeoutAt: &past},
			"op_owned": {Effect: reeve.Local, State: reeve.Dispatched, NextAttemptAt: &past, TimeoutAt: &past,
				Owner: "proc_gone"},
			"op_waits":  {Effect: reeve.Local, State: reeve.Dispatched, NextAttemptAt: &soon, TimeoutAt: &soon},
			"op_abroad": {Effect: reeve.Keyed, State: reeve.Dispatched, NextAttemptAt: &past, TimeoutAt: &past},
		} {
			update(t, db, func(tx *store.Tx) error {
				is := operation(id, o.State)
				is.Effect, is.NextAttemptAt, is.TimeoutAt, is.Owner = o.Effect, o.NextAttemptAt, o.TimeoutAt, o.Owner
				return insertOperation(ctx, tx, is)
			})
		}
		list := view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
			return s.Ledger().
				OverdueOperations(ctx, 10)
		})
		slices.SortFunc(list, func(a, b reeve.Operation) int { return strings.Compare(a.ID, b.ID) })
		equal(t, ids(list, func(o reeve.Operation) string { return o.ID }), "op_over op_owned", "overdue")
		at := view(t, db, func(s *store.Snap) (int64, error) {
			at, _, err := s.Ledger().NextOverdue(ctx)
			return at,
				err
		})
		equal(t, at, reeve.Millis(soon), "the next that will be overdue")
		update(t, db, func(tx *store.Tx) (err error) {
			list, err = tx.Ledger().ClaimOperations(ctx, "proc_me", 10)
			return err
		})
		equal(t, ids(list, func(o reeve.Operation) string { return o.ID }), "op_abroad", "claimed")
	},

	"several claimers": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		const total, claimers = 200, 8
		update(t, db, func(tx *store.Tx) error {
			for i := range total {
				o := operation(fmt.Sprintf("op_%03d", i), reeve.Prepared)
				if i%2 == 0 {
					o.Owner = "proc_gone"
				}
				if err := insertOperation(ctx, tx, o); err != nil {
					return err
				}
			}
			return nil
		})
		if !db.SingleProcess() {
			must(t, firstOf(race(claimers, func(i int) error {
				return db.Update(ctx, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, process(i)) })
			})))
		} else {
			update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, process(0)) })
		}
		var mu sync.Mutex
		by := map[string][]int{}
		must(t, firstOf(race(claimers, func(i int) error {
			me := process(i)
			if db.SingleProcess() { // there is but one process
				me = process(0)
			}
			for {
				var list []reeve.Operation
				if err := db.Update(ctx, func(tx *store.Tx) (err error) {
					list, err = tx.Ledger().ClaimOperations(ctx, me, 7)
					return err
				}); err != nil {
					return err
				}
				if len(list) > 7 {
					return fmt.Errorf("claimed %d, asked for 7", len(list))
				}
				mu.Lock()
				for _, o := range list {
					by[o.ID] = append(by[o.ID], i)
				}
				done := len(by) == total
				mu.Unlock()
				if done {
					return nil
				}
			}
		})))
		equal(t, len(by), total, "claimed operations")
		for id, who := range by {
			equal(t, len(who), 1, "claimers of %s", id)
		}
	},

	"processes": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_2") })
		beat := func(id string, patience time.Duration) (alive bool) {
			update(t, db, func(tx *store.Tx) (err error) {
				alive, err = tx.System().
					Heartbeat(ctx, id, patience)
				return err
			})
			return alive
		}
		equal(t, beat("proc_2", time.Minute), true, "the living process")
		// Where nobody else can be using the store, those who joined before are gone.
		equal(t, beat("proc_1", time.Minute), !db.SingleProcess(), "the earlier process")
		time.Sleep(5 * time.Millisecond)
		equal(t, beat("proc_2", time.Millisecond), true, "the one that beats")
		equal(t, beat("proc_1", time.Minute), false, "the one that was silent too long")
		update(t, db, func(tx *store.Tx) error { return tx.System().UnregisterProcess(ctx, "proc_2") })
		equal(t, beat("proc_2", time.Minute), false, "after goodbye")
	},

	"approval": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		ask := func(id, op string, expires time.Time) reeve.Approval {
			a := reeve.Approval{ID: id, WorkspaceID: ws, OperationID: op, CallID: "msg_1", AgentID: "agt_one",
				Tool: "echo", Args: `{"a": 1}`, ArgsHash: "h",
				ToolVersion: "v", Policy: "p", Why: "w", Reason: "r", Preview: "+ a", State: reeve.ApprovalPending,
				ExpiresAt: expires}
			update(t, db, func(tx *store.Tx) error { return tx.Ledger().InsertApproval(ctx, a) })
			return a
		}
		later, past := reeve.Now().Add(time.Hour), reeve.Now().Add(-time.Second)
		a := ask("apr_1", "op_1", later)
		got := view(t, db, func(s *store.Snap) (reeve.Approval, error) {
			return s.Ledger().
				GetApproval(ctx, ws, "apr_1")
		})
		a.CreatedAt = got.CreatedAt
		if got != a || got.CreatedAt.IsZero() {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, a)
		}
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().
				GetApproval(ctx, "ws_two", "apr_1")
			return err
		}), reeve.NotFound)
		ask("apr_2", "op_1", past)
		ask("apr_3", "op_2", later)
		due := view(t, db, func(s *store.Snap) ([]reeve.Approval, error) { return s.Ledger().DueApprovals(ctx, 10) })
		equal(t, ids(due, approvalID), "apr_2", "expired")
		update(t, db, func(tx *store.Tx) error {
			last, ok, err := tx.Ledger().LastApproval(ctx, "op_1")
			equal(t, last.ID, "apr_2", "the last for an operation")
			equal(t, ok, true, "one was asked for")
			return err
		})
		list := func(state reeve.ApprovalState, before string, limit int) string {
			return ids(view(t, db, func(s *store.Snap) ([]reeve.Approval, error) {
				return s.Ledger().ListApprovals(ctx, ws, state, before, limit)
			}), approvalID)
		}
		equal(t, list("", "", 2), "apr_3 apr_2", "first page")
		equal(t, list("", "apr_2", 2), "apr_1", "second page")
		errs := race(16, func(i int) error {
			mine := a
			mine.State, mine.DecidedBy, mine.Comment = []reeve.ApprovalState{reeve.ApprovalApproved,
				reeve.ApprovalDenied}[i%2],
				fmt.Sprint("user", i), "so be it"
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().
					TransitionApproval(ctx, mine, reeve.ApprovalPending)
			})
		})
		exactlyOne(t, errs, reeve.Conflict)
		got = view(t, db, func(s *store.Snap) (reeve.Approval, error) {
			return s.Ledger().
				GetApproval(ctx, ws, "apr_1")
		})
		for i, err := range errs {
			if err == nil {
				equal(t, got.DecidedBy, fmt.Sprint("user", i), "who decided")
			}
		}
		if got.DecidedAt == nil || got.State == reeve.ApprovalPending {
			t.Fatalf("decided: %+v", got)
		}
		equal(t, list(reeve.ApprovalPending, "", 9), "apr_3", "pending")
		equal(t, list(reeve.ApprovalPending, "apr_3", 9), "", "pending, second page")
		equal(t, list(reeve.ApprovalExpired, "", 9), "apr_2", "whose time is over, though nobody has written that down")
		for _, v := range view(t, db, func(s *store.Snap) ([]reeve.Approval, error) {
			return s.Ledger().
				ListApprovals(ctx, ws, "", "", 9)
		}) {
			equal(t, v.State == reeve.ApprovalExpired, v.ID == "apr_2", "%s has expired", v.ID)
		}
	},

	"runs on behalf of an agent": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		list := []string{"run_unknown"}
		for id, callers := range map[string][]string{"run_own": nil, "run_near": {"agt_one"},
			"run_far": {"agt_one", "agt_two"}, "run_other": {"agt_two"}} {
			v := reeve.Run{ID: id, Key: id, WorkspaceID: ws, AgentID: "agt_one", Reason: reeve.ReasonUser,
				State: reeve.RunRunning, ThreadID: "th"}
			for _, a := range callers {
				v.Ancestors = append(v.Ancestors, reeve.Ancestor{AgentID: a})
			}
			update(t, db, func(tx *store.Tx) error { _, err := tx.Runs().InsertRun(ctx, v); return err })
			list = append(list, id)
		}
		led := view(t, db, func(s *store.Snap) (map[string]bool, error) {
			return s.Runs().
				RunsActingFor(ctx, "agt_one", list)
		})
		maps.DeleteFunc(led, func(_ string, on bool) bool { return !on })
		equal(t, fmt.Sprint(slices.Sorted(maps.Keys(led))), "[run_far run_near]", "on behalf of an agent")
	},

	"budgets in a circle": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		put := func(subject, parent string) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: subject, Parent: parent,
					OnExceed: reeve.EndOverBudget})
			})
		}
		for _, b := range [][2]string{{"run:a", "run:b"}, {"run:b", "run:c"}, {"run:c", "workspace"},
			{"run:d", "run:c"}} {
			if err := put(b[0], b[1]); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, put("run:a", "run:a"), reeve.Validation)
		err := put("run:c", "run:a")
		if wantCode(t, err, reeve.Validation); !strings.Contains(err.Error(),
			"run:c, whose parent is run:a, whose parent is run:b, whose parent is run:c") {
			t.Error(err)
		}
		if err := put("run:a", "run:d"); err != nil { // the way up may be another
			t.Error(err)
		}
		for i := range 8 { // each closes the circle that the other begins
			pair := [2]string{fmt.Sprint("run:x", i), fmt.Sprint("run:y", i)}
			exactlyOne(t, race(2, func(k int) error { return put(pair[k], pair[1-k]) }), reeve.Validation)
		}
	},

	"budget": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		b := reeve.Budget{Subject: "agent:agt_one", Parent: "workspace", Limit: reeve.Amount{Calls: 10, Tokens: 1 << 40,
			Micros: 5, Millis: 7}, OnExceed: reeve.ParkOverBudget}
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().PutBudget(ctx, ws, b) })
		equal(t, revision(t, db, ws), 2, "after PutBudget")
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: "workspace", OnExceed: reeve.EndOverBudget})
		})
		read := func(subject string) reeve.Budget {
			return view(t, db, func(s *store.Snap) (reeve.Budget, error) {
				b, _, err := s.Ledger().GetBudget(ctx, ws, subject)
				return b, err
			})
		}
		equal(t, read(b.Subject), b, "round trip")
		update(t, db, func(tx *store.Tx) error {
			_, ok, err := tx.Ledger().GetBudget(ctx, "ws_two", b.Subject)
			equal(t, ok, false, "a budget of another workspace")
			return err
		})
		one := reeve.Amount{Calls: 1, Tokens: 100, Micros: 1, Millis: 1}
		update(t, db, func(tx *store.Tx) error {
			for _, call := range []string{"msg_1", "msg_2", "msg_1"} { // the same call claims once
				for _, subject := range []string{b.Subject, "workspace"} {
					if err := tx.Ledger().Reserve(ctx, ws, subject, call, "proc_1", one); err != nil {
						return err
					}
				}
			}
			return nil
		})
		equal(t, read(b.Subject).Reserved, reeve.Amount{Calls: 2, Tokens: 200, Micros: 2, Millis: 2}, "reserved")
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().Spend(ctx, ws, []string{b.Subject, "workspace"}, "msg_1",
				reeve.Amount{Calls: 1, Tokens: 60})
		})
		equal(t, read(b.Subject).Reserved, one, "reserved after Spend")
		equal(t, read("workspace").Used, reeve.Amount{Calls: 1, Tokens: 60}, "used")
		// What is more than can be counted stays the most that can; nothing is less than nothing.
		most := reeve.Amount{Calls: math.MaxInt64, Tokens: math.MaxInt64, Micros: math.MaxInt64, Millis: math.MaxInt64}
		spend := func(a reeve.Amount) {
			update(t, db, func(tx *store.Tx) error {
				for _, call := range []string{"msg_8", "msg_9"} {
					if err := tx.Ledger().Reserve(ctx, ws, "workspace", call, "proc_1", a); err != nil {
						return err
					}
				}
				return nil
			})
			if got := read("workspace").Reserved; got.Tokens < 0 {
				t.Errorf("reserved %+v", got)
			}
			update(t, db, func(tx *store.Tx) error {
				return errors.Join(tx.Ledger().Spend(ctx, ws, []string{"workspace"}, "msg_8", a), tx.Ledger().
					Spend(ctx, ws, nil, "msg_9", a))
			})
		}
		spend(reeve.Amount{Calls: -5, Tokens: -500})
		equal(t, read("workspace").Used, reeve.Amount{Calls: 1, Tokens: 60}, "used after less than nothing")
		for range 2 {
			spend(most)
			equal(t, read("workspace").Used, most, "used after more than can be counted")
		}
		b.Limit.Calls = 20
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().PutBudget(ctx, ws, b) })
		equal(t, read(b.Subject).Used.Tokens, 60, "used after new limits")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Budget, error) {
			return s.Ledger().
				ListBudgets(ctx, ws)
		})), 2, "budgets")

		// A claim outlives its process only while there is an operation to finish.
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		update(t, db, func(tx *store.Tx) error {
			o := operation("op", reeve.Unknown)
			o.State, o.CallID = reeve.Parked, "msg_parked"
			if err := insertOperation(ctx, tx, o); err != nil {
				return err
			}
			o.ID, o.State, o.CallID = "op2", reeve.Dispatched, "msg_sent"
			if err := insertOperation(ctx, tx, o); err != nil {
				return err
			}
			o.ID, o.State, o.CallID = "op3", reeve.Committed, "msg_done"
			if err := insertOperation(ctx, tx, o); err != nil {
				return err
			}
			o.ID, o.State, o.CallID = "op4", reeve.Dispatched, "msg_unknown"
			if err := insertOperation(ctx, tx, o); err != nil {
				return err
			}
			unknown := o
			unknown.State = reeve.Unknown
			if err := tx.Ledger().TransitionOperation(ctx, o, unknown, nil); err != nil {
				return err
			}
			for _, call := range []string{"msg_parked", "msg_sent", "msg_done", "msg_unknown", "msg_lost"} {
				if err := tx.Ledger().Reserve(ctx, ws, "workspace", call, "proc_gone",
					reeve.Amount{Calls: 1}); err != nil {
					return err
				}
			}
			return tx.Ledger().DeleteLostReservations(ctx)
		})
		equal(t, read("workspace").Reserved.Calls, 3, "claims: a living process's, a parked one's, a sent one's")
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().DeleteBudget(ctx, ws, b.Subject) })
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Ledger().DeleteBudget(ctx, ws, b.Subject) }),
			reeve.NotFound)
	},

	"a budget is never overdrawn": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: "workspace", Limit: reeve.Amount{Calls: 5},
				OnExceed: reeve.EndOverBudget})
		})
		over := reeve.Errorf(reeve.BudgetExceeded, "over")
		won := 0
		for _, err := range race(16, func(i int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				b, _, err := tx.Ledger().LockBudget(ctx, ws, "workspace")
				if err != nil {
					return err
				}
				if b.Used.Calls+b.Reserved.Calls+1 > b.Limit.Calls {
					return over
				}
				return tx.Ledger().Reserve(ctx, ws, "workspace", fmt.Sprint("msg_", i), "proc", reeve.Amount{Calls: 1})
			})
		}) {
			if err == nil {
				won++
			} else {
				wantCode(t, err, reeve.BudgetExceeded)
			}
		}
		equal(t, won, 5, "calls within the limit")
	},
}

func approvalID(a reeve.Approval) string { return a.ID }

func process(i int) string { return fmt.Sprint("proc_", i) }

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
