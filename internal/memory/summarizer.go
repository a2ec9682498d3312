package memory

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
	"reeve/model"
)

const (
	pollInterval    = 15 * time.Second // time between checks for summaries queued by other servers
	firstRetryDelay = 30 * time.Second // delay before a failed summary is tried again; doubles with each attempt
	maxAttempts     = 5
	modelAttempts   = 3           // attempts with the model; later ones summarize by rules
	errorDelay      = time.Second // delay after a failed step
)

// Gate calls models within budgets.
type Gate interface {
	AskModel(ctx context.Context, who reeve.Call, cost reeve.ModelCost,
		ask func(ctx context.Context, maxOutput int64) (reeve.Amount, error),
		keep func(context.Context, *store.Tx) error) error
}

// Config configures a Summarizer.
type Config struct {
	DB      *store.DB
	Gate    Gate
	Model   model.Model
	Log     *slog.Logger
	Process string // id of this process; it must be registered in the store
}

// Summarizer makes summaries of old turns and runs.
type Summarizer struct {
	Config
	summaryQueued notify.Signal
	// serializes steps: any other summary that the store assigns to this process was abandoned
	stepMu sync.Mutex
}

// New returns a summarizer. It is passive until Run or Step is called.
func New(cfg Config) *Summarizer { return &Summarizer{Config: cfg, summaryQueued: notify.New()} }

// Wakeup makes Run look for due summaries now.
func (r *Summarizer) Wakeup() { r.summaryQueued.Notify() }

// Run makes summaries until ctx ends.
func (r *Summarizer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		isDone, next, err := r.Step(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("cannot summarize turns", "error", err)
			next = errorDelay
		}
		if !isDone || err != nil {
			r.summaryQueued.Wait(ctx, next)
		}
	}
	return nil
}

// Step makes one due summary. It reports whether there was one, and the time until the next is due.
func (r *Summarizer) Step(ctx context.Context) (bool, time.Duration, error) {
	next := pollInterval
	if !r.stepMu.TryLock() {
		return false, next, nil
	}
	defer r.stepMu.Unlock()
	var due bool
	// read first, because most steps find nothing and should not wait for the write lock
	err := r.DB.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		at, ok, err := s.Chat().NextSummary(ctx, r.Process)
		if ok {
			next = min(next, max(0, at.Sub(s.Now())))
			due = next == 0
		}
		return err
	})
	if err != nil || !due {
		return false, next, err
	}
	var job store.Summary
	var ok bool
	err = r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		job, ok, err = tx.Chat().ClaimSummary(ctx, r.Process)
		return err
	})
	if err != nil || !ok {
		return false, pollInterval, err
	}
	if err := r.summarize(ctx, job); err != nil {
		return true, 0, r.delayRetry(context.WithoutCancel(ctx), job, err)
	}
	return true, 0, nil
}

// delayRetry records why a summary failed and when it is tried again. An attempt that the shutdown of the server
// interrupts does not count.
func (r *Summarizer) delayRetry(ctx context.Context, job store.Summary, cause error) error {
	e := reeve.AsError(cause)
	if e.Code == reeve.Conflict { // another process has claimed it
		return nil
	}
	return r.DB.Update(ctx, func(tx *store.Tx) error {
		retryAt := tx.Now().Add(firstRetryDelay << (job.Attempts - 1))
		switch {
		case e.Code == reeve.Canceled: // the server stops
			retryAt = tx.Now()
		case job.Attempts >= maxAttempts || e.Code == reeve.NotFound || e.Code == reeve.Validation:
			retryAt = time.Time{}
			r.Log.Warn("cannot make a summary", "thread", job.ThreadID, "error", cause)
		}
		return tx.Chat().DelaySummary(ctx, job, retryAt, e)
	})
}
