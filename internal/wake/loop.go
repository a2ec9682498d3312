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

// Serve hands a run to the brain and records how it ended. A run whose server is stopping is left as it is, to be taken up.
func (r *Room) Serve(ctx context.Context, run reeve.Run) {
	inner, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	r.held[run.ID] = cancel
	r.mu.Unlock()
	left := true
	defer func() {
		cancel(nil)
		r.mu.Lock()
		delete(r.held, run.ID)
		r.doubt = r.doubt || left
		r.mu.Unlock()
	}()
	end := r.think(inner, run)
	if ctx.Err() != nil && end.State != reeve.RunCompleted {
		return
	}
	keep := context.WithoutCancel(ctx)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.finish(keep, run, end)
		if err == nil {
			left = false
			return
		}
		r.Log.Error("could not record the end of a run", "run", run.ID, "error", err)
		if rest(ctx, wait, nil); ctx.Err() != nil {
			return
		}
	}
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
	told, over := false, reeve.Run{}
	err := r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		told, over = false, reeve.Run{}
		is := was
		is.State, is.Output, is.Owner, is.Moves, is.Issues, is.SeenAt = end.State, end.Output, "", end.Moves, end.Issues, end.SeenAt
		if end.Err != nil {
			is.Code, is.Message = end.Err.Code, end.Err.Message
		}
		if is.Spent, err = tx.RunSpent(ctx, was); err != nil {
			return err
		}
		if is.State.Final() {
			now := tx.Now()
			is.FinishedAt = &now
		}
		if err := tx.MoveRun(ctx, was, is); err != nil {
			if reeve.CodeOf(err) == reeve.Conflict {
				return nil // a person ended it, or another server took it up
			}
			return err
		}
		if r.Ended != nil {
			if err := r.Ended.Ending(ctx, tx, is); err != nil {
				return err
			}
			over = is
		}
		if !is.State.Final() || !byClock(is.Reason) {
			return nil
		}
		if err := tx.DropRunBudget(ctx, is); err != nil {
			return err
		}
		told, err = r.report(ctx, tx, is, end.Notify)
		return err
	})
	if err == nil && told {
		signal(r.posted)
	}
	if err == nil && over.ID != "" {
		r.Ended.Over(over)
	}
	return err
}
