package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// budgets tests budgets, reservations and spending.
var budgets = map[string]func(*testing.T, *store.DB){
	"cycles of budgets": func(t *testing.T, db *store.DB) {
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
		if err := put("run:a", "run:d"); err != nil { // another parent without a cycle
			t.Error(err)
		}
		for i := range 8 { // each of two concurrent puts would complete the cycle of the other
			pair := [2]string{fmt.Sprint("run:x", i), fmt.Sprint("run:y", i)}
			wantOneSuccess(t, runConcurrently(2, func(k int) error { return put(pair[k], pair[1-k]) }),
				reeve.Validation)
		}
	},

	"budget": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		b := reeve.Budget{Subject: "agent:agt_one", Parent: "workspace", Limit: reeve.Amount{Calls: 10, Tokens: 1 << 40,
			Micros: 5, Millis: 7}, OnExceed: reeve.ParkOverBudget}
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().PutBudget(ctx, ws, b) })
		equal(t, getRevision(t, db, ws), 2, "after PutBudget")
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: "workspace", OnExceed: reeve.EndOverBudget})
		})
		getBudget := func(subject string) reeve.Budget {
			return view(t, db, func(s *store.Snap) (reeve.Budget, error) {
				b, _, err := s.Ledger().GetBudget(ctx, ws, subject)
				return b, err
			})
		}
		equal(t, getBudget(b.Subject), b, "round trip")
		update(t, db, func(tx *store.Tx) error {
			_, ok, err := tx.Ledger().GetBudget(ctx, "ws_two", b.Subject)
			equal(t, ok, false, "a budget of another workspace")
			return err
		})
		one := reeve.Amount{Calls: 1, Tokens: 100, Micros: 1, Millis: 1}
		update(t, db, func(tx *store.Tx) error {
			for _, call := range []string{"msg_1", "msg_2", "msg_1"} { // a call reserves only once
				for _, subject := range []string{b.Subject, "workspace"} {
					if err := tx.Ledger().Reserve(ctx, ws, subject, call, "proc_1", one); err != nil {
						return err
					}
				}
			}
			return nil
		})
		equal(t, getBudget(b.Subject).Reserved, reeve.Amount{Calls: 2, Tokens: 200, Micros: 2, Millis: 2}, "reserved")
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().Spend(ctx, ws, []string{b.Subject, "workspace"}, "msg_1",
				reeve.Amount{Calls: 1, Tokens: 60})
		})
		equal(t, getBudget(b.Subject).Reserved, one, "reserved after Spend")
		equal(t, getBudget("workspace").Used, reeve.Amount{Calls: 1, Tokens: 60}, "used")
		// Amounts are limited to MaxInt64, and negative amounts count as zero.
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
			if got := getBudget("workspace").Reserved; got.Tokens < 0 {
				t.Errorf("reserved %+v", got)
			}
			update(t, db, func(tx *store.Tx) error {
				return errors.Join(tx.Ledger().Spend(ctx, ws, []string{"workspace"}, "msg_8", a),
					tx.Ledger().Spend(ctx, ws, nil, "msg_9", a))
			})
		}
		spend(reeve.Amount{Calls: -5, Tokens: -500})
		equal(t, getBudget("workspace").Used, reeve.Amount{Calls: 1, Tokens: 60}, "used after a negative amount")
		for range 2 {
			spend(most)
			equal(t, getBudget("workspace").Used, most, "used after an overflow")
		}
		b.Limit.Calls = 20
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().PutBudget(ctx, ws, b) })
		equal(t, getBudget(b.Subject).Used.Tokens, 60, "used after new limits")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Budget, error) {
			return s.Ledger().ListBudgets(ctx, ws)
		})), 2, "budgets")

		// The reservation of a process that is gone remains only while its operation is parked or dispatched.
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		update(t, db, func(tx *store.Tx) error {
			o := newOperation("op", reeve.Unknown)
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
		// The reservations of the live process, the parked operation and the dispatched operation remain.
		equal(t, getBudget("workspace").Reserved.Calls, 3, "reserved calls")
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().DeleteBudget(ctx, ws, b.Subject) })
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Ledger().DeleteBudget(ctx, ws, b.Subject) }),
			reeve.NotFound)
	},

	"concurrent reservations": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().PutBudget(ctx, ws, reeve.Budget{Subject: "workspace", Limit: reeve.Amount{Calls: 5},
				OnExceed: reeve.EndOverBudget})
		})
		exceeded := reeve.Errorf(reeve.BudgetExceeded, "over")
		succeeded := 0
		for _, err := range runConcurrently(16, func(i int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				b, _, err := tx.Ledger().LockBudget(ctx, ws, "workspace")
				if err != nil {
					return err
				}
				if b.Used.Calls+b.Reserved.Calls+1 > b.Limit.Calls {
					return exceeded
				}
				return tx.Ledger().Reserve(ctx, ws, "workspace", fmt.Sprint("msg_", i), "proc", reeve.Amount{Calls: 1})
			})
		}) {
			if err == nil {
				succeeded++
			} else {
				wantCode(t, err, reeve.BudgetExceeded)
			}
		}
		equal(t, succeeded, 5, "successful reservations")
	},
}
