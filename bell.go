package reeve

import (
	"context"
	"time"
)

// Bell wakes a loop that rests. Rung while the loop works, it ends the next rest at once; rung often, it ends one.
type Bell chan struct{}

// NewBell makes a bell.
func NewBell() Bell { return make(Bell, 1) }

// Ring never waits.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Rest waits until the bell rings or d is over. False means that ctx has ended.
func (b Bell) Rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-b:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Pause waits until d is over. False means that ctx has ended.
func Pause(ctx context.Context, d time.Duration) bool { return Bell(nil).Rest(ctx, d) }
