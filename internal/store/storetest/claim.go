package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// claims tests processes, their heartbeats, and the operations and summaries that they claim.
var claims = map[string]func(*testing.T, *store.DB){
	// A process may claim a summary again if it could not record the outcome. No other process may claim the summary
	// while that process is alive.
	"claim of a summary": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return errors.Join(tx.System().RegisterProcess(ctx, "proc_1"),
				tx.Chat().InsertConversation(ctx, reeve.Conversation{ID: "cnv_1", WorkspaceID: ws, AgentID: "agt_one"}),
				tx.Chat().QueueSummary(ctx, store.Summary{ThreadID: "th", UpTo: "run_1", WorkspaceID: ws,
					AgentID: "agt_one", ConversationID: "cnv_1"}))
		})
		claim := func(process string) (v store.Summary) {
			update(t, db, func(tx *store.Tx) (err error) {
				v, _, err = tx.Chat().ClaimSummary(ctx, process)
				return err
			})
			return v
		}
		isDue := func(process string) bool {
			return view(t, db, func(s *store.Snap) (bool, error) {
				_, ok, err := s.Chat().NextSummary(ctx, process)
				return ok, err
			})
		}
		equal(t, claim("proc_1").Attempts, 1, "attempts after the first claim")
		equal(t, isDue("proc_2"), false, "due for another process")
		equal(t, claim("proc_2").Attempts, 0, "attempts after a claim by another process")
		equal(t, isDue("proc_1"), true, "due for the owner")
		equal(t, claim("proc_1").Attempts, 2, "attempts after the second claim")
	},

	// A failed summary of runs is retried, unless another one of the same runs is queued.
	"retry of a summary": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		job := store.Summary{ThreadID: store.RunMemory("agt_one", "ann"), UpTo: "run_1", WorkspaceID: ws,
			AgentID: "agt_one", UserID: "ann", Attempts: 1}
		update(t, db, func(tx *store.Tx) error {
			err := errors.Join(tx.System().RegisterProcess(ctx, "proc_1"), tx.Chat().QueueSummary(ctx, job))
			_, _, claimErr := tx.Chat().ClaimSummary(ctx, "proc_1")
			return errors.Join(err, claimErr, tx.Chat().DelaySummary(ctx, job, time.Time{},
				reeve.Errorf(reeve.ModelFailed, "no luck")))
		})
		get := func(user string) []store.Summary {
			return view(t, db, func(s *store.Snap) ([]store.Summary, error) {
				return s.Chat().ListSummaries(ctx, "agt_one", user, "run_1", "", 10)
			})
		}
		equal(t, get("ann")[0].State, store.SummaryFailed, "state after the last attempt")
		equal(t, get("ann")[0].Message, "no luck", "reason of the failure")
		equal(t, len(get("bob")), 0, "summaries that another user sees")
		failed := view(t, db, func(s *store.Snap) (int, error) { return s.Chat().CountFailedSummaries(ctx) })
		equal(t, failed, 1, "failed summaries")
		update(t, db, func(tx *store.Tx) error { return tx.Chat().RetrySummary(ctx, job) })
		equal(t, get("ann")[0].State, store.SummaryQueued, "state after the retry")
		equal(t, reeve.CodeOf(db.Update(ctx, func(tx *store.Tx) error { return tx.Chat().RetrySummary(ctx, job) })),
			reeve.Conflict, "retry of a queued summary")
	},

	"claim of operations": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		soon, past := reeve.Now().Add(time.Hour), reeve.Now().Add(-time.Hour)
		insert := func(id string, state reeve.State, owner string, next *time.Time) {
			update(t, db, func(tx *store.Tx) error {
				o := newOperation(id, state)
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
			return joinIDs(list, func(o reeve.Operation) string { return o.ID })
		}
		nextDue := func() (ms int64, ok bool) {
			update(t, db, func(tx *store.Tx) (err error) { ms, ok, err = tx.Ledger().NextDue(ctx); return err })
			return ms, ok
		}
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_me") })
		if _, ok := nextDue(); ok {
			t.Fatal("something is due in an empty store")
		}
		insert("op_later", reeve.Prepared, "", &soon)
		insert("op_mine", reeve.Dispatched, "proc_me", nil)
		insert("op_parked", reeve.Parked, "", nil)
		insert("op_done", reeve.Committed, "", nil)
		equal(t, claim(10), "", "claimed before an operation is due")
		if ms, ok := nextDue(); !ok || ms != reeve.Millis(soon) {
			t.Fatalf("next due %d %v, want %d", ms, ok, reeve.Millis(soon))
		}
		insert("op_due", reeve.Prepared, "", &past)
		insert("op_now", reeve.Prepared, "", nil)
		insert("op_gone", reeve.Dispatched, "proc_gone", &past)
		insert("op_late", reeve.Prepared, "proc_gone", &soon) // due, because its owner is gone
		equal(t, claim(2), "op_now op_due", "first two")
		equal(t, claim(10), "op_gone op_late", "the others")
		equal(t, claim(10), "", "claimed after all were claimed")

		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, tx.Now(), "drill") })
		insert("op_sent", reeve.Dispatched, "", nil)
		insert("op_unsent", reeve.Prepared, "", nil)
		equal(t, claim(10), "op_sent", "claimed in a stopped workspace: only operations that were dispatched")
		if _, ok := nextDue(); ok {
			t.Fatal("an operation of a stopped workspace is due")
		}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, time.Time{}, "") })
		at := reeve.Now()
		a.StoppedAt = &at
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, claim(10), "", "claimed from a stopped agent")
		a.StoppedAt = nil
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, claim(10), "op_unsent", "claimed from a resumed agent")
	},

	"overdue operations": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		soon, past := reeve.Now().Add(time.Hour), reeve.Now().Add(-time.Hour)
		for id, o := range map[string]reeve.Operation{
			"op_over": {Effect: reeve.Local, State: reeve.Dispatched, NextAttemptAt: &past, TimeoutAt: &past},
			"op_owned": {Effect: reeve.Local, State: reeve.Dispatched, NextAttemptAt: &past, TimeoutAt: &past,
				Owner: "proc_gone"},
			"op_waits": {Effect: reeve.Local, State: reeve.Dispatched, NextAttemptAt: &soon, TimeoutAt: &soon},
			"op_keyed": {Effect: reeve.Keyed, State: reeve.Dispatched, NextAttemptAt: &past, TimeoutAt: &past},
		} {
			update(t, db, func(tx *store.Tx) error {
				is := newOperation(id, o.State)
				is.Effect, is.NextAttemptAt, is.TimeoutAt, is.Owner = o.Effect, o.NextAttemptAt, o.TimeoutAt, o.Owner
				return insertOperation(ctx, tx, is)
			})
		}
		list := view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
			return s.Ledger().OverdueOperations(ctx, 10)
		})
		slices.SortFunc(list, func(a, b reeve.Operation) int { return strings.Compare(a.ID, b.ID) })
		equal(t, joinIDs(list, func(o reeve.Operation) string { return o.ID }), "op_over op_owned", "overdue")
		at := view(t, db, func(s *store.Snap) (int64, error) {
			at, _, err := s.Ledger().NextOverdue(ctx)
			return at, err
		})
		equal(t, at, reeve.Millis(soon), "time of the next overdue operation")
		update(t, db, func(tx *store.Tx) (err error) {
			list, err = tx.Ledger().ClaimOperations(ctx, "proc_me", 10)
			return err
		})
		equal(t, joinIDs(list, func(o reeve.Operation) string { return o.ID }), "op_keyed", "claimed")
	},

	"concurrent claims": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		const total, claimers = 200, 8
		update(t, db, func(tx *store.Tx) error {
			for i := range total {
				o := newOperation(fmt.Sprintf("op_%03d", i), reeve.Prepared)
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
			must(t, firstError(runConcurrently(claimers, func(i int) error {
				return db.Update(ctx, func(tx *store.Tx) error {
					return tx.System().RegisterProcess(ctx, processID(i))
				})
			})))
		} else {
			update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, processID(0)) })
		}
		var mu sync.Mutex
		claimedBy := map[string][]int{}
		must(t, firstError(runConcurrently(claimers, func(i int) error {
			me := processID(i)
			if db.SingleProcess() { // the engine allows only one process
				me = processID(0)
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
					return fmt.Errorf("claimed %d operations, want at most 7", len(list))
				}
				mu.Lock()
				for _, o := range list {
					claimedBy[o.ID] = append(claimedBy[o.ID], i)
				}
				done := len(claimedBy) == total
				mu.Unlock()
				if done {
					return nil
				}
			}
		})))
		equal(t, len(claimedBy), total, "claimed operations")
		for id, claimers := range claimedBy {
			equal(t, len(claimers), 1, "claimers of %s", id)
		}
	},

	"processes": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_2") })
		heartbeat := func(id string, timeout time.Duration) (alive bool) {
			update(t, db, func(tx *store.Tx) (err error) {
				alive, err = tx.System().Heartbeat(ctx, id, timeout)
				return err
			})
			return alive
		}
		equal(t, heartbeat("proc_2", time.Minute), true, "last registered process")
		// If the engine allows only one process, a new process replaces the earlier ones.
		equal(t, heartbeat("proc_1", time.Minute), !db.SingleProcess(), "earlier process")
		time.Sleep(5 * time.Millisecond)
		equal(t, heartbeat("proc_2", time.Millisecond), true, "process with a recent heartbeat")
		equal(t, heartbeat("proc_1", time.Minute), false, "process without a recent heartbeat")
		update(t, db, func(tx *store.Tx) error { return tx.System().UnregisterProcess(ctx, "proc_2") })
		equal(t, heartbeat("proc_2", time.Minute), false, "unregistered process")
	},
}

func processID(i int) string { return fmt.Sprint("proc_", i) }
