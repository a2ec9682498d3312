package model

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/notify"
)

// Limits of retries.
const (
	maxTries   = 3
	tryTimeout = 120 * time.Second // timeout of one try
	maxWait    = 30 * time.Second  // upper bound of a provider's RetryAfter, because a person may be waiting
)

// retryDelays are the delays between tries if the provider sends no RetryAfter.
var retryDelays = [maxTries - 1]time.Duration{500 * time.Millisecond, time.Second}

type retryModel struct{ model Model }

// WithRetry returns a Model that tries each request up to three times. It retries Unavailable and RateLimited errors
// only. Each try has 120 seconds. If a failed try has streamed deltas, a Discard delta precedes the next try.
func WithRetry(m Model) Model { return retryModel{m} }

// Answer implements Model.
func (m retryModel) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	hasStreamed := false
	forward := func(d Delta) {
		hasStreamed = true
		if watch != nil {
			watch(d)
		}
	}
	for try := 0; ; try++ {
		a, err := m.tryOnce(ctx, r, forward)
		if err == nil {
			return a, nil
		}
		wait, canRetry := retryDelay(err, try)
		if !canRetry || ctx.Err() != nil {
			return a, err
		}
		if hasStreamed {
			forward(Delta{Type: Discard})
			hasStreamed = false
		}
		if !notify.Sleep(ctx, wait) {
			return Answer{}, contextError(ctx, "the model")
		}
	}
}

func (m retryModel) tryOnce(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return m.model.Answer(ctx, r, watch)
}

// retryDelay returns the delay before the next try, and whether there is one.
func retryDelay(err error, try int) (time.Duration, bool) {
	code := reeve.CodeOf(err)
	if try+1 >= maxTries || code != reeve.Unavailable && code != reeve.RateLimited {
		return 0, false
	}
	if named := reeve.AsError(err).RetryAfter; named > 0 {
		return min(named, maxWait), true
	}
	return retryDelays[try], true
}
