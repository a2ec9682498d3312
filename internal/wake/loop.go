package wake

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/internal/store"
)

// Run starts runs as they become due, until ctx ends. Runs under way are then told to stop; what they leave is taken up after
// the next start.
func (r *Room) Run(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	free := make(chan struct{}, r.Concurrent)
	for range r.Concurrent {
		free <- struct{}{}
	}
	for ctx.Err() == nil {
		runs, next, err := r.Step(ctx, len(free))
		if err != nil && ctx.Err() == nil {
			r.Log.Error("could not look for agents to wake", "error", err)
			next = time.Second
		}
		for _, run := range runs {
			<-free
			work.Go(func() error {
				defer func() { free <- struct{}{}; r.Nudge() }()
				r.Serve(inner, run)
				return nil
			})
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-r.nudged:
		case <-timer.C:
		}
		timer.Stop()
	}
	return work.Wait()
}

// Serve hands a run to the brain and records how it ended. A run whose server is stopping is left as it is, to be taken up.
func (r *Room) Serve(ctx context.Context, run reeve.Run) {
	end := r.Brain.Run(ctx, run)
	if ctx.Err() != nil && end.State != reeve.RunCompleted {
		return
	}
	if err := r.finish(context.WithoutCancel(ctx), run, end); err != nil {
		r.Log.Error("could not record the end of a run", "run", run.ID, "error", err)
	}
}

// finish records a run's end, with all that follows from it, in one transaction.
func (r *Room) finish(ctx context.Context, was reeve.Run, end reeve.RunEnd) error {
	return r.DB.Update(ctx, func(tx *store.Tx) error {
		is := was
		is.State, is.Output, is.Owner = end.State, end.Output, ""
		if end.Err != nil {
			is.Code, is.Message = end.Err.Code, end.Err.Message
		}
		spent, err := tx.RunSpent(ctx, was.ID)
		if err != nil {
			return err
		}
		is.Spent = spent
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
		return r.report(ctx, tx, is, end.Notify)
	})
}
