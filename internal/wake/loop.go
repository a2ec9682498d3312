package wake

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/internal/store"
)

// Run starts runs as they become due, until ctx ends. Runs under way are then told to stop; what they leave is taken up after
// the next start.
func (r *Room) Run(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	r.looping.Store(true)
	defer r.looping.Store(false)
	work.Go(func() error { return r.turns(inner) })
	free := make(chan struct{}, r.Concurrent)
	for range r.Concurrent {
		free <- struct{}{}
	}
	for ctx.Err() == nil {
		runs, next, err := r.Step(ctx, len(free))
		if err != nil && ctx.Err() == nil {
			r.Log.Error("could not look for agents to wake", "error", err)
		}
		for _, run := range runs {
			<-free
			work.Go(func() error {
				defer func() { free <- struct{}{}; r.Nudge() }()
				r.Serve(inner, run)
				return nil
			})
		}
		rest(ctx, next, r.nudged)
	}
	return work.Wait()
}

// turns serves turns that were begun here as they come.
func (r *Room) turns(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(r.Turns)
	for {
		select {
		case run := <-r.handed:
			work.Go(func() error { r.Serve(inner, run); return nil })
		case <-ctx.Done():
			return work.Wait()
		}
	}
}

// rest waits for a while, or until it is called.
func rest(ctx context.Context, d time.Duration, call <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-call:
	case <-timer.C:
	}
}

// Serve hands a run to the brain and records how it ended. A run whose server is stopping is let go of, to be taken up.
func (r *Room) Serve(ctx context.Context, run reeve.Run) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.held[run.ID] = cancel
	r.mu.Unlock()
	end := r.think(inner, run)
	keep := context.WithoutCancel(ctx)
	if ctx.Err() != nil && end.State != reeve.RunCompleted {
		r.release(keep, run)
		return
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.finish(keep, run, end)
		if err == nil {
			r.drop(run, false)
			return
		}
		r.Log.Error("could not record the end of a run", "run", run.ID, "error", err)
		if rest(ctx, wait, nil); ctx.Err() != nil {
			r.drop(run, true)
			return
		}
	}
}

// release lets go of a run whose server is stopping. That is no crash, and does not count as one. No step looks meanwhile: the
// run is in our hands, or free, and never in between.
func (r *Room) release(ctx context.Context, run reeve.Run) {
	r.stepping.Lock()
	defer r.stepping.Unlock()
	err := r.DB.Update(ctx, func(tx *store.Tx) error { return tx.ReleaseRun(ctx, run) })
	if err != nil {
		r.Log.Warn("could not let go of a run; it counts as left by a crash", "run", run.ID, "error", err)
	}
	r.drop(run, err != nil)
}

// drop takes a run out of our hands. Where there is doubt, the next step looks whether it is still ours by the store.
func (r *Room) drop(run reeve.Run, doubt bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, run.ID)
	r.doubt = r.doubt || doubt
}

// think runs the brain. One that panics harms its own run and nobody else.
func (r *Room) think(ctx context.Context, run reeve.Run) (end reeve.RunEnd) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("a brain panicked", "run", run.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end = reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.Internal, "the agent's brain failed")}
		}
	}()
	return r.Brain.Run(ctx, run)
}

// finish records a run's end, with all that follows from it, in one transaction.
func (r *Room) finish(ctx context.Context, was reeve.Run, end reeve.RunEnd) error {
	var done ending
	err := r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		done, err = r.end(ctx, tx, was, end)
		if reeve.CodeOf(err) == reeve.Conflict {
			done, err = ending{}, nil // a person ended it, or another server took it up
		}
		return err
	})
	if err == nil {
		r.ended(done)
	}
	if err == nil && end.State == reeve.RunParked {
		r.Nudge() // what it waits for may have come before it was parked
	}
	return err
}

// ending is what a run's end leaves to do once it is committed.
type ending struct {
	run  reeve.Run
	told bool // its person is to be told
}

// ended does it.
func (r *Room) ended(done ending) {
	if done.told {
		signal(r.posted)
	}
	if done.run.ID != "" && r.Ended != nil {
		r.Ended.Over(done.run)
	}
}

// end moves a run to where its brain says it is, and tells its person what there is to tell.
func (r *Room) end(ctx context.Context, tx *store.Tx, was reeve.Run, end reeve.RunEnd) (done ending, err error) {
	is := was
	is.State, is.Output, is.Owner, is.Moves, is.Issues, is.SeenAt = end.State, end.Output, "", end.Moves, end.Issues, end.SeenAt
	if end.Err != nil {
		is.Code, is.Message = end.Err.Code, end.Err.Message
	}
	if is.Spent, err = tx.RunSpent(ctx, was); err != nil {
		return done, err
	}
	if is.State.Final() {
		now := tx.Now()
		is.FinishedAt = &now
	}
	if err := tx.MoveRun(ctx, was, is); err != nil {
		return done, err
	}
	if done.run = is; r.Ended != nil {
		if err := r.Ended.Ending(ctx, tx, is); err != nil {
			return done, err
		}
	}
	switch {
	case !is.State.Final():
	case byClock(is.Reason):
		if err := tx.DropRunBudget(ctx, is); err != nil {
			return done, err
		}
		done.told, err = r.report(ctx, tx, is, end.Notify)
	case is.Code == reeve.Crashed:
		done.told, err = r.alarm(ctx, tx, is)
	}
	return done, err
}

// giveUp ends a run that was taken up too often: whatever it does takes its server with it. Whoever had it may still be there, only
// silent; so, as when a person ends it, no call of it that was judged before can be recorded after.
func (r *Room) giveUp(ctx context.Context, tx *store.Tx, run reeve.Run) (ending, error) {
	if err := tx.Touch(ctx, run.WorkspaceID); err != nil {
		return ending{}, err
	}
	why := reeve.Errorf(reeve.Crashed, "its server stopped %d times while it ran; it is not taken up again", r.Attempts)
	return r.end(ctx, tx, run, reeve.RunEnd{State: reeve.RunFailed, Err: why})
}
