// Package notify wakes goroutines that wait for work. Its type Signal replaces a condition variable in loops of the
// form "do one step, then wait for a notification or a timeout".
package notify

import (
	"context"
	"time"
)

// Signal wakes one loop. Several notifications before the next Wait count as one.
type Signal chan struct{}

// New returns a signal.
func New() Signal { return make(Signal, 1) }

// Notify ends the current or the next Wait. It never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Wait waits for a notification, at most for d. It returns false if ctx has ended.
func (s Signal) Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Sleep waits for d. It returns false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool { return Signal(nil).Wait(ctx, d) }
