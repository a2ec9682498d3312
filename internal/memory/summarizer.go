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
	pollInterval  = 15 * time.Second // between looks for work that nobody told of
	firstRetryDelay = 30 * time.Second // before a summary is tried again; doubles each time
	maxAttempts = 5
	errorDelay = time.Second // after a look that failed
)

// Gate is what the room needs of the gate: questions are asked within budgets.
type Gate interface {
	AskModel(ctx context.Context, who reeve.Call, most reeve.Amount, ask func(context.Context) (reeve.Amount, error),
		keep func(context.Context, *store.Tx) error) error
}

// Config is what the room works with.
type Config struct {
	DB      *store.DB
	Gate    Gate
	Model   model.Model
	Log     *slog.Logger
	Process string // who works; it must be announced in the store
}

// Summarizer makes summaries.
type Summarizer struct {
	Config
	summaryQueued notify.Signal
	stepMu sync.Mutex // one at a time: what else is ours by the store was dropped
}

// New makes the room.
func New(cfg Config) *Summarizer { return &Summarizer{Config: cfg, summaryQueued: notify.New()} }

// Wakeup makes the loop look now.
func (r *Summarizer) Wakeup() { r.summaryQueued.Notify() }

// Run makes summaries until ctx ends.
func (r *Summarizer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		did, next, err := r.Step(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("could not look for turns to put into a few words", "error", err)
			next = errorDelay
		}
		if !did || err != nil {
			r.summaryQueued.Wait(ctx, next)
		}
	}
	return nil
}

// Step makes one summary that is due. It tells whether there was one, and how long until the next is.
func (r *Summarizer) Step(ctx context.Context) (bool, time.Duration, error) {
	next := pollInterval
	if !r.stepMu.TryLock() {
		return false, next, nil
	}
	defer r.stepMu.Unlock()
	var due bool
	err := r.DB.View(ctx, func(s *store.Snap) error { // most looks find nothing, and should not wait for the writer
		held, err := s.System().Held(ctx)
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

// delayRetry writes down why a summary was not made, and when it is tried again. A server that stops has not tried.
func (r *Summarizer) delayRetry(ctx context.Context, job store.Summary, why error) error {
	e := reeve.AsError(why)
	if e.Code == reeve.Conflict { // somebody else has it
		return nil
	}
	return r.DB.Update(ctx, func(tx *store.Tx) error {
		again := tx.Now().Add(firstRetryDelay << (job.Attempts - 1))
		switch {
		case e.Code == reeve.Canceled: // the server stops
			again = tx.Now()
		case job.Attempts >= maxAttempts || e.Code == reeve.NotFound || e.Code == reeve.Validation:
			again = time.Time{}
			r.Log.Warn("a conversation's older turns were not put into a few words", "conversation", job.ConversationID,
				"error", why)
		}
		return tx.Chat().DelaySummary(ctx, job, again, e)
	})
}
