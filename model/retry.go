package model

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/notify"
)

// How a model is asked again.
const (
	tries    = 3
	tryLimit = 120 * time.Second // for one try
	maxWait  = 30 * time.Second  // whatever a provider names: somebody waits for the answer
)

// waits are between tries, when the provider does not name one.
var waits = [tries - 1]time.Duration{500 * time.Millisecond, time.Second}

type retrying struct{ model Model }

// WithRetry asks a model up to three times: when it could not be reached, had too many requests, or failed by its own
// fault (Unavailable, RateLimited), and for nothing else. A try has 120 seconds. Before an answer is asked for again of
// which something was streamed, a Discard is handed out.
func WithRetry(m Model) Model { return retrying{m} }

// Answer implements Model.
func (m retrying) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	streamed := false
	see := func(d Delta) {
		streamed = true
		if watch != nil {
			watch(d)
		}
	}
	for try := 0; ; try++ {
		a, err := m.once(ctx, r, see)
		if err == nil {
			return a, nil
		}
		wait, again := pause(err, try)
		if !again || ctx.Err() != nil {
			return a, err
		}
		if streamed {
			see(Delta{Type: Discard})
			streamed = false
		}
		if !notify.Sleep(ctx, wait) {
			return Answer{}, interrupted(ctx, "the model")
		}
	}
}

func (m retrying) once(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	return m.model.Answer(ctx, r, watch)
}

// pause says whether to try again after the failure of a try, and when.
func pause(err error, try int) (time.Duration, bool) {
	code := reeve.CodeOf(err)
	if try+1 >= tries || code != reeve.Unavailable && code != reeve.RateLimited {
		return 0, false
	}
	if named := reeve.AsError(err).RetryAfter; named > 0 {
		return min(named, maxWait), true
	}
	return waits[try], true
}
