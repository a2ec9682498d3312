package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// changes tests the records of changes, and for whom the agents wake that watch them.
var changes = map[string]func(*testing.T, *store.DB){
	"records of changes": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		var ids []string
		for i := range 6 { // most of them in one millisecond
			update(t, db, func(tx *store.Tx) error {
				id, err := tx.Queue().PersonChangeID(ctx)
				if err != nil {
					return err
				}
				ids = append(ids, id)
				return tx.Queue().InsertPersonChanges(ctx, ws, "ann", reeve.EntityChange{Kind: "task", ID: "task_1",
					Title: "Paint", Action: reeve.EntityChanged,
					Fields: map[string][2]string{"title": {fmt.Sprint(i), fmt.Sprint(i + 1)}}},
					reeve.EntityChange{Kind: "label", ID: fmt.Sprint("label_", i), Action: reeve.EntityCreated})
			})
		}
		changeID := func(c reeve.ChangeRecord) string { return c.ID }
		get := func(workspace string, ids ...string) []reeve.ChangeRecord {
			return view(t, db, func(s *store.Snap) ([]reeve.ChangeRecord, error) {
				return s.Queue().GetChanges(ctx, workspace, ids)
			})
		}
		all := get(ws, append([]string{"op_none"}, ids...)...)
		equal(t, joinIDs(all, changeID), strings.Join(ids, " "), "changes in the order in which they were made")
		merged := all[0].Entities[1]
		equal(t, all[0].UserID+" "+merged.ID, "ann task_1", "user and entity")
		for _, c := range all[1:] {
			merged.Merge(c.Entities[1])
		}
		equal(t, fmt.Sprint(merged.Fields), "map[title:[0 6]]", "merged fields")
		equal(t, len(get("ws_two", ids...)), 0, "changes that another workspace sees")

		list := func(f store.ChangeFilter) string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.ChangeRecord, error) {
				return s.Queue().ListChanges(ctx, ws, f)
			}), changeID)
		}
		equal(t, list(store.ChangeFilter{Limit: 2}), ids[5]+" "+ids[4], "the first page")
		equal(t, list(store.ChangeFilter{Limit: 3, Before: ids[4], Entity: "task_1"}),
			ids[3]+" "+ids[2]+" "+ids[1], "the second page of an entity")
		equal(t, list(store.ChangeFilter{Limit: 9, Entity: "label_2"}), ids[2], "changes of one entity")

		update(t, db, func(tx *store.Tx) error {
			for _, want := range []int64{7, 5, 0} {
				n, err := tx.Queue().DeleteExpiredChanges(ctx, tx.Now().Add(time.Second), 7)
				if err != nil {
					return err
				}
				equal(t, n, want, "deleted rows")
			}
			return nil
		})
		has := view(t, db, func(s *store.Snap) (bool, error) {
			return s.Queue().HasExpiredChanges(ctx, s.Now().Add(time.Second))
		})
		equal(t, has, false, "expired changes are left")
	},

	"signals are recorded for watchers": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		token := reeve.Token{Class: reeve.SemanticKey, Name: "AGENT_MESSAGE"}
		signal := func(id string) []reeve.ChangeRecord {
			update(t, db, func(tx *store.Tx) error {
				return tx.Queue().RecordSignals(ctx, []store.Signal{store.NewSignal(store.Change{Workspace: ws,
					Agent: "agt_two", Operation: id, Tokens: []reeve.Token{token}}, "ann", "answer", "yes",
					reeve.EntityChange{Kind: "agent_message", ID: "run_1"})})
			})
			return view(t, db, func(s *store.Snap) ([]reeve.ChangeRecord, error) {
				return s.Queue().GetChanges(ctx, ws, []string{id})
			})
		}
		equal(t, len(signal("chg_1")), 0, "signals without subscriptions")
		update(t, db, func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub_1", WorkspaceID: ws,
				AgentID: "agt_one", UserID: "ben", Token: token})
		})
		found := signal("chg_2")
		equal(t, len(found), 1, "signals")
		equal(t, found[0].Entities[0].Fields["answer"], [2]string{"", "yes"}, "answer")
		wake := view(t, db, func(s *store.Snap) (reeve.Wake, error) {
			return s.Queue().GetWake(ctx, "agt_one/sub_1/chg_2")
		})
		equal(t, wake.UserID, "ben", "the user of the wake")
	},

	"wakes are merged by user": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for i, user := range []string{"ann", "ben", "ann", ""} {
			enqueueWake(t, db, reeve.Wake{RunKey: fmt.Sprint("wake_", i), Reason: reeve.ReasonSubscription,
				ReasonID: "sub_1", UserID: user})
		}
		for user, want := range map[string]string{"ann": "wake_0 wake_2", "ben": "wake_1", "": "wake_3"} {
			var list []reeve.Wake
			update(t, db, func(tx *store.Tx) (err error) {
				list, err = tx.Queue().QueuedWakes(ctx, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws,
					UserID: user}, 100)
				return err
			})
			equal(t, joinIDs(list, wakeKey), want, "wakes for a user")
		}
	},
}
