package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

var errMine = errors.New("mine")

// ledger tests messages, operations and events.
var ledger = map[string]func(*testing.T, *store.DB){
	"messages and calls": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		thread := "agent:session:s"
		c := finished("msg_1", thread, "msg_2")
		c.Args, c.Request = `{"text":"ünï 🦉\n\u0000"}`, []byte(`{"type":"tool_call",  "n": 1.0}`)
		c.Result.Content = "binary \x00 and \xff end"
		for _, c := range []store.Call{c, call("msg_3", thread), call("msg_4", "agent:session:other")} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().
					InsertCall(ctx, c, store.Preconditions{Revision: 1})
			})
		}
		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				ListMessages(ctx, ws, thread, "", 10)
		})
		equal(t, ids(list, func(m reeve.Message) string { return m.PrevID + ">" + m.ID }),
			">msg_1 msg_1>msg_2 msg_2>msg_3", "chain")
		equal(t, list[0].Content, c.Args, "arguments")
		equal(t, string(list[0].Metadata), string(c.Request), "request")
		equal(t, list[1].Content, "binary \uFFFD and \uFFFD end", "output that is not text")
		equal(t, list[1].ActionID, "msg_1", "the action it answers")
		page := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, thread, "msg_1", 1)
		})
		equal(t, ids(page, func(m reeve.Message) string { return m.ID }), "msg_2", "page")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, "ws_two", thread, "", 10)
		})), 0, "another workspace's view")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().
				GetCall(ctx, "ws_two", "msg_1")
			return err
		}), reeve.NotFound)
		got := view(t, db, func(s *store.Snap) (store.Call, error) { return s.Ledger().GetCall(ctx, ws, "msg_1") })
		if d := time.Since(got.Operation.CreatedAt); d < 0 || d > time.Minute || got.Operation.ID != "" ||
			got.Operation.State != "" {
			t.Fatalf("it is %+v", got)
		}
	},

	"all of a run": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		n := 0
		add := func(more int) {
			update(t, db, func(tx *store.Tx) error {
				for range more {
					n++
					m := reeve.Message{ID: fmt.Sprintf("msg_%05d", n), WorkspaceID: ws, ThreadID: "th",
						AgentID: "agt_one", Kind: reeve.Thought, RunID: "run_1"}
					if err := tx.Ledger().AppendMessage(ctx, m); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for _, more := range []int{0, 999, 1, 1, 999, 1} { // around whole pages
			add(more)
			list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				return s.Ledger().
					AllRunMessages(ctx, ws, "run_1")
			})
			equal(t, len(list), n, "messages")
			for i, m := range list {
				equal(t, m.ID, fmt.Sprintf("msg_%05d", i+1), "in order")
			}
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				AllRunMessages(ctx, "ws_two", "run_1")
		})), 0, "another workspace's view")
	},

	"the last messages of many runs": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		var runs []string // newest first
		update(t, db, func(tx *store.Tx) error {
			for i := range 70 { // more than one statement of SQLite's takes
				run := fmt.Sprintf("run_%02d", i)
				runs = append([]string{run}, runs...)
				for k := range 2 {
					m := reeve.Message{ID: fmt.Sprintf("msg_%02d_%d", i, k), WorkspaceID: ws, ThreadID: "th",
						AgentID: "agt_one", Kind: reeve.Thought, RunID: run}
					if err := tx.Ledger().AppendMessage(ctx, m); err != nil {
						return err
					}
				}
			}
			return nil
		})
		last := func(workspace string, limit int) string {
			return ids(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				return s.Ledger().TurnMessages(ctx, workspace, runs, limit)
			}), func(m reeve.Message) string { return m.ID })
		}
		equal(t, last(ws, 5), "msg_67_1 msg_68_0 msg_68_1 msg_69_0 msg_69_1", "oldest first")
		equal(t, last(ws, 200), ids(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				ListMessages(ctx, ws, "th", "", 200)
		}), func(m reeve.Message) string { return m.ID }), "all of them")
		equal(t, last("ws_two", 5), "", "another workspace's view")
	},

	"a call of a run that must go on": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		n := 0
		insert := func(run string, operation, looks bool) error {
			n++
			c := call(fmt.Sprintf("msg_%03d", n), "th")
			if c.Operation.RunID = run; operation {
				c.Operation.ID, c.Operation.State, c.Operation.Effect = fmt.Sprint("op_", n), reeve.Prepared,
					reeve.Unsafe
			}
			return db.Update(ctx, func(tx *store.Tx) error {
				w, err := tx.Agents().GetWorkspace(ctx, ws)
				if err != nil {
					return err
				}
				j := store.Preconditions{Revision: w.Revision}
				if looks {
					j.Run, j.Automation = run, "agt_one"
				}
				return tx.Ledger().InsertCall(ctx, c, j)
			})
		}
		check := func(run string, goes bool, when string) {
			t.Helper()
			for _, operation := range []bool{false, true} {
				must(t, insert(run, operation, false)) // nothing is asked of the run
				if err := insert(run, operation, true); goes && err != nil || !goes &&
					!errors.As(err, new(store.ErrStaleDecision)) {
					t.Fatalf("%s: %v", when, err)
				}
			}
		}
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Runs().InsertRun(ctx, reeve.Run{ID: "run_1", Key: "key_1", WorkspaceID: ws, AgentID: "agt_one",
				Reason: reeve.ReasonManual, State: reeve.RunRunning, ThreadID: "th"})
			return err
		})
		check("run_1", true, "a run that is under way")
		check("run_none", true, "a run that nobody noted")
		waits := operation("op_waits", reeve.Parked)
		waits.RunID = "run_1"
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, waits) })
		check("run_1", false, "a call of it waits for a person")
		check("run_none", true, "a call of another waits")
		update(t, db, func(tx *store.Tx) error {
			is := waits
			is.State, is.ResultID = reeve.DeniedOp, "msg_result"
			return tx.Ledger().TransitionOperation(ctx, waits, is,
				&store.CallResult{ID: is.ResultID, Info: []byte("{}")})
		})
		check("run_1", true, "the person has spoken")
		now := time.Now()
		pause := func(at *time.Time) {
			update(t, db, func(tx *store.Tx) error {
				return tx.Automations().PutAutomation(ctx, reeve.Automation{AgentID: "agt_one", WorkspaceID: ws,
					PausedAt: at})
			})
		}
		pause(&now)
		check("run_1", false, "its automation is paused")
		pause(nil)
		check("run_1", true, "and resumed")
		update(t, db, func(tx *store.Tx) error {
			run, err := tx.Runs().GetRun(ctx, ws, "run_1")
			if err == nil {
				_, err = tx.Runs().CancelRun(ctx, run, reeve.Errorf(reeve.Canceled, "enough"))
			}
			return err
		})
		check("run_1", false, "it has ended")
	},

	"a call that is over": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		c := finished("msg_1", "th", "msg_2")
		c.Operation.RunID, c.Operation.ID, c.Operation.State, c.Operation.Effect, c.Result.Content = "run_1", "op_1",
			reeve.Committed, reeve.Local, "binary \x00 end"
		for _, c := range []store.Call{call("msg_0", "th"), c} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().
					InsertCall(ctx, c, store.Preconditions{Revision: 1})
			})
		}
		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "msg_0", 10)
		})
		equal(t, ids(list, func(m reeve.Message) string {
			return fmt.Sprint(m.PrevID, ">", m.ID, " ", m.Kind, " ", m.ActionID, " ", m.RunID, " ", m.OperationID)
		}), "msg_0>msg_1 action  run_1 op_1 msg_1>msg_2 tool_result msg_1 run_1 op_1", "both, one after the other")
		equal(t, list[1].Content, "binary \uFFFD end", "output that is not text")
		update(t, db, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		wantAs[store.ErrStaleDecision](t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Ledger().InsertCall(ctx, finished("msg_4", "th", "msg_5"), store.Preconditions{Revision: 1})
		}))
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				ListMessages(ctx, ws, "th", "", 10)
		})), 3, "messages")
	},

	"a stale call writes nothing": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		for name, after := range map[string]func(*store.Tx) error{
			"at commit": func(*store.Tx) error { return nil },
			"at a read": func(tx *store.Tx) error { _, err := tx.Agents().GetWorkspace(ctx, ws); return err },
			"unheeded":  func(tx *store.Tx) error { _, _ = tx.Agents().GetWorkspace(ctx, ws); return nil },
			"unheeded, with more behind": func(tx *store.Tx) error {
				_, _ = tx.Agents().GetWorkspace(ctx, ws)
				_ = tx.Ledger().InsertCall(ctx, call("msg_b", "th"), store.Preconditions{Revision: 2})
				return nil
			},
		} {
			for _, revision := range []int64{1, 3} {
				err := db.Update(ctx, func(tx *store.Tx) error {
					if err := insertOperation(ctx, tx, operation("op_a", reeve.Prepared)); err != nil {
						return err
					}
					if err := tx.Ledger().InsertCall(ctx, call("msg_a", "th"),
						store.Preconditions{Revision: revision}); err != nil && !strings.HasPrefix(name, "unheeded") {
						return err
					}
					return after(tx)
				})
				if !errors.As(err, &store.ErrStaleDecision{}) {
					t.Fatalf("%s: got %v, want Stale", name, err)
				}
			}
		}
		err := db.Update(ctx, func(tx *store.Tx) error {
			c := call("msg_a", "th")
			c.Operation.WorkspaceID = "none"
			return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
		})
		wantAs[store.ErrStaleDecision](t, err)
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				ListMessages(ctx, ws, "th", "", 10)
		})), 0, "messages")
		equal(t, len(operations(t, db)), 0, "operations")
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().InsertCall(ctx, call("msg_a", "th"), store.Preconditions{Revision: 2})
		})
	},

	// Once Touch has returned, nothing judged before it is recorded.
	"a touch shuts out what was judged before": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		judged, touched := make(chan struct{}), make(chan struct{})
		var touchErr error
		go func() {
			defer close(touched)
			<-judged
			touchErr = db.Update(ctx, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		}()
		update(t, db, func(tx *store.Tx) error {
			if err := tx.Ledger().InsertCall(ctx, call("msg_a", "th"), store.Preconditions{Revision: 1}); err != nil {
				return err
			}
			if _, err := tx.Agents().GetWorkspace(ctx, ws); err != nil { // sends it
				return err
			}
			select {
			case judged <- struct{}{}:
			default:
				close(judged)
			}
			select {
			case <-touched:
				return errors.New("the workspace was touched before the call was recorded")
			case <-time.After(100 * time.Millisecond):
				return nil
			}
		})
		<-touched
		must(t, touchErr)
		// The other way round: many judge while one touches; what was recorded was recorded before.
		for i := range 20 {
			was := revision(t, db, ws)
			errs := race(5, func(n int) error {
				if n == 0 {
					return db.Update(ctx, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
				}
				return db.Update(ctx, func(tx *store.Tx) error {
					return tx.Ledger().InsertCall(ctx, call(fmt.Sprintf("msg_%d_%d", i, n), "th"),
						store.Preconditions{Revision: was})
				})
			})
			for _, err := range errs {
				if err != nil && !errors.As(err, &store.ErrStaleDecision{}) {
					t.Fatal(err)
				}
			}
		}
	},

	"one result per call": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		o := operation("op_a", reeve.Dispatched)
		o.State = reeve.Prepared
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, o) })
		sent := o
		sent.State = reeve.Dispatched
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().TransitionOperation(ctx, o, sent, nil) })
		equal(t, view(t, db, func(s *store.Snap) (store.Call, error) { return s.Ledger().GetCall(ctx, ws, o.CallID) }).
			Result == nil, true, "no result yet")
		end := func(result string) error {
			is := sent
			is.State, is.ResultID = reeve.Committed, result
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().TransitionOperation(ctx, sent, is,
					&store.CallResult{ID: result, Content: "said " + result, Info: []byte("{}")})
			})
		}
		exactlyOne(t, race(8, func(i int) error { return end(fmt.Sprint("msg_r", i)) }), reeve.Conflict)
		wantCode(t, end("msg_z"), reeve.Conflict)
		c := view(t, db, func(s *store.Snap) (store.Call, error) { return s.Ledger().GetCall(ctx, ws, o.CallID) })
		equal(t, c.Result.Content, "said "+c.Operation.ResultID, "the one that was first")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, o.ThreadID, "", 10)
		})), 2, "entries")
	},

	"operation": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		next := reeve.Now().Add(time.Minute)
		o := operation("op_a", reeve.Prepared)
		o.ResultID, o.RunID, o.ToolVersion, o.Policy, o.ArgsHash, o.Base, o.Code, o.Message = "msg_r", "run_1", "v",
			"p", "h", "b", reeve.Timeout, "slow \x00"
		o.Attempts, o.NextAttemptAt, o.Owner, o.Resolution, o.ResolvedBy = 3, &next, "proc_1", reeve.ResolveRetry, "me"
		o.Undo, o.Spent = &reeve.Undo{Tool: "undo", Args: []byte(`{"a":1}`)}, reeve.Amount{Calls: 1, Micros: 5}
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, o) })
		got := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
			return s.Ledger().
				GetOperation(ctx, ws, "op_a")
		})
		o.CreatedAt, o.UpdatedAt, o.Message = got.CreatedAt, got.UpdatedAt, "slow \uFFFD"
		if !reflect.DeepEqual(got, o) || got.CreatedAt.IsZero() || !got.CreatedAt.Equal(got.UpdatedAt) {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, o)
		}
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().
				GetOperation(ctx, "ws_two", "op_a")
			return err
		}), reeve.NotFound)

		// The same id again, whether the failure is seen at once or only at the commit.
		wantAs[store.ErrDuplicateOperation](t,
			db.Update(ctx, func(tx *store.Tx) error {
				return insertOperation(ctx, tx,
					operation("op_a", reeve.Prepared))
			}))
		wantAs[store.ErrDuplicateOperation](t, db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.Ledger().InsertCall(ctx, call("msg_z", "th"), store.Preconditions{Revision: 1}); err != nil {
				return err
			}
			_ = insertOperation(ctx, tx, operation("op_a", reeve.Prepared))
			_ = tx.Ledger().InsertCall(ctx, call("msg_y", "th"), store.Preconditions{Revision: 1})
			return nil
		}))
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				ListMessages(ctx, ws, "th", "", 10)
		})), 0, "messages of a refused change")
		taken := 0
		for _, err := range race(8, func(int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				return insertOperation(ctx, tx,
					operation("op_raced", reeve.Prepared))
			})
		}) {
			if err != nil {
				wantAs[store.ErrDuplicateOperation](t, err)
				taken++
			}
		}
		equal(t, taken, 7, "losers")
		wantCode(t, db.Update(ctx,
			func(tx *store.Tx) error { return insertOperation(ctx, tx, operation("op_b", reeve.Unknown)) }),
			reeve.Conflict)
	},

	"moving an operation": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, operation("op_a", reeve.Prepared)) })
		was := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
			return s.Ledger().
				GetOperation(ctx, ws, "op_a")
		})
		move := func(was reeve.Operation, change func(*reeve.Operation)) error {
			is := was
			change(&is)
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().
					TransitionOperation(ctx, was, is, nil)
			})
		}
		wantCode(t, move(was, func(o *reeve.Operation) { o.State = reeve.Unknown }), reeve.Conflict)
		errs := race(8, func(i int) error {
			return move(was, func(o *reeve.Operation) { o.State, o.Owner = reeve.Dispatched, fmt.Sprint("proc_", i) })
		})
		exactlyOne(t, errs, reeve.Conflict)
		is := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
			return s.Ledger().
				GetOperation(ctx, ws, "op_a")
		})
		wantCode(t, move(was, func(o *reeve.Operation) { o.State = reeve.Failed }), reeve.Conflict)
		lost := is
		lost.Owner = "proc_other" // the right state in other hands
		wantCode(t, move(lost, func(o *reeve.Operation) { o.State = reeve.Committed }), reeve.Conflict)
		// staying is no transition
		must(t, move(is, func(o *reeve.Operation) { o.Attempts++ }))
		// it was tried since
		wantCode(t, move(is, func(o *reeve.Operation) { o.State = reeve.Committed }), reeve.Conflict)
		is.Attempts++
		must(t, move(is, func(o *reeve.Operation) {
			o.State, o.Owner, o.Code = reeve.Unknown, "",
				reeve.UnknownOutcome
		}))
		unknown := view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
			return s.Ledger().
				ListUnknown(ctx, ws, 10)
		})
		equal(t, len(unknown), 1, "unknown operations")
		must(t, move(unknown[0], func(o *reeve.Operation) { o.Resolution = reeve.ResolveSkip }))
		// another's word, who has not seen the first
		for _, second := range []reeve.State{reeve.Prepared, reeve.Committed} {
			wantCode(t, move(unknown[0], func(o *reeve.Operation) { o.State = second }), reeve.Conflict)
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
			return s.Ledger().
				ListUnknown(ctx, ws, 10)
		})), 0, "unknown after the word")
		unknown[0].Resolution = reeve.ResolveSkip
		other := unknown[0]
		other.ResultID = "msg_other"
		wantCode(t, move(other, func(o *reeve.Operation) { o.State = reeve.Committed }), reeve.Conflict)
		must(t, move(unknown[0], func(o *reeve.Operation) { o.State = reeve.Committed }))
		unknown[0].State = reeve.Committed
		wantCode(t, move(unknown[0], func(o *reeve.Operation) { o.State = reeve.Prepared }), reeve.Conflict)
	},

	"pages of operations": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for batch := range 3 { // several per millisecond
			update(t, db, func(tx *store.Tx) error {
				for i := range 7 {
					o := operation(fmt.Sprintf("op_%d_%d", 9-batch, i), reeve.Prepared)
					o.CallID = tx.NewID(reeve.PrefixMessage)
					if i%2 == 1 {
						o.AgentID, o.State = "agt_two", reeve.Parked
					}
					if err := insertOperation(ctx, tx, o); err != nil {
						return err
					}
				}
				return nil
			})
			time.Sleep(2 * time.Millisecond)
		}
		walk := func(f store.OperationFilter) (all []reeve.Operation) {
			f.Limit = 4
			for {
				page := view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
					return s.Ledger().
						ListOperations(ctx, ws, f)
				})
				if all = append(all, page...); len(page) < 4 {
					return all
				}
				f.Before = page[len(page)-1].CallID
			}
		}
		everything := walk(store.OperationFilter{})
		equal(t, len(everything), 21, "operations")
		seen := map[string]bool{}
		for i, o := range everything {
			equal(t, seen[o.ID], false, "%s came before", o.ID)
			seen[o.ID] = true
			if i > 0 && everything[i-1].CreatedAt.Before(o.CreatedAt) {
				t.Fatal("not newest first")
			}
		}
		equal(t, len(walk(store.OperationFilter{Agent: "agt_two"})), 9, "an agent's")
		equal(t, len(walk(store.OperationFilter{State: reeve.Prepared})), 12, "in a state")
		equal(t, len(walk(store.OperationFilter{Agent: "agt_two", State: reeve.Prepared})), 0, "an agent's in a state")
		update(t, db, func(tx *store.Tx) error {
			o := operation("op_run", reeve.Parked)
			o.RunID = "run_1"
			return insertOperation(ctx, tx, o)
		})
		equal(t, view(t, db, func(s *store.Snap) (string, error) {
			return s.Ledger().FindParkedOperation(ctx, ws,
				"run_1")
		}),
			"op_run", "parked run")
		equal(t, view(t, db, func(s *store.Snap) (string, error) {
			return s.Ledger().FindParkedOperation(ctx, ws,
				"run_2")
		}),
			"", "run that is not parked")
		equal(t, view(t, db, func(s *store.Snap) (string, error) {
			return s.Ledger().FindParkedOperation(ctx, ws,
				"")
		}), "",
			"no run")
	},

	"events": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().InsertEvents(ctx, ws, "agt_one", "op_1",
				[]reeve.Token{{Class: reeve.SemanticKey, Name: "a"}, {Class: reeve.Subtype, Name: "b"},
					{Class: reeve.EntityID, Name: "d"}, {Class: reeve.EntityID, Name: "c"}})
		})
		changed := func(workspace, operation string) string {
			return strings.Join(view(t, db, func(s *store.Snap) ([]string, error) {
				return s.Queue().
					ChangedIDs(ctx, workspace, operation)
			}), " ")
		}
		equal(t, changed(ws, "op_1"), "c d", "the entities of a change")
		equal(t, changed(ws, "op_2"), "", "another change's")
		equal(t, changed("ws_two", "op_1"), "", "another workspace's")
	},
}

func operations(t testing.TB, db *store.DB) []reeve.Operation {
	t.Helper()
	return view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
		return s.Ledger().ListOperations(t.Context(), ws, store.OperationFilter{Limit: 10_000})
	})
}
