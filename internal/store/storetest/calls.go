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

// record writes a call that is over, with an operation of its own.
func record(t *testing.T, db *store.DB, thread, run string, change func(*store.Call)) (c store.Call) {
	t.Helper()
	update(t, db, func(tx *store.Tx) error {
		c = finished(tx.NewID(reeve.PrefixMessage), thread, tx.NewID(reeve.PrefixMessage))
		c.Operation.ID, c.Operation.State, c.Operation.Effect, c.Operation.RunID = tx.NewID(reeve.PrefixOperation),
			reeve.Committed, reeve.Local, run
		if change != nil {
			change(&c)
		}
		return tx.Ledger().InsertCall(t.Context(), c, store.Preconditions{Revision: 1})
	})
	return c
}

// calls tests the log that calls and messages make.
var calls = map[string]func(*testing.T, *store.DB){
	"a log of calls and messages": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		say := func() (id string) {
			update(t, db, func(tx *store.Tx) error {
				id = tx.NewID(reeve.PrefixMessage)
				return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: id, WorkspaceID: ws, ThreadID: "th",
					AgentID: "agt_one", Kind: reeve.Thought, Content: "hm", RunID: "run_1"})
			})
			return id
		}
		var all []string
		for range 3 {
			all = append(all, say())
			for range 2 {
				c := record(t, db, "th", "run_1", func(c *store.Call) {
					c.Args, c.Request, c.Result.Content, c.Result.Info = `{"n":1}`,
						[]byte(`{"type":"tool_call", "n": 1.0}`), "binary \x00 end", []byte(`{"status":"success"}`)
					c.Operation.Spent = reeve.Amount{Calls: 1, Tokens: 5}
				})
				all = append(all, c.Operation.CallID, c.Result.ID)
			}
		}
		record(t, db, "another", "run_2", nil)
		all = append(all, say())

		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().
				ListMessages(ctx, ws, "th", "", 100)
		})
		equal(t, ids(list, func(m reeve.Message) string { return m.ID }), strings.Join(all, " "),
			"the thread, in order")
		for i, m := range list {
			before := ""
			if i > 0 {
				before = list[i-1].ID
			}
			equal(t, m.PrevID, before, "a chain")
			if m.Kind != reeve.Action {
				continue
			}
			equal(t, m.Content+" "+string(m.Metadata)+" "+m.RunID+" "+m.AgentID,
				`{"n":1} {"type":"tool_call", "n": 1.0} run_1 agt_one`, "what was asked")
			answer := list[i+1]
			equal(t, fmt.Sprint(answer.Kind, " ", answer.ActionID, " ", answer.OperationID == m.OperationID, " ",
				answer.Content), "tool_result "+m.ID+" true binary \uFFFD end", "what was answered")
			op := view(t, db, func(s *store.Snap) (reeve.Operation, error) {
				return s.Ledger().
					GetOperation(ctx, ws, m.OperationID)
			})
			equal(t, fmt.Sprint(op.CallID, op.ResultID, op.State, op.Spent.Tokens),
				fmt.Sprint(m.ID, answer.ID, reeve.Committed, 5), "its operation")
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
		equal(t, ids(last, func(m reeve.Message) string { return m.ID }), strings.Join(all[len(all)-4:], " "),
			"the last of a turn")
		spent := view(t, db, func(s *store.Snap) (reeve.Amount, error) { return s.Runs().RunSpent(ctx, "run_1") })
		equal(t, fmt.Sprint(spent.Calls, spent.Tokens), "6 30", "what the run spent")
	},

	"a thread is one chain": func(t *testing.T, db *store.DB) {
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
				all = append(all, "msg_result_of_"+id) // wherever its own id would stand
			}
		}
		for _, i := range []int{5, 2, 7, 0, 1, 6, 3, 4} { // as others' transactions may end
			update(t, db, func(tx *store.Tx) error {
				c := call(made[i], "th")
				if c.Operation.RunID = fmt.Sprint("run_", i%4); i%2 == 1 {
					c.Result = &store.CallResult{ID: "msg_result_of_" + made[i], Info: []byte("{}")}
				}
				return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1})
			})
		}
		linked := func(list []reeve.Message) {
			t.Helper()
			for _, m := range list {
				before := ""
				if i := slices.Index(all, m.ID); i > 0 {
					before = all[i-1]
				}
				equal(t, m.PrevID, before, "before %s", m.ID)
			}
		}
		for size := 1; size <= len(all); size++ {
			var got []string
			for after := ""; len(got) < len(all); {
				list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
					return s.Ledger().ListMessages(ctx, ws, "th", after, size)
				})
				linked(list)
				for _, m := range list {
					got, after = append(got, m.ID), store.MessageCursor(m)
				}
			}
			equal(t, strings.Join(got, " "), strings.Join(all, " "), "in pages of %d", size)
		}
		for i := range 4 { // each with others' between
			list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				list, err := s.Ledger().AllRunMessages(ctx, ws, fmt.Sprint("run_", i))
				return list, errors.Join(err, s.Ledger().SetPrevious(ctx, list))
			})
			equal(t, len(list), 2+2*(i%2), "messages of a run")
			linked(list)
		}
		none := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return nil, s.Ledger().
				SetPrevious(ctx, nil)
		})
		equal(t, len(none), 0, "nothing")
	},

	"a call that is refused": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		used := record(t, db, "th", "", nil)
		try := func(id string, s reeve.State, revision int64) error {
			return db.Update(t.Context(), func(tx *store.Tx) error {
				c := finished(tx.NewID(reeve.PrefixMessage), "th", tx.NewID(reeve.PrefixMessage))
				c.Operation.ID, c.Operation.State = id, s
				return tx.Ledger().InsertCall(t.Context(), c, store.Preconditions{Revision: revision})
			})
		}
		wantAs[store.ErrDuplicateOperation](t, try(used.Operation.ID, reeve.Committed, 1))
		wantAs[store.ErrStaleDecision](t, try("op_new", reeve.Committed, 2))
		wantCode(t, try("op_new", reeve.Unknown, 1), reeve.Conflict) // a state that nothing begins in
		equal(t, len(operations(t, db)), 1, "operations")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.Ledger().ListMessages(t.Context(), ws, "th", "", 100)
		})), 2, "entries")
	},
}
