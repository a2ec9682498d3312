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

var errTest = errors.New("mine")

// ledger tests messages, calls, operations and events.
var ledger = map[string]func(*testing.T, *store.DB){
	"messages and calls": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		thread := "agent:session:s"
		c := completedCall("msg_1", thread, "msg_2")
		c.Args, c.Request = `{"text":"ünï 🦉\n\u0000"}`, []byte(`{"type":"tool_call",  "n": 1.0}`)
		c.Result.Content = "binary \x00 and \xff end"
		for _, c := range []store.Call{c, newCall("msg_3", thread), newCall("msg_4", "agent:session:other")} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
			})
		}
		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, thread, "", 10)
		})
		equal(t, joinIDs(list, func(m reeve.Message) string { return m.PrevID + ">" + m.ID }),
			">msg_1 msg_1>msg_2 msg_2>msg_3", "previous messages")
		equal(t, list[0].Content, c.Args, "arguments")
		equal(t, string(list[0].Metadata), string(c.Request), "request")
		equal(t, list[1].Content, "binary \uFFFD and \uFFFD end", "result with invalid UTF-8")
		equal(t, list[1].ActionID, "msg_1", "action of the result")
		page := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, thread, "msg_1", 1)
		})
		equal(t, joinIDs(page, func(m reeve.Message) string { return m.ID }), "msg_2", "page")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, "ws_two", thread, "", 10)
		})), 0, "messages in another workspace")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetCall(ctx, "ws_two", "msg_1")
			return err
		}), reeve.NotFound)
		got := view(t, db, func(s *store.Snap) (store.Call, error) { return s.Ledger().GetCall(ctx, ws, "msg_1") })
		if d := time.Since(got.Operation.CreatedAt); d < 0 || d > time.Minute || got.Operation.ID != "" ||
			got.Operation.State != "" {
			t.Fatalf("call: %+v", got)
		}
	},

	"all messages of a run": func(t *testing.T, db *store.DB) {
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
		for _, more := range []int{0, 999, 1, 1, 999, 1} { // around multiples of the page size, which is 1000
			add(more)
			list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				return s.Ledger().AllRunMessages(ctx, ws, "run_1")
			})
			equal(t, len(list), n, "messages")
			for i, m := range list {
				equal(t, m.ID, fmt.Sprintf("msg_%05d", i+1), "message %d", i)
			}
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().AllRunMessages(ctx, "ws_two", "run_1")
		})), 0, "messages in another workspace")
	},

	"last messages of many runs": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		var runs []string // newest first
		update(t, db, func(tx *store.Tx) error {
			for i := range 70 { // more runs than one SQLite statement reads
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
		lastMessages := func(workspace string, limit int) string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				return s.Ledger().TurnMessages(ctx, workspace, runs, limit)
			}), func(m reeve.Message) string { return m.ID })
		}
		equal(t, lastMessages(ws, 5), "msg_67_1 msg_68_0 msg_68_1 msg_69_0 msg_69_1", "oldest first")
		equal(t, lastMessages(ws, 200), joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "", 200)
		}), func(m reeve.Message) string { return m.ID }), "all of them")
		equal(t, lastMessages("ws_two", 5), "", "messages in another workspace")
	},

	"calls that require a running run": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		n := 0
		insert := func(run string, hasOperation, requireRun bool) error {
			n++
			c := newCall(fmt.Sprintf("msg_%03d", n), "th")
			if c.Operation.RunID = run; hasOperation {
				c.Operation.ID, c.Operation.State, c.Operation.Effect = fmt.Sprint("op_", n), reeve.Prepared,
					reeve.Unsafe
			}
			return db.Update(ctx, func(tx *store.Tx) error {
				w, err := tx.Agents().GetWorkspace(ctx, ws)
				if err != nil {
					return err
				}
				j := store.Preconditions{Revision: w.Revision}
				if requireRun {
					j.Run, j.Automation = run, "agt_one"
				}
				return tx.Ledger().InsertCall(ctx, c, j)
			})
		}
		check := func(run string, wantInserted bool, when string) {
			t.Helper()
			for _, hasOperation := range []bool{false, true} {
				must(t, insert(run, hasOperation, false)) // without a condition on the run
				if err := insert(run, hasOperation, true); wantInserted && err != nil || !wantInserted &&
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
		check("run_1", true, "running run")
		check("run_none", true, "run without a row")
		parked := newOperation("op_parked", reeve.Parked)
		parked.RunID = "run_1"
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, parked) })
		check("run_1", false, "a call of the run is parked")
		check("run_none", true, "a call of another run is parked")
		update(t, db, func(tx *store.Tx) error {
			is := parked
			is.State, is.ResultID = reeve.DeniedOp, "msg_result"
			return tx.Ledger().TransitionOperation(ctx, parked, is,
				&store.CallResult{ID: is.ResultID, Info: []byte("{}")})
		})
		check("run_1", true, "the parked call was denied")
		now := time.Now()
		pause := func(at *time.Time) {
			update(t, db, func(tx *store.Tx) error {
				return tx.Automations().PutAutomation(ctx, reeve.Automation{AgentID: "agt_one", WorkspaceID: ws,
					PausedAt: at})
			})
		}
		pause(&now)
		check("run_1", false, "the automation is paused")
		pause(nil)
		check("run_1", true, "the automation was resumed")
		update(t, db, func(tx *store.Tx) error {
			run, err := tx.Runs().GetRun(ctx, ws, "run_1")
			if err == nil {
				_, err = tx.Runs().CancelRun(ctx, run, reeve.Errorf(reeve.Canceled, "enough"))
			}
			return err
		})
		check("run_1", false, "the run has ended")
	},

	"completed call": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		c := completedCall("msg_1", "th", "msg_2")
		c.Operation.RunID, c.Operation.ID, c.Operation.State, c.Operation.Effect, c.Result.Content = "run_1", "op_1",
			reeve.Committed, reeve.Local, "binary \x00 end"
		for _, c := range []store.Call{newCall("msg_0", "th"), c} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
			})
		}
		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "msg_0", 10)
		})
		equal(t, joinIDs(list, func(m reeve.Message) string {
			return fmt.Sprint(m.PrevID, ">", m.ID, " ", m.Kind, " ", m.ActionID, " ", m.RunID, " ", m.OperationID)
		}), "msg_0>msg_1 action  run_1 op_1 msg_1>msg_2 tool_result msg_1 run_1 op_1", "action and result, in order")
		equal(t, list[1].Content, "binary \uFFFD end", "result with invalid UTF-8")
		update(t, db, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		wantAs[store.ErrStaleDecision](t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Ledger().InsertCall(ctx, completedCall("msg_4", "th", "msg_5"), store.Preconditions{Revision: 1})
		}))
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "", 10)
		})), 3, "messages")
	},

	"stale call": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		for name, after := range map[string]func(*store.Tx) error{
			"at commit": func(*store.Tx) error { return nil },
			"at a read": func(tx *store.Tx) error { _, err := tx.Agents().GetWorkspace(ctx, ws); return err },
			"ignored":   func(tx *store.Tx) error { _, _ = tx.Agents().GetWorkspace(ctx, ws); return nil },
			"ignored, with another call": func(tx *store.Tx) error {
				_, _ = tx.Agents().GetWorkspace(ctx, ws)
				_ = tx.Ledger().InsertCall(ctx, newCall("msg_b", "th"), store.Preconditions{Revision: 2})
				return nil
			},
		} {
			for _, revision := range []int64{1, 3} {
				err := db.Update(ctx, func(tx *store.Tx) error {
					if err := insertOperation(ctx, tx, newOperation("op_a", reeve.Prepared)); err != nil {
						return err
					}
					if err := tx.Ledger().InsertCall(ctx, newCall("msg_a", "th"),
						store.Preconditions{Revision: revision}); err != nil && !strings.HasPrefix(name, "ignored") {
						return err
					}
					return after(tx)
				})
				if !errors.As(err, &store.ErrStaleDecision{}) {
					t.Fatalf("%s: got %v, want ErrStaleDecision", name, err)
				}
			}
		}
		err := db.Update(ctx, func(tx *store.Tx) error {
			c := newCall("msg_a", "th")
			c.Operation.WorkspaceID = "none"
			return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
		})
		wantAs[store.ErrStaleDecision](t, err)
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "", 10)
		})), 0, "messages")
		equal(t, len(listOperations(t, db)), 0, "operations")
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().InsertCall(ctx, newCall("msg_a", "th"), store.Preconditions{Revision: 2})
		})
	},

	// After Touch has committed, no call that was decided at an earlier revision is recorded.
	"touch invalidates earlier decisions": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		decided, touched := make(chan struct{}), make(chan struct{})
		var touchErr error
		go func() {
			defer close(touched)
			<-decided
			touchErr = db.Update(ctx, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		}()
		update(t, db, func(tx *store.Tx) error {
			if err := tx.Ledger().InsertCall(ctx, newCall("msg_a", "th"),
				store.Preconditions{Revision: 1}); err != nil {
				return err
			}
			if _, err := tx.Agents().GetWorkspace(ctx, ws); err != nil { // sends the queued statements
				return err
			}
			select {
			case decided <- struct{}{}:
			default:
				close(decided)
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
		// The reverse: several calls are recorded during a Touch. Each is either recorded before it or refused as
		// stale.
		for i := range 20 {
			was := getRevision(t, db, ws)
			errs := runConcurrently(5, func(n int) error {
				if n == 0 {
					return db.Update(ctx, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
				}
				return db.Update(ctx, func(tx *store.Tx) error {
					return tx.Ledger().InsertCall(ctx, newCall(fmt.Sprintf("msg_%d_%d", i, n), "th"),
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
		o := newOperation("op_a", reeve.Dispatched)
		o.State = reeve.Prepared
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, o) })
		sent := o
		sent.State = reeve.Dispatched
		update(t, db, func(tx *store.Tx) error { return tx.Ledger().TransitionOperation(ctx, o, sent, nil) })
		equal(t, view(t, db, func(s *store.Snap) (store.Call, error) { return s.Ledger().GetCall(ctx, ws, o.CallID) }).
			Result == nil, true, "no result yet")
		complete := func(result string) error {
			is := sent
			is.State, is.ResultID = reeve.Committed, result
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().TransitionOperation(ctx, sent, is,
					&store.CallResult{ID: result, Content: "result " + result, Info: []byte("{}")})
			})
		}
		wantOneSuccess(t, runConcurrently(8, func(i int) error { return complete(fmt.Sprint("msg_r", i)) }),
			reeve.Conflict)
		wantCode(t, complete("msg_z"), reeve.Conflict)
		c := view(t, db, func(s *store.Snap) (store.Call, error) { return s.Ledger().GetCall(ctx, ws, o.CallID) })
		equal(t, c.Result.Content, "result "+c.Operation.ResultID, "result of the first transition")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, o.ThreadID, "", 10)
		})), 2, "messages")
	},

	"operation": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		next := reeve.Now().Add(time.Minute)
		o := newOperation("op_a", reeve.Prepared)
		o.ResultID, o.RunID, o.ToolVersion, o.Policy, o.ArgsHash, o.Base, o.Code, o.Message = "msg_r", "run_1", "v",
			"p", "h", "b", reeve.Timeout, "slow \x00"
		o.Attempts, o.NextAttemptAt, o.Owner, o.Resolution, o.ResolvedBy = 3, &next, "proc_1", reeve.ResolveRetry, "me"
		o.Undo, o.Spent = &reeve.Undo{Tool: "undo", Args: []byte(`{"a":1}`)}, reeve.Amount{Calls: 1, Micros: 5}
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, o) })
		got := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
			return s.Ledger().GetOperation(ctx, ws, "op_a")
		})
		o.CreatedAt, o.UpdatedAt, o.Message = got.CreatedAt, got.UpdatedAt, "slow \uFFFD"
		if !reflect.DeepEqual(got, o) || got.CreatedAt.IsZero() || !got.CreatedAt.Equal(got.UpdatedAt) {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, o)
		}
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetOperation(ctx, "ws_two", "op_a")
			return err
		}), reeve.NotFound)

		// A duplicate id is reported whether the insert fails immediately or at the commit.
		wantAs[store.ErrDuplicateOperation](t,
			db.Update(ctx, func(tx *store.Tx) error {
				return insertOperation(ctx, tx, newOperation("op_a", reeve.Prepared))
			}))
		wantAs[store.ErrDuplicateOperation](t, db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.Ledger().InsertCall(ctx, newCall("msg_z", "th"),
				store.Preconditions{Revision: 1}); err != nil {
				return err
			}
			_ = insertOperation(ctx, tx, newOperation("op_a", reeve.Prepared))
			_ = tx.Ledger().InsertCall(ctx, newCall("msg_y", "th"), store.Preconditions{Revision: 1})
			return nil
		}))
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "", 10)
		})), 0, "messages of the refused transaction")
		duplicates := 0
		for _, err := range runConcurrently(8, func(int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				return insertOperation(ctx, tx, newOperation("op_shared", reeve.Prepared))
			})
		}) {
			if err != nil {
				wantAs[store.ErrDuplicateOperation](t, err)
				duplicates++
			}
		}
		equal(t, duplicates, 7, "refused duplicates")
		wantCode(t, db.Update(ctx,
			func(tx *store.Tx) error { return insertOperation(ctx, tx, newOperation("op_b", reeve.Unknown)) }),
			reeve.Conflict)
	},

	"transitions of an operation": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return insertOperation(ctx, tx, newOperation("op_a", reeve.Prepared))
		})
		was := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
			return s.Ledger().GetOperation(ctx, ws, "op_a")
		})
		transition := func(was reeve.Operation, change func(*reeve.Operation)) error {
			is := was
			change(&is)
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().TransitionOperation(ctx, was, is, nil)
			})
		}
		wantCode(t, transition(was, func(o *reeve.Operation) { o.State = reeve.Unknown }), reeve.Conflict)
		errs := runConcurrently(8, func(i int) error {
			return transition(was, func(o *reeve.Operation) {
				o.State, o.Owner = reeve.Dispatched, fmt.Sprint("proc_", i)
			})
		})
		wantOneSuccess(t, errs, reeve.Conflict)
		is := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
			return s.Ledger().GetOperation(ctx, ws, "op_a")
		})
		wantCode(t, transition(was, func(o *reeve.Operation) { o.State = reeve.Failed }), reeve.Conflict)
		lost := is
		lost.Owner = "proc_other" // the same state with another owner
		wantCode(t, transition(lost, func(o *reeve.Operation) { o.State = reeve.Committed }), reeve.Conflict)
		// an update within the same state is allowed
		must(t, transition(is, func(o *reeve.Operation) { o.Attempts++ }))
		// another attempt was made since the operation was read
		wantCode(t, transition(is, func(o *reeve.Operation) { o.State = reeve.Committed }), reeve.Conflict)
		is.Attempts++
		must(t, transition(is, func(o *reeve.Operation) {
			o.State, o.Owner, o.Code = reeve.Unknown, "", reeve.UnknownOutcome
		}))
		unknown := view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
			return s.Ledger().ListUnknown(ctx, ws, 10)
		})
		equal(t, len(unknown), 1, "unknown operations")
		must(t, transition(unknown[0], func(o *reeve.Operation) { o.Resolution = reeve.ResolveSkip }))
		// a decision by a person who has not seen the first decision
		for _, second := range []reeve.State{reeve.Prepared, reeve.Committed} {
			wantCode(t, transition(unknown[0], func(o *reeve.Operation) { o.State = second }), reeve.Conflict)
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
			return s.Ledger().ListUnknown(ctx, ws, 10)
		})), 0, "unknown operations after the decision")
		unknown[0].Resolution = reeve.ResolveSkip
		other := unknown[0]
		other.ResultID = "msg_other"
		wantCode(t, transition(other, func(o *reeve.Operation) { o.State = reeve.Committed }), reeve.Conflict)
		must(t, transition(unknown[0], func(o *reeve.Operation) { o.State = reeve.Committed }))
		unknown[0].State = reeve.Committed
		wantCode(t, transition(unknown[0], func(o *reeve.Operation) { o.State = reeve.Prepared }), reeve.Conflict)
	},

	"pages of operations": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for batch := range 3 { // several operations in the same millisecond
			update(t, db, func(tx *store.Tx) error {
				for i := range 7 {
					o := newOperation(fmt.Sprintf("op_%d_%d", 9-batch, i), reeve.Prepared)
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
		listAll := func(f store.OperationFilter) (all []reeve.Operation) {
			f.Limit = 4
			for {
				page := view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
					return s.Ledger().ListOperations(ctx, ws, f)
				})
				if all = append(all, page...); len(page) < 4 {
					return all
				}
				f.Before = page[len(page)-1].CallID
			}
		}
		everything := listAll(store.OperationFilter{})
		equal(t, len(everything), 21, "operations")
		seen := map[string]bool{}
		for i, o := range everything {
			equal(t, seen[o.ID], false, "%s was on an earlier page", o.ID)
			seen[o.ID] = true
			if i > 0 && everything[i-1].CreatedAt.Before(o.CreatedAt) {
				t.Fatal("operations are not listed newest first")
			}
		}
		equal(t, len(listAll(store.OperationFilter{Agent: "agt_two"})), 9, "operations of an agent")
		equal(t, len(listAll(store.OperationFilter{State: reeve.Prepared})), 12, "operations in a state")
		equal(t, len(listAll(store.OperationFilter{Agent: "agt_two", State: reeve.Prepared})), 0,
			"operations of an agent in a state")
		update(t, db, func(tx *store.Tx) error {
			o := newOperation("op_run", reeve.Parked)
			o.RunID = "run_1"
			return insertOperation(ctx, tx, o)
		})
		equal(t, view(t, db, func(s *store.Snap) (string, error) {
			return s.Ledger().FindParkedOperation(ctx, ws,
				"run_1")
		}),
			"op_run", "operation that parks the run")
		equal(t, view(t, db, func(s *store.Snap) (string, error) {
			return s.Ledger().FindParkedOperation(ctx, ws,
				"run_2")
		}),
			"", "operation that parks another run")
		equal(t, view(t, db, func(s *store.Snap) (string, error) {
			return s.Ledger().FindParkedOperation(ctx, ws,
				"")
		}), "",
			"operation that parks an empty run id")
	},

	"events": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return tx.Ledger().InsertEvents(ctx, ws, "agt_one", "op_1",
				[]reeve.Token{{Class: reeve.SemanticKey, Name: "a"}, {Class: reeve.Subtype, Name: "b"},
					{Class: reeve.EntityID, Name: "d"}, {Class: reeve.EntityID, Name: "c"}})
		})
		changedIDs := func(workspace, operation string) string {
			return strings.Join(view(t, db, func(s *store.Snap) ([]string, error) {
				return s.Queue().ChangedIDs(ctx, workspace, operation)
			}), " ")
		}
		equal(t, changedIDs(ws, "op_1"), "c d", "entities of the operation")
		equal(t, changedIDs(ws, "op_2"), "", "entities of another operation")
		equal(t, changedIDs("ws_two", "op_1"), "", "entities in another workspace")
	},
}

// listOperations returns the operations of the workspace ws.
func listOperations(t testing.TB, db *store.DB) []reeve.Operation {
	t.Helper()
	return view(t, db, func(s *store.Snap) ([]reeve.Operation, error) {
		return s.Ledger().ListOperations(t.Context(), ws, store.OperationFilter{Limit: 10_000})
	})
}
