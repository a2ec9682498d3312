package storetest

import (
	"fmt"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// timers tests timers, schedules and notifications.
var timers = map[string]func(*testing.T, *store.DB){
	"queued firings of an inactive schedule": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		next := reeve.Now().Add(time.Hour)
		timer := func(id string, state reeve.TimerState) reeve.Timer {
			return reeve.Timer{ID: id, WorkspaceID: ws, AgentID: "agt_one", Name: id, Kind: "interval", Value: "1h",
				Zone: "UTC", Misfire: reeve.RunAllMissed, Notify: reeve.NotifyNever, State: state, NextAt: &next}
		}
		for _, id := range []string{"active", "paused", "deleted", "disabled"} {
			update(t, db, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer(id, reeve.TimerActive)) })
			enqueueWake(t, db, reeve.Wake{RunKey: id + "/1", Reason: reeve.ReasonTimer, ReasonID: id,
				SessionID: store.TimerSession + id})
			enqueueWake(t, db, reeve.Wake{RunKey: id + "/2", Reason: reeve.ReasonCatchup, ReasonID: id,
				SessionID: store.ScheduleSession + id})
		}
		update(t, db, func(tx *store.Tx) error {
			must(t, tx.Queue().PutTimer(ctx, timer("paused", reeve.TimerPaused)))
			must(t, tx.Queue().DeleteTimer(ctx, ws, "deleted"))
			return tx.Queue().SkipFirings(ctx, "disabled", "the schedule is disabled")
		})
		for id, why := range map[string]string{"active": "", "paused": "the schedule is paused",
			"deleted": "the schedule was deleted", "disabled": "the schedule is disabled"} {
			for _, n := range []string{"/1", "/2"} {
				w := view(t, db, func(s *store.Snap) (reeve.Wake, error) { return s.Queue().GetWake(ctx, id+n) })
				equal(t, w.Why, why, "why %s is skipped", id)
				equal(t, w.State == reeve.WakeQueued, why == "", "%s is queued", id)
			}
		}
	},

	"timer": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		now := reeve.Now()
		past, before, future := now.Add(-time.Minute), now.Add(-time.Hour), now.Add(time.Hour)
		put := func(v reeve.Timer) {
			v.WorkspaceID, v.AgentID = ws, "agt_one"
			update(t, db, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, v) })
		}
		put(reeve.Timer{ID: "a", UserID: "ann", Name: "Alpha", Kind: "cron", State: reeve.TimerActive, NextAt: &past})
		put(reeve.Timer{ID: "b", UserID: "ann", Name: "beta", Kind: "once", State: reeve.TimerActive, NextAt: &before})
		put(reeve.Timer{ID: "c", UserID: "bob", Name: "alphabet", Kind: "cron", State: reeve.TimerActive,
			NextAt: &future})
		put(reeve.Timer{ID: "d", UserID: "ann", Name: "delta", Kind: "cron", State: reeve.TimerPaused, NextAt: &past})
		put(reeve.Timer{ID: "e", UserID: "ann", Name: "over", Kind: "once", State: reeve.TimerCompleted})
		update(t, db, func(tx *store.Tx) error {
			ahead, err := tx.Queue().DueWork(ctx, "proc_1", 10, 0)
			equal(t, joinIDs(ahead.Timers, func(v reeve.Timer) string { return v.ID }), "b a", "due timers")
			return err
		})
		var timer, wake []int64
		update(t, db, func(tx *store.Tx) error { return tx.Queue().QueueNextDue(ctx, &timer, &wake, false) })
		equal(t, fmt.Sprint(timer, wake), fmt.Sprint([]int64{reeve.Millis(before)}, []int64(nil)),
			"next due timers and wakes")
		equal(t, view(t, db, func(s *store.Snap) (int, error) { return s.Queue().CountTimers(ctx, ws, "ann") }), 3,
			"timers that are not completed")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Queue().GetTimer(ctx, ws, "bob", "a")
			return err
		}), reeve.NotFound)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Queue().GetTimer(ctx, ws, "bob", "a")
			return err
		}), reeve.NotFound)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Queue().GetTimer(ctx, "ws_two", "", "a")
			return err
		}), reeve.NotFound)
		list := func(f store.TimerFilter) string {
			f.Limit = 2
			got := view(t, db, func(s *store.Snap) ([]reeve.Timer, error) {
				l, _, err := s.Queue().ListTimers(ctx, ws, f)
				return l, err
			})
			return joinIDs(got, func(v reeve.Timer) string { return v.ID })
		}
		equal(t, list(store.TimerFilter{Name: "ALPHA"}), "a c", "by name")
		equal(t, list(store.TimerFilter{User: "ann", Offset: 2}), "d e", "by user, second page")
		put(reeve.Timer{ID: "f", UserID: "eva", Name: "Übersicht", Kind: "cron", State: reeve.TimerPaused})
		put(reeve.Timer{ID: "g", UserID: "eva", Name: "die ÜBERSICHT", Kind: "cron", State: reeve.TimerPaused})
		for _, name := range []string{"Übersicht", "übersicht", "ÜBER"} {
			equal(t, list(store.TimerFilter{Name: name}), "f g", "by the name %s", name)
			equal(t, list(store.TimerFilter{Name: name, Offset: 1}), "g", "by the name %s, second page", name)
			total := view(t, db, func(s *store.Snap) (int, error) {
				_, n, err := s.Queue().ListTimers(ctx, ws, store.TimerFilter{Name: name, Limit: 1})
				return n, err
			})
			equal(t, total, 2, "total with the name %s", name)
		}
		equal(t, list(store.TimerFilter{Kind: "once", State: reeve.TimerCompleted}), "e", "by kind and state")

		// Concurrent updates of a timer are not lost.
		must(t, firstError(runConcurrently(8, func(int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				v, err := tx.Queue().GetTimer(ctx, ws, "", "a")
				if err != nil {
					return err
				}
				v.Failures++
				return tx.Queue().UpdateTimer(ctx, v)
			})
		})))
		equal(t, view(t, db, func(s *store.Snap) (reeve.Timer, error) { return s.Queue().GetTimer(ctx, ws, "", "a") }).
			Failures, 8, "failures")

		// CountTimers in a transaction serializes inserts, so that a limit holds.
		must(t, firstError(runConcurrently(16, func(i int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				n, err := tx.Queue().CountTimers(ctx, ws, "cid")
				if err != nil || n >= 3 {
					return err
				}
				return tx.Queue().PutTimer(ctx, reeve.Timer{ID: fmt.Sprint("cid", i), WorkspaceID: ws,
					AgentID: "agt_one", UserID: "cid", Kind: "cron", State: reeve.TimerActive, NextAt: &future})
			})
		})))
		equal(t, view(t, db, func(s *store.Snap) (int, error) { return s.Queue().CountTimers(ctx, ws, "cid") }), 3,
			"timers of a user with a limit of 3")
	},

	"notification": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		insertNotification := func(id, run string, deliver bool) (fresh bool) {
			update(t, db, func(tx *store.Tx) (err error) {
				fresh, err = tx.Queue().InsertNotification(ctx, reeve.Notification{ID: id, WorkspaceID: ws,
					UserID: "ann", RunID: run, Title: "t", Body: "b"}, deliver)
				return err
			})
			return fresh
		}
		equal(t, insertNotification("n1", "run_1", true), true, "first notification of a run")
		equal(t, insertNotification("n2", "run_1", true), false, "second notification of a run")
		equal(t, insertNotification("n3", "", false), true, "notification without a run")
		equal(t, insertNotification("n4", "", false), true, "second notification without a run")
		claim := func() (list []reeve.Notification) {
			update(t, db, func(tx *store.Tx) (err error) {
				list, err = tx.Queue().ClaimDeliveries(ctx, time.Millisecond, 10)
				return err
			})
			return list
		}
		sent := 0
		for deadline := reeve.Now().Add(10 * time.Second); ; {
			sent += len(claim())
			_, waits, err := func() (at int64, ok bool, err error) {
				err = db.View(ctx, func(s *store.Snap) error { at, ok, err = s.Queue().NextDelivery(ctx); return err })
				return at, ok, err
			}()
			must(t, err)
			if !waits || reeve.Now().After(deadline) {
				break
			}
		}
		equal(t, sent, 10, "delivery attempts")
		insertNotification("n5", "run_5", true)
		equal(t, len(claim()), 1, "claimed deliveries")
		update(t, db, func(tx *store.Tx) error { return tx.Queue().MarkDelivered(ctx, "n5") })
		_, waits, err := func() (at int64, ok bool, err error) {
			err = db.View(ctx, func(s *store.Snap) error { at, ok, err = s.Queue().NextDelivery(ctx); return err })
			return at, ok, err
		}()
		must(t, err)
		equal(t, waits, false, "has a next delivery")
		list := func(user string, unread bool) string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Notification, error) {
				return s.Queue().ListNotifications(ctx, ws, user, unread, "", 10)
			}), func(n reeve.Notification) string { return n.ID })
		}
		update(t, db, func(tx *store.Tx) error { return tx.Queue().MarkNotificationRead(ctx, ws, "ann", "n3") })
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Queue().MarkNotificationRead(ctx, ws, "bob", "n4")
		}), reeve.NotFound)
		equal(t, list("ann", true), "n5 n4 n1", "unread notifications")
		equal(t, list("bob", false), "", "notifications of another user")
	},
}
