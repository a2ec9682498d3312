package reeve

import (
	"context"
	"errors"
)

// ErrEnded is the cancellation cause of a run's context after a person ended the run.
var ErrEnded = Errorf(Canceled, "a person ended the run")

// CancelCause returns why the run with this context was ended. It returns nil if the run was not ended, even if the
// server is shutting down.
func CancelCause(ctx context.Context) *Error {
	var why *Error
	errors.As(context.Cause(ctx), &why)
	return why
}

// DetachFromShutdown returns a context for the calls of a run. It is cancelled when the run is ended (see
// [CancelCause]), but not when the server shuts down, because a call refused at shutdown would be recorded as made.
func DetachFromShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if why := CancelCause(ctx); why != nil {
			cancel(why)
		}
	})
	return out, func() { stop(); cancel(nil) }
}
