package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// insertCompletedCall inserts a call with a result and a committed operation. The function change may modify the call
// before it is inserted.
func insertCompletedCall(t *testing.T, db *store.DB, thread, run string, change func(*store.Call)) (c store.Call) {
	t.Helper()
	update(t, db, func(tx *store.Tx) error {
		c = completedCall(tx.NewID(reeve.PrefixMessage), thread, tx.NewID(reeve.PrefixMessage))
		c.Operation.ID, c.Operation.State, c.Operation.Effect, c.Operation.RunID = tx.NewID(reeve.PrefixOperation),
			reeve.Committed, reeve.Local, run
		if change != nil {
			change(&c)
		}
		return tx.Ledger().InsertCall(t.Context(), c, store.Preconditions{Revision: 1})
	})
	return c
}

// calls tests the thread log, which consists of calls and messages.
var calls = map[string]func(*testing.T, *store.DB){
	"thread of calls and messages": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		appendThought := func() (id string) {
			update(t, db, func(tx *store.Tx) error {
				id = tx.NewID(reeve.PrefixMessage)
				return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: id, WorkspaceID: ws, ThreadID: "th",
					AgentID: "agt_one", Kind: reeve.Thought, Content: "hm", RunID: "run_1"})
			})
			return id
		}
		var all []string
		for range 3 {
			all = append(all, appendThought())
			for range 2 {
				c := insertCompletedCall(t, db, "th", "run_1", func(c *store.Call) {
					c.Args, c.Request, c.Result.Content, c.Result.Info = `{"n":1}`,
						[]byte(`{"type":"tool_call", "n": 1.0}`), "binary \x00 end", []byte(`{"status":"success"}`)
					c.Operation.Spent = reeve.Amount{Calls: 1, Tokens: 5}
				})
				all = append(all, c.Operation.CallID, c.Result.ID)
			}
		}
		insertCompletedCall(t, db, "another", "run_2", nil)
		all = append(all, appendThought())

		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(ctx, ws, "th", "", 100)
		})
		equal(t, joinIDs(list, func(m reeve.Message) string { return m.ID }), strings.Join(all, " "),
			"messages of the thread, in order")
		for i, m := range list {
			before := ""
			if i > 0 {
				before = list[i-1].ID
			}
			equal(t, m.PrevID, before, "previous message")
			if m.Kind != reeve.Action {
				continue
			}
			equal(t, m.Content+" "+string(m.Metadata)+" "+m.RunID+" "+m.AgentID,
				`{"n":1} {"type":"tool_call", "n": 1.0} run_1 agt_one`, "action")
			answer := list[i+1]
			equal(t, fmt.Sprint(answer.Kind, " ", answer.ActionID, " ", answer.OperationID == m.OperationID, " ",
				answer.Content), "tool_result "+m.ID+" true binary \uFFFD end", "result")
			op := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
				return s.Ledger().GetOperation(ctx, ws, m.OperationID)
			})
			equal(t, fmt.Sprint(op.CallID, op.ResultID, op.State, op.Spent.Tokens),
				fmt.Sprint(m.ID, answer.ID, reeve.Committed, 5), "operation")
		}
		for size := 1; size <= 4; size++ {
			for which, read := range map[string]func(s *store.Snap, after string) ([]reeve.Message, error){
				"thread": func(s *store.Snap, after string) ([]reeve.Message, error) {
					return s.Ledger().ListMessages(ctx, ws, "th", after, size)
				},
				"run": func(s *store.Snap, after string) ([]reeve.Message, error) {
					return s.Ledger().RunMessages(ctx, ws, "run_1", after, size)
				},
			} {
				var got []string
				for after := ""; ; {
					page := view(t, db, func(s *store.Snap) ([]reeve.Message, error) { return read(s, after) })
					if len(page) == 0 {
						break
					}
					for _, m := range page {
						got = append(got, m.ID)
					}
					after = store.MessageCursor(page[len(page)-1])
				}
				equal(t, strings.Join(got, " "), strings.Join(all, " "), "%s in pages of %d", which, size)
			}
		}
		last := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().TurnMessages(ctx, ws, []string{"run_1", "run_none"}, 4)
		})
		equal(t, joinIDs(last, func(m reeve.Message) string { return m.ID }), strings.Join(all[len(all)-4:], " "),
			"last messages of a turn")
		spent := view(t, db, func(s *store.Snap) (reeve.Amount, error) { return s.Runs().RunSpent(ctx, "run_1") })
		equal(t, fmt.Sprint(spent.Calls, spent.Tokens), "6 30", "amount spent by the run")
	},

	"previous messages": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		made := make([]string, 8)
		update(t, db, func(tx *store.Tx) error {
			for i := range made {
				made[i] = tx.NewID(reeve.PrefixMessage)
			}
			return nil
		})
		var all []string
		for i, id := range made {
			if all = append(all, id); i%2 == 1 {
				all = append(all, "msg_result_of_"+id) // the result follows its call, whatever its id
			}
		}
		for _, i := range []int{5, 2, 7, 0, 1, 6, 3, 4} { // commits may happen in any order
			update(t, db, func(tx *store.Tx) error {
				c := newCall(made[i], "th")
				if c.Operation.RunID = fmt.Sprint("run_", i%4); i%2 == 1 {
					c.Result = &store.CallResult{ID: "msg_result_of_" + made[i], Info: []byte("{}")}
				}
				return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
			})
		}
		checkPrevious := func(list []reeve.Message) {
			t.Helper()
			for _, m := range list {
				before := ""
				if i := slices.Index(all, m.ID); i > 0 {
					before = all[i-1]
				}
				equal(t, m.PrevID, before, "message before %s", m.ID)
			}
		}
		for size := 1; size <= len(all); size++ {
			var got []string
			for after := ""; len(got) < len(all); {
				list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
					return s.Ledger().ListMessages(ctx, ws, "th", after, size)
				})
				checkPrevious(list)
				for _, m := range list {
					got, after = append(got, m.ID), store.MessageCursor(m)
				}
			}
			equal(t, strings.Join(got, " "), strings.Join(all, " "), "thread in pages of %d", size)
		}
		for i := range 4 { // messages of other runs lie between those of a run
			list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				list, err := s.Ledger().AllRunMessages(ctx, ws, fmt.Sprint("run_", i))
				return list, errors.Join(err, s.Ledger().SetPrevious(ctx, list))
			})
			equal(t, len(list), 2+2*(i%2), "messages of a run")
			checkPrevious(list)
		}
		none := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return nil, s.Ledger().SetPrevious(ctx, nil)
		})
		equal(t, len(none), 0, "messages")
	},

	"refused call": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		used := insertCompletedCall(t, db, "th", "", nil)
		insertCall := func(id string, s reeve.State, revision int64) error {
			return db.Update(t.Context(), func(tx *store.Tx) error {
				c := completedCall(tx.NewID(reeve.PrefixMessage), "th", tx.NewID(reeve.PrefixMessage))
				c.Operation.ID, c.Operation.State = id, s
				return tx.Ledger().InsertCall(t.Context(), c, store.Preconditions{Revision: revision})
			})
		}
		wantAs[store.ErrDuplicateOperation](t, insertCall(used.Operation.ID, reeve.Committed, 1))
		wantAs[store.ErrStaleDecision](t, insertCall("op_new", reeve.Committed, 2))
		wantCode(t, insertCall("op_new", reeve.Unknown, 1), reeve.Conflict) // not a valid initial state
		equal(t, len(listOperations(t, db)), 1, "operations")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(t.Context(), ws, "th", "", 100)
		})), 2, "messages")
	},
}
