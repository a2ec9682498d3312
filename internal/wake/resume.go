package wake

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// skippedAfterRestore is the reason stored with work that is skipped when a held server is resumed.
const skippedAfterRestore = "skipped when the server was resumed after a restore"

// SkipHeldWork skips work of a held server, in the transaction that resumes the server. It cancels runs, skips wakes,
// and records overdue firings as missed. It returns the runs that it ended. The caller passes them to AfterResume after
// the commit.
func (r *Scheduler) SkipHeldWork(ctx context.Context, tx *store.Tx,
	work []reeve.HeldWork) (ended []reeve.Run, err error) {
	var wakes []reeve.Wake
	for _, w := range work {
		switch {
		case w.Kind == reeve.HeldRun:
			cancelled, err := r.skipRun(ctx, tx, w)
			if err != nil {
				return nil, err
			}
			ended = append(ended, cancelled...)
		case w.Kind == reeve.HeldWake:
			wake, err := tx.Queue().GetWake(ctx, w.ID)
			if err != nil {
				return nil, err
			}
			wakes = append(wakes, wake)
		case w.Kind == reeve.HeldSchedule && w.Overdue:
			if err := r.skipOverdueFirings(ctx, tx, w); err != nil {
				return nil, err
			}
		}
	}
	keys := make([]string, len(wakes))
	for i, w := range wakes {
		keys[i] = w.RunKey
	}
	if err := tx.Queue().EndWakes(ctx, keys, reeve.WakeSkipped, "", skippedAfterRestore); err != nil {
		return ended, err
	}
	if err := r.callSkipHandlers(ctx, tx, wakes); err != nil {
		return ended, err
	}
	if err := r.callEndHandlers(ctx, tx, ended); err != nil {
		return ended, err
	}
	_, err = showMedia(ctx, tx, ended)
	return ended, err
}

// skipRun cancels a run, unless cancelling another run has cancelled it already.
func (r *Scheduler) skipRun(ctx context.Context, tx *store.Tx, w reeve.HeldWork) ([]reeve.Run, error) {
	run, err := tx.Runs().GetRun(ctx, w.WorkspaceID, w.ID)
	if err != nil || run.State.IsFinal() {
		return nil, err
	}
	return tx.Runs().CancelRun(ctx, run, reeve.Errorf(reeve.Canceled, "%s", skippedAfterRestore))
}

// skipOverdueFirings records the overdue firings of a timer as missed and sets its next firing.
func (r *Scheduler) skipOverdueFirings(ctx context.Context, tx *store.Tx, w reeve.HeldWork) error {
	t, err := tx.Queue().GetTimer(ctx, w.WorkspaceID, "", w.ID)
	if err != nil || t.NextAt == nil {
		return err
	}
	c, err := r.Timetable.zones.ParseStored(t.Kind, t.Value, t.Zone)
	if err != nil {
		return nil // the next step disables the timer and reports the reason
	}
	d := anchorAt(c, *t.NextAt).Due(t.NextAt.Add(-time.Millisecond), tx.Now(), t.Misfire)
	missed := d.Missed
	for _, f := range d.Run {
		missed = append(missed, f.At)
	}
	for _, at := range missed {
		if err := tx.Queue().InsertMissed(ctx, t.ID, reeve.Millis(at), firingKey(t, at)); err != nil {
			return err
		}
	}
	t.Missed += len(missed)
	if t.NextAt = &d.Next; d.Next.IsZero() {
		t.NextAt, t.State = nil, reeve.TimerCompleted
	}
	return tx.Queue().AdvanceTimers(ctx, []reeve.Timer{t})
}

// AfterResume wakes the loops and calls the AfterEnd functions for the runs that SkipHeldWork has ended.
func (r *Scheduler) AfterResume(ended []reeve.Run) {
	for _, run := range ended {
		r.callAfterEnd(run)
	}
	r.Queue.Wakeup()
	if r.Webhook != nil {
		r.Webhook.Notify()
	}
}
