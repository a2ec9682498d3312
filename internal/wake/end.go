package wake

import (
	"context"
	"runtime"

	"reeve"
	"reeve/internal/store"
)

// closing is a run whose brain is done, on its way into the store.
type closing struct {
	run  reeve.Run
	end  reeve.RunEnd
	done chan error
}

// record writes how a run ended, says when that is on its way, and waits until it is durable. Whoever comes first does
// it for all that are done by then, in one transaction, while the loop starts others.
func (r *Scheduler) record(ctx context.Context, run reeve.Run, end reeve.RunEnd, onItsWay func()) error {
	c := &closing{run: run, end: end, done: make(chan error, 1)}
	r.mu.Lock()
	r.closed = append(r.closed, c)
	r.ending++
	r.mu.Unlock()
	onItsWay()
	select {
	case err := <-c.done:
		return err
	case r.recording <- struct{}{}:
	}
	settle(func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.closed) })
	r.mu.Lock()
	list := r.closed
	r.closed = nil
	r.mu.Unlock()
	if r.recordAll(ctx, list) != nil && len(list) > 1 {
		for _, c := range list { // what is wrong with one harms no other
			_ = r.recordAll(ctx, []*closing{c})
		}
	}
	<-r.recording
	return <-c.done
}

// recordAll records ends in one transaction. If it cannot, nobody but the caller is told, unless there is only one.
func (r *Scheduler) recordAll(ctx context.Context, list []*closing) error {
	if len(list) == 0 {
		return nil
	}
	var over []ending
	err := r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		over, err = r.finish(ctx, tx, list)
		return err
	})
	if err != nil && len(list) > 1 {
		return err
	}
	if err == nil {
		r.tell(over)
	}
	r.mu.Lock()
	r.ending -= len(list)
	r.mu.Unlock()
	if err == nil {
		r.Queue.Wakeup() // their agents are free
	}
	for _, c := range list {
		c.done <- err
	}
	return err
}

// settle waits as long as a number changes from one look to the next: brains end one right after another, and what is
// done by then is one transaction, and not one each.
func settle(count func() int) {
	for before, now := -1, 0; before != now; before, now = now, count() {
		runtime.Gosched()
	}
}

// ending is what a run's end leaves to do once it is committed.
type ending struct {
	run  reeve.Run
	told bool // its person is to be told
}

// tell does that.
func (r *Scheduler) tell(over []ending) {
	for _, done := range over {
		if done.told {
			r.posted.Notify()
		}
		r.afterEnd(done.run)
	}
}

// finish moves runs to where their brains say they are, and tells their people what there is to tell. One that a person
// ended, or that another server took up, stays as it is.
func (r *Scheduler) finish(ctx context.Context, tx *store.Tx, list []*closing) (over []ending, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	moves := make([]store.RunTransition, len(list))
	for i, c := range list {
		is, end := c.run, c.end
		is.State, is.Output, is.Owner, is.Moves, is.Issues, is.Results, is.Pending = end.State,
			reeve.SanitizeText(end.Output), "", end.Moves, end.Issues, end.Results, end.Pending
		is.Spent = end.FailedSpent
		if end.Err != nil {
			is.Code, is.Message, is.RetryAfter = end.Err.Code, reeve.SanitizeText(end.Err.Message), end.Err.RetryAfter
		}
		if is.State.Final() {
			now := tx.Now()
			is.FinishedAt = &now
		}
		moves[i] = store.RunTransition{Was: c.run, Is: is}
	}
	moved, err := tx.Runs().EndRuns(ctx, moves)
	if err != nil {
		return nil, err
	}
	var alone []reeve.Run // which nobody watched, and which are over
	var timers []string
	causes := make([]reeve.Run, len(moves))
	for i, m := range moves {
		if causes[i] = m.Is; !moved[m.Is.ID] || !m.Is.State.Final() {
			continue
		}
		if causes[i], err = r.cause(ctx, tx, m.Is); err != nil {
			return nil, err
		}
		if unwatched(m.Is.Reason) {
			alone = append(alone, m.Is)
		}
		if byClock(causes[i].Reason) {
			timers = append(timers, causes[i].ReasonID)
		}
	}
	if err := tx.Runs().DropRunBudgets(ctx, alone...); err != nil {
		return nil, err
	}
	held, err := tx.Queue().LockTimers(ctx, timers)
	if err != nil {
		return nil, err
	}
	var ended []reeve.Run
	for _, m := range moves {
		if moved[m.Is.ID] {
			ended = append(ended, m.Is)
		}
	}
	if err := r.handleEnds(ctx, tx, ended); err != nil {
		return nil, err
	}
	for i, c := range list {
		if is := moves[i].Is; moved[is.ID] {
			told, err := r.follow(ctx, tx, held, is, causes[i], c.end.Notify)
			if err != nil {
				return nil, err
			}
			over = append(over, ending{is, told})
		}
	}
	return over, nil
}

// follow tells a run's person what there is to tell. It says whether its person is told. Timers that began runs are
// held; the cause is the run, with the reason that it was begun for in the first place.
func (r *Scheduler) follow(ctx context.Context, tx *store.Tx, held map[string]*reeve.Timer, run, cause reeve.Run,
	notify bool) (told bool, err error) {
	switch {
	case !run.State.Final():
	case byClock(cause.Reason):
		return r.report(ctx, tx, held[cause.ReasonID], cause, notify)
	case run.Code == reeve.Crashed:
		return r.alarm(ctx, tx, run)
	}
	return false, nil
}

// cause gives a run that was made again the reason of the one that it repeats: a schedule's person is told what came of
// it in the end.
func (r *Scheduler) cause(ctx context.Context, tx *store.Tx, run reeve.Run) (reeve.Run, error) {
	if run.Reason != reeve.ReasonRetry {
		return run, nil
	}
	first, err := tx.Runs().GetRun(ctx, run.WorkspaceID, run.ReasonID)
	if err == nil {
		run.Reason, run.ReasonID = first.Reason, first.ReasonID
	}
	if reeve.CodeOf(err) == reeve.NotFound {
		err = nil
	}
	return run, err
}

// giveUp ends a run that was taken up too often: whatever it does takes its server with it. Whoever had it may still be
// there, only silent; so, as when a person ends it, no call of it that was judged before can be recorded after.
func (r *Scheduler) giveUp(ctx context.Context, tx *store.Tx, run reeve.Run) ([]ending, error) {
	if err := tx.Touch(ctx, run.WorkspaceID); err != nil {
		return nil, err
	}
	run.Attempts-- // this one is not begun
	why := reeve.Errorf(reeve.Crashed, "its server stopped %d times while it ran; it is not taken up again", r.Attempts)
	return r.finish(ctx, tx, []*closing{{run: run, end: reeve.RunEnd{State: reeve.RunFailed, Err: why}}})
}
