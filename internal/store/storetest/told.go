package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// record records a call that is over, with an operation of its own, and gives the call's id.
func record(t *testing.T, db *store.DB, thread, run, trail string, change func(action, result *reeve.Message, o *reeve.Operation)) (call string) {
	t.Helper()
	update(t, db, func(tx *store.Tx) error {
		call = tx.NewID(reeve.PrefixMessage)
		a, r, o := action(call, thread), result("", thread, call), operation(tx.NewID(reeve.PrefixOperation), reeve.Committed)
		a.RunID, o.RunID, o.ThreadID = run, run, thread
		if change != nil {
			change(&a, &r, &o)
		}
		return tx.RecordCall(t.Context(), a, &r, trail, o, store.Judged{Revision: 1})
	})
	return call
}

// told tests calls that are told in their operation's row.
var told = map[string]func(*testing.T, *store.DB){
	"a call told in its row": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		say := func() (id string) {
			update(t, db, func(tx *store.Tx) error {
				id = tx.NewID(reeve.PrefixMessage)
				return tx.AppendThought(ctx, reeve.Message{ID: id, WorkspaceID: ws, ThreadID: "th", AgentID: "agt_one", Kind: reeve.Thought, Content: "hm", RunID: "run_1"})
			})
			return id
		}
		var all []string
		for range 3 {
			all = append(all, say())
			for range 2 {
				call := record(t, db, "th", "run_1", "", func(a, r *reeve.Message, o *reeve.Operation) {
					a.Content, a.Metadata, r.Content, r.Metadata = `{"n":1}`, []byte(`{"type":"tool_call", "n": 1.0}`), "binary \x00 end", []byte(`{"status":"success","spent":{"calls":1,"tokens":5}}`)
					o.Spent = reeve.Amount{Calls: 1, Tokens: 5}
				})
				all = append(all, call, reeve.AnswerTo(call))
			}
		}
		record(t, db, "another", "run_2", "", nil)
		all = append(all, say())

		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) { return s.ListMessages(ctx, ws, "th", "", 100) })
		equal(t, ids(list, func(m reeve.Message) string { return m.ID }), strings.Join(all, " "), "the thread, in order")
		for i, m := range list {
			before := ""
			if i > 0 {
				before = list[i-1].ID
			}
			equal(t, m.PrevID, before, "a chain")
			got := view(t, db, func(s *store.Snap) (reeve.Message, error) { return s.GetMessage(ctx, ws, m.ID) })
			got.PrevID = m.PrevID // which it is not asked for
			equal(t, fmt.Sprint(got), fmt.Sprint(m), "one of them")
			wantCode(t, db.View(ctx, func(s *store.Snap) error { _, err := s.GetMessage(ctx, "ws_two", m.ID); return err }), reeve.NotFound)
			if m.Kind != reeve.Action {
				continue
			}
			equal(t, m.Content+" "+string(m.Metadata)+" "+m.RunID+" "+m.AgentID, `{"n":1} {"type":"tool_call", "n": 1.0} run_1 agt_one`, "what was asked")
			answer := list[i+1]
			equal(t, fmt.Sprint(answer.Kind, " ", answer.ActionID, " ", answer.OperationID == m.OperationID, " ", answer.Content), "tool_result "+m.ID+" true binary \uFFFD end", "what was answered")
			r := view(t, db, func(s *store.Snap) (reeve.Message, error) { r, _, err := s.GetResult(ctx, ws, m.ID); return r, err })
			equal(t, r.ID, answer.ID, "the result of the call")
			op := view(t, db, func(s *store.Snap) (reeve.Operation, error) { return s.GetOperation(ctx, ws, m.OperationID) })
			equal(t, fmt.Sprint(op.CallID, op.ResultID, op.State, op.Spent.Tokens), fmt.Sprint(m.ID, answer.ID, reeve.Committed, 5), "its operation")
		}
		for size := 1; size <= 4; size++ {
			for which, read := range map[string]func(s *store.Snap, after string) ([]reeve.Message, error){
				"thread": func(s *store.Snap, after string) ([]reeve.Message, error) {
					return s.ListMessages(ctx, ws, "th", after, size)
				},
				"run": func(s *store.Snap, after string) ([]reeve.Message, error) {
					return s.RunMessages(ctx, ws, "run_1", after, size)
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
					after = page[len(page)-1].ID
				}
				equal(t, strings.Join(got, " "), strings.Join(all, " "), "%s in pages of %d", which, size)
			}
		}
		last := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
			return s.TurnMessages(ctx, ws, []string{"run_1", "run_none"}, 4)
		})
		equal(t, ids(last, func(m reeve.Message) string { return m.ID }), strings.Join(all[len(all)-4:], " "), "the last of a turn")
		spent := view(t, db, func(s *store.Snap) (reeve.Amount, error) { return s.RunSpent(ctx, "run_1") })
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
				all = append(all, reeve.AnswerTo(id))
			}
		}
		for _, i := range []int{5, 2, 7, 0, 1, 6, 3, 4} { // as others' transactions may end
			update(t, db, func(tx *store.Tx) error {
				if i%2 == 0 {
					a := action(made[i], "th")
					a.RunID = "run_" + fmt.Sprint(i%4)
					return tx.AppendAction(ctx, a, store.Judged{Revision: 1})
				}
				a, r, o := action(made[i], "th"), result("", "th", made[i]), operation(tx.NewID(reeve.PrefixOperation), reeve.Committed)
				o.ThreadID, o.RunID = "th", "run_"+fmt.Sprint(i%4)
				return tx.RecordCall(ctx, a, &r, "", o, store.Judged{Revision: 1})
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
			for after := ""; len(got) < len(all); after = got[len(got)-1] {
				list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) { return s.ListMessages(ctx, ws, "th", after, size) })
				linked(list)
				for _, m := range list {
					got = append(got, m.ID)
				}
			}
			equal(t, strings.Join(got, " "), strings.Join(all, " "), "in pages of %d", size)
		}
		for i := range 4 { // each with others' between
			list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) {
				list, err := s.WholeRun(ctx, ws, fmt.Sprint("run_", i))
				return list, errors.Join(err, s.Link(ctx, list))
			})
			equal(t, len(list), 2+2*(i%2), "messages of a run")
			linked(list)
		}
		none := view(t, db, func(s *store.Snap) ([]reeve.Message, error) { return nil, s.Link(ctx, nil) })
		equal(t, len(none), 0, "nothing")
	},

	"a call told in its row, refused": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		var used string
		record(t, db, "th", "", "", func(_, _ *reeve.Message, o *reeve.Operation) { used = o.ID })
		try := func(id string, s reeve.State, revision int64) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				call := tx.NewID(reeve.PrefixMessage)
				r := result("", "th", call)
				return tx.RecordCall(ctx, action(call, "th"), &r, "", operation(id, s), store.Judged{Revision: revision})
			})
		}
		wantAs[store.Taken](t, try(used, reeve.Committed, 1))
		for call, info := range map[string]string{"msg_1": "{}", "msg_0": ""} {
			wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
				a, r := action(call, "th"), result("", "th", call)
				a.Metadata = []byte(info)
				return tx.RecordCall(ctx, a, &r, "", operation("op_none", reeve.Committed), store.Judged{Revision: 1})
			}), reeve.Internal)
		}
		wantAs[store.Stale](t, try("op_new", reeve.Committed, 2))
		if err := try("op_new", reeve.Unknown, 1); reeve.CodeOf(err) != reeve.Conflict {
			t.Fatalf("in a state that nothing begins in: %v", err)
		}
		equal(t, len(operations(t, db)), 1, "operations")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Message, error) { return s.ListMessages(ctx, ws, "th", "", 100) })), 2, "messages")
	},

	"what the gate says of many calls": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		steps := []reeve.Step{{Name: "lookup", Why: `of "Go"`}, {Name: "approval", Verdict: reeve.Waits}}
		trail := func(steps []reeve.Step) string {
			id, err := db.Trail(ctx, steps)
			must(t, err)
			return id
		}
		equal(t, trail(steps), "", "said once")
		id := trail(steps)
		if id == "" || trail(steps) != id || trail(steps[:1]) != "" {
			t.Fatalf("kept as %q, %q and %q", id, trail(steps), trail(steps[:1]))
		}
		call := record(t, db, "th", "", id, func(a, _ *reeve.Message, _ *reeve.Operation) { a.Metadata = []byte(`{"type":"tool_call"}`) })
		m := view(t, db, func(s *store.Snap) (reeve.Message, error) { return s.GetMessage(ctx, ws, call) })
		equal(t, string(m.Metadata), `{"type":"tool_call","trail":[{"step":"lookup","why":"of \"Go\""},{"step":"approval","verdict":"waits"}]}`, "what was said")
		for i := range 1500 { // reasons that name what a call is about
			equal(t, trail([]reeve.Step{{Name: "lookup", Why: fmt.Sprint(i)}}), "", "said once")
		}
		trail(steps)
		equal(t, trail(steps), id, "forgotten, and kept again")

		lost := record(t, db, "th", "", "none", func(a, _ *reeve.Message, _ *reeve.Operation) { a.Metadata = []byte(`{"type":"tool_call"}`) })
		m = view(t, db, func(s *store.Snap) (reeve.Message, error) { return s.GetMessage(ctx, ws, lost) })
		var info reeve.ActionInfo
		must(t, json.Unmarshal(m.Metadata, &info))
		equal(t, fmt.Sprint(info), fmt.Sprint(reeve.ActionInfo{Type: "tool_call", Trail: []reeve.Step{{Name: "gate", Verdict: reeve.NotReached, Why: "what the gate said of this call is lost"}}}), "all but what is lost")
		list := view(t, db, func(s *store.Snap) ([]reeve.Message, error) { return s.ListMessages(ctx, ws, "th", "", 100) })
		equal(t, len(list), 4, "the whole thread")
	},
}
