package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// transactions tests the rules of Update and View.
var transactions = map[string]func(*testing.T, *store.DB){
	"use after the end": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		var closed *store.Tx
		var closedSnap *store.Snap
		release, refused := make(chan struct{}), make(chan error)
		update(t, db, func(tx *store.Tx) error {
			closed = tx
			go func() { // a goroutine that outlives the transaction
				<-release
				refused <- tx.Agents().PutSecret(ctx, ws, "leaked", "v")
			}()
			return tx.Agents().PutSecret(ctx, ws, "committed", "v")
		})
		must(t, db.View(ctx, func(s *store.Snap) error { closedSnap = s; return nil }))
		wantCode(t, closed.Agents().PutSecret(ctx, ws, "late", "v"), reeve.Canceled)
		_, err := closedSnap.Agents().ListWorkspaces(ctx)
		wantCode(t, err, reeve.Canceled)
		// The closed transaction refuses also while another transaction is open.
		update(t, db, func(tx *store.Tx) error {
			close(release)
			wantCode(t, <-refused, reeve.Canceled)
			wantCode(t, closed.Agents().PutSecret(ctx, ws, "late", "v"), reeve.Canceled)
			return nil
		})
		list := view(t, db, func(s *store.Snap) ([]reeve.SecretName, error) { return s.Agents().ListSecrets(ctx, ws) })
		equal(t, joinIDs(list, func(n reeve.SecretName) string { return n.Name }), "committed", "secrets")
		if _, err := store.TxFrom(ctx); err == nil {
			t.Fatal("TxFrom returned a transaction for a context without one")
		}
		if tx, err := store.TxFrom(store.WithTx(ctx, closed)); err != nil || tx != closed {
			t.Fatal(tx, err)
		}
	},

	"rollback": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		put := func(tx *store.Tx) error {
			if err := tx.Agents().PutSecret(ctx, ws, "half", "v"); err != nil {
				return err
			}
			_, err := tx.Agents().ListSecrets(ctx, ws)
			return err
		}
		for name, f := range map[string]func() error{
			"an error": func() error {
				return db.Update(ctx, func(tx *store.Tx) error { return errors.Join(put(tx), errTest) })
			},
			"an error before a statement was sent": func() error {
				return db.Update(ctx, func(tx *store.Tx) error {
					if err := tx.Agents().PutSecret(ctx, ws, "half", "v"); err != nil {
						return err
					}
					return errTest
				})
			},
			"a panic": func() (err error) {
				defer func() {
					if p := recover(); p == "mine" {
						err = errTest
					}
				}()
				return db.Update(ctx, func(tx *store.Tx) error { must(t, put(tx)); panic("mine") })
			},
			"the end of the goroutine": func() error {
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = db.Update(ctx, func(tx *store.Tx) error { _ = put(tx); runtime.Goexit(); return nil })
				}()
				<-done
				return errTest
			},
			"an ignored error": func() error {
				err := db.Update(ctx, func(tx *store.Tx) error {
					_ = put(tx)
					_ = tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_x", WorkspaceID: "none", Name: "x",
						CreatedAt: tx.Now()})
					_ = tx.Agents().PutSecret(ctx, ws, "half", "w")
					return nil
				})
				wantCode(t, err, reeve.NotFound)
				return errTest
			},
			"a cancelled context": func() error {
				ctx, cancel := context.WithCancel(ctx)
				err := db.Update(ctx, func(tx *store.Tx) error {
					if err := put(tx); err != nil {
						return err
					}
					cancel()
					return tx.Agents().PutSecret(ctx, ws, "half", "w")
				})
				wantCode(t, err, reeve.Canceled)
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("got %v, want a context.Canceled inside", err)
				}
				return errTest
			},
			"an expired context": func() error {
				ctx, cancel := context.WithTimeout(ctx, 0)
				defer cancel()
				wantCode(t, db.Update(ctx, func(*store.Tx) error { t.Error("the function was called"); return nil }),
					reeve.Timeout)
				wantCode(t, db.View(ctx, func(*store.Snap) error { t.Error("the function was called"); return nil }),
					reeve.Timeout)
				return errTest
			},
			"a panic in a view": func() (err error) {
				for range 20 { // more often than there are reader connections
					func() {
						defer func() { _ = recover() }()
						_ = db.View(ctx, func(s *store.Snap) error {
							_, _ = s.Agents().ListWorkspaces(ctx)
							panic("mine")
						})
					}()
				}
				return errTest
			},
		} {
			if err := f(); !errors.Is(err, errTest) {
				t.Fatalf("%s: got %v", name, err)
			}
			equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.SecretName, error) {
				return s.Agents().ListSecrets(ctx, ws)
			})), 0, "%s: secrets", name)
			update(t, db, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		}
		equal(t, getRevision(t, db, ws), 9, "revision after the successful transactions")
	},

	// A failing transaction does not affect others in the same group, and does not commit with them.
	"concurrent transactions, some fail": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		const callers, each = 32, 12
		committed := make([][]string, callers)
		must(t, firstError(runConcurrently(callers, func(i int) error {
			for n := range each {
				id := fmt.Sprintf("%02d_%02d", i, n)
				kind := rand.IntN(6)
				err := func() (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = errTest
						}
					}()
					return db.Update(ctx, func(tx *store.Tx) error {
						c := newCall("msg_"+id, "th_"+id)
						c.Operation.ID, c.Operation.State, c.Operation.Effect = "op_"+id, reeve.Prepared, reeve.Unsafe
						// kind 5 is stale
						if err := tx.Ledger().InsertCall(ctx, c,
							store.Preconditions{Revision: 1 + int64(kind/5)}); err != nil {
							return err
						}
						switch kind {
						case 1:
							return errTest
						case 2:
							panic("mine")
						case 3: // refused by the database
							return insertOperation(ctx, tx, newOperation("op_"+id, reeve.Prepared))
						case 4:
							if _, err := tx.Ledger().GetOperation(ctx, ws, "op_"+id); err != nil {
								return err
							}
						}
						return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: "msg_t" + id, WorkspaceID: ws,
							ThreadID: "th_" + id, AgentID: "agt_one", Kind: reeve.Thought})
					})
				}()
				switch {
				case err == nil:
					committed[i] = append(committed[i], id)
					if kind != 0 && kind != 4 {
						return fmt.Errorf("kind %d succeeded", kind)
					}
				case kind == 0 || kind == 4:
					return err
				case kind == 3 && !errors.As(err, &store.ErrDuplicateOperation{}), kind == 5 &&
					!errors.As(err, &store.ErrStaleDecision{}), kind < 3 && !errors.Is(err, errTest):
					return fmt.Errorf("kind %d: got %w", kind, err)
				}
			}
			return nil
		})))
		want := map[string]bool{}
		for _, list := range committed {
			for _, id := range list {
				want["op_"+id] = true
			}
		}
		for _, o := range listOperations(t, db) {
			equal(t, want[o.ID], true, "%s was reported as committed", o.ID)
			delete(want, o.ID)
			messages := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				return s.Ledger().ListMessages(ctx, ws, o.ThreadID, "", 10)
			})
			equal(t, len(messages), 2, "messages of %s", o.ID)
		}
		equal(t, len(want), 0, "committed operations that are missing: %v;", want)
	},

	"snapshot isolation of views": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		stop := make(chan struct{})
		wrote := make(chan error, 1)
		started := make(chan struct{})
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					wrote <- nil
					return
				default:
				}
				if err := db.Update(ctx, func(tx *store.Tx) error { // changes both or neither
					if err := tx.IncrementRevision(ctx, ws); err != nil {
						return err
					}
					return tx.IncrementRevision(ctx, "ws_two")
				}); err != nil {
					wrote <- err
					return
				}
				if n++; n == 2 {
					close(started)
				}
			}
		}()
		<-started
		for range 30 {
			must(t, db.View(ctx, func(s *store.Snap) error {
				first := mustGet(s.Agents().GetWorkspace(ctx, ws))(t).Revision
				for range 5 {
					equal(t, mustGet(s.Agents().GetWorkspace(ctx, "ws_two"))(t).
						Revision, first, "revision of the other workspace")
					runtime.Gosched()
				}
				equal(t, mustGet(s.Agents().GetWorkspace(ctx, ws))(t).Revision, first, "revision at the end")
				return nil
			}))
		}
		close(stop)
		must(t, <-wrote)
	},

	"time and ids in a transaction": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			now := tx.Now()
			time.Sleep(3 * time.Millisecond)
			equal(t, tx.Now(), now, "now")
			equal(t, now.Location(), time.UTC, "zone")
			equal(t, now.Truncate(time.Millisecond), now, "now in milliseconds")
			if a, b := tx.NewID("x"), tx.NewID("x"); a >= b {
				t.Errorf("ids out of order: %s %s", a, b)
			}
			return tx.Ledger().InsertApproval(ctx, reeve.Approval{ID: "apr_1", WorkspaceID: ws,
				State:     reeve.ApprovalPending,
				ExpiresAt: now.Add(1234567 * time.Millisecond)})
		})
		a := view(t, db, func(s *store.Snap) (reeve.Approval, error) {
			return s.Ledger().GetApproval(ctx, ws, "apr_1")
		})
		equal(t, a.ExpiresAt.Sub(a.CreatedAt), 1234567*time.Millisecond, "time until expiry")
		equal(t, a.ExpiresAt.Location(), time.UTC, "zone")
	},

	"more readers than connections": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		must(t, firstError(runConcurrently(64, func(int) error {
			return db.View(ctx, func(s *store.Snap) error { _, err := s.Agents().GetWorkspace(ctx, ws); return err })
		})))
	},
}
