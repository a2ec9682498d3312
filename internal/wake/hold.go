package wake

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// skipped is why something of a restored database does not go on.
const skipped = "it was skipped when the server was resumed after a restore"

// SkipHeldWork ends work of a held server that is not to go on: runs are cancelled, wakes skipped, and overdue firings
// noted as missed. It is part of the transaction that resumes the server. It gives the runs that it ended, for which
// Resumed is called once that is committed.
func (r *Scheduler) SkipHeldWork(ctx context.Context, tx *store.Tx,
	work []reeve.HeldWork) (over []reeve.Run, err error) {
	var wakes []reeve.Wake
	for _, w := range work {
		switch {
		case w.Kind == reeve.HeldRun:
			ended, err := r.skipRun(ctx, tx, w)
			if err != nil {
				return nil, err
			}
			over = append(over, ended...)
		case w.Kind == reeve.HeldWake:
			wake, err := tx.Queue().GetWake(ctx, w.ID)
			if err != nil {
				return nil, err
			}
			wakes = append(wakes, wake)
		case w.Kind == reeve.HeldSchedule && w.Overdue:
			if err := r.skipFirings(ctx, tx, w); err != nil {
				return nil, err
			}
		}
	}
	keys := make([]string, len(wakes))
	for i, w := range wakes {
		keys[i] = w.RunKey
	}
	if err := tx.Queue().EndWakes(ctx, keys, reeve.WakeSkipped, "", skipped); err != nil {
		return over, err
	}
	if err := r.handleSkips(ctx, tx, wakes); err != nil {
		return over, err
	}
	return over, r.handleEnds(ctx, tx, over)
}

// skipRun cancels a run, unless another that was skipped has taken it along.
func (r *Scheduler) skipRun(ctx context.Context, tx *store.Tx, w reeve.HeldWork) ([]reeve.Run, error) {
	run, err := tx.Runs().GetRun(ctx, w.WorkspaceID, w.ID)
	if err != nil || run.State.Final() {
		return nil, err
	}
	return tx.Runs().CancelRun(ctx, run, reeve.Errorf(reeve.Canceled, "%s", skipped))
}

// skipFirings notes the firings of a timer whose time has come as missed, and sets when it fires next.
func (r *Scheduler) skipFirings(ctx context.Context, tx *store.Tx, w reeve.HeldWork) error {
	t, err := tx.Queue().GetTimer(ctx, w.WorkspaceID, "", w.ID)
	if err != nil || t.NextAt == nil {
		return err
	}
	c, err := r.Planner.zones.ParseStored(t.Kind, t.Value, t.Zone)
	if err != nil {
		return nil // the next step disables it, and says why
	}
	d := anchored(c, *t.NextAt).Due(t.NextAt.Add(-time.Millisecond), tx.Now(), t.Misfire)
	missed := d.Missed
	for _, f := range d.Run {
		missed = append(missed, f.At)
	}
	for _, at := range missed {
		if err := tx.Queue().InsertMissed(ctx, t.ID, reeve.Millis(at), timerKey(t, at)); err != nil {
			return err
		}
	}
	t.Missed += len(missed)
	if t.NextAt = &d.Next; d.Next.IsZero() {
		t.NextAt, t.State = nil, reeve.TimerCompleted
	}
	return tx.Queue().AdvanceTimers(ctx, []reeve.Timer{t})
}

// AfterResume makes the loops look at once, and tells who wants to know of the runs that a resume has ended.
func (r *Scheduler) AfterResume(over []reeve.Run) {
	for _, run := range over {
		r.afterEnd(run)
	}
	r.Queue.Wakeup()
	r.posted.Notify()
}
