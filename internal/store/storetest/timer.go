package storetest

import (
	"fmt"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// timers are what fires, and what people are told of it.
var timers = map[string]func(*testing.T, *store.DB){
	"a schedule that fires no more": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		next := reeve.Now().Add(time.Hour)
		timer := func(id string, state reeve.TimerState) reeve.Timer {
			return reeve.Timer{ID: id, WorkspaceID: ws, AgentID: "agt_one", Name: id, Kind: "interval", Value: "1h",
				Zone: "UTC", Misfire: reeve.RunAllMissed, Notify: reeve.NotifyNever, State: state, NextAt: &next}
		}
		for _, id := range []string{"kept", "paused", "gone", "disabled"} {
			update(t, db, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer(id, reeve.TimerActive)) })
			queue(t, db, reeve.Wake{RunKey: id + "/1", Reason: reeve.ReasonTimer, ReasonID: id,
				SessionID: store.TimerLane + id})
			queue(t, db, reeve.Wake{RunKey: id + "/2", Reason: reeve.ReasonCatchup, ReasonID: id,
				SessionID: store.ScheduleLane + id})
		}
		update(t, db, func(tx *store.Tx) error {
			must(t, tx.Queue().PutTimer(ctx, timer("paused", reeve.TimerPaused)))
			must(t, tx.Queue().DeleteTimer(ctx, ws, "gone"))
			return tx.Queue().SkipFirings(ctx, "disabled", "the schedule is disabled")
		})
		for id, why := range map[string]string{"kept": "", "paused": "the schedule is paused",
			"gone": "the schedule was deleted", "disabled": "the schedule is disabled"} {
			for _, n := range []string{"/1", "/2"} {
				w := view(t, db, func(s *store.Snap) (reeve.Wake, error) { return s.Queue().GetWake(ctx, id+n) })
				equal(t, w.Why, why, "%s", id)
				equal(t, w.State == reeve.WakeQueued, why == "", "%s", id)
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
			equal(t, ids(ahead.Timers, func(v reeve.Timer) string { return v.ID }), "b a", "due")
			return err
		})
		var timer, wake []int64
		update(t, db, func(tx *store.Tx) error { return tx.Queue().QueueNextDue(ctx, &timer, &wake, false) })
		equal(t, fmt.Sprint(timer, wake), fmt.Sprint([]int64{reeve.Millis(before)}, []int64(nil)), "next")
		equal(t, view(t, db, func(s *store.Snap) (int, error) { return s.Queue().CountTimers(ctx, ws, "ann") }), 3,
			"those that are not over")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Queue().
				GetTimer(ctx, ws, "bob", "a")
			return err
		}), reeve.NotFound)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Queue().
				GetTimer(ctx, ws, "bob", "a")
			return err
		}), reeve.NotFound)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Queue().
				GetTimer(ctx, "ws_two", "", "a")
			return err
		}), reeve.NotFound)
		list := func(f store.TimerFilter) string {
			f.Limit = 2
			got := view(t, db, func(s *store.Snap) ([]reeve.Timer, error) {
				l, _, err := s.Queue().ListTimers(ctx, ws, f)
				return l, err
			})
			return ids(got, func(v reeve.Timer) string { return v.ID })
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
			equal(t, total, 2, "how many have the name %s", name)
		}
		equal(t, list(store.TimerFilter{Kind: "once", State: reeve.TimerCompleted}), "e", "by kind and state")

		// Two who change it at once both have their way.
		must(t, firstOf(race(8, func(int) error {
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
			Failures, 8, "failures that were counted")

		// Those who count before they add one count each other's.
		must(t, firstOf(race(16, func(i int) error {
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
			"as many as three are allowed")
	},

	"notification": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		tell := func(id, run string, deliver bool) (fresh bool) {
			update(t, db, func(tx *store.Tx) (err error) {
				fresh, err = tx.Queue().InsertNotification(ctx, reeve.Notification{ID: id, WorkspaceID: ws,
					UserID: "ann", RunID: run, Title: "t", Body: "b"}, deliver)
				return err
			})
			return fresh
		}
		equal(t, tell("n1", "run_1", true), true, "told")
		equal(t, tell("n2", "run_1", true), false, "told twice")
		equal(t, tell("n3", "", false), true, "told of no run")
		equal(t, tell("n4", "", false), true, "told of no run again")
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
		equal(t, sent, 10, "tries")
		tell("n5", "run_5", true)
		equal(t, len(claim()), 1, "claimed")
		update(t, db, func(tx *store.Tx) error { return tx.Queue().MarkDelivered(ctx, "n5") })
		_, waits, err := func() (at int64, ok bool, err error) {
			err = db.View(ctx, func(s *store.Snap) error { at, ok, err = s.Queue().NextDelivery(ctx); return err })
			return at, ok, err
		}()
		must(t, err)
		equal(t, waits, false, "anything to deliver")
		list := func(user string, unread bool) string {
			return ids(view(t, db, func(s *store.Snap) ([]reeve.Notification, error) {
				return s.Queue().ListNotifications(ctx, ws, user, unread, "", 10)
			}), func(n reeve.Notification) string { return n.ID })
		}
		update(t, db, func(tx *store.Tx) error { return tx.Queue().MarkNotificationRead(ctx, ws, "ann", "n3") })
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Queue().
				MarkNotificationRead(ctx, ws, "bob", "n4")
		}), reeve.NotFound)
		equal(t, list("ann", true), "n5 n4 n1", "unread")
		equal(t, list("bob", false), "", "another's")
	},
}

// started1 runs a caller's wakes to their end.
func started1(t testing.TB, db *store.DB, c store.DueAgent) error {
	t.Helper()
	started(t, db, c, "run_x", "proc_1")
	return ended(t, db, "run_x", reeve.RunCompleted)
}
