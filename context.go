package reeve

import (
	"context"
	"errors"
)

// ErrEnded is why the context of a run's brain ends when a person ended the run.
var ErrEnded = Errorf(Canceled, "a person ended the run")

// CancelCause is why the run whose brain has this context is over; nil means that it is not, though its server may be
// stopping.
func CancelCause(ctx context.Context) *Error {
	var why *Error
	errors.As(context.Cause(ctx), &why)
	return why
}

// DetachFromShutdown is a context for the calls of a run. It outlives a server that is told to stop, because a call
// that is refused for that would count as made, but not the run: see WhyEnded.
func DetachFromShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if why := CancelCause(ctx); why != nil {
			cancel(why)
		}
	})
	return out, func() { stop(); cancel(nil) }
}
