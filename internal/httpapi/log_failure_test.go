package httpapi

import (
	"context"
	"testing"

	"reeve"
)

// Server failures while a client waits for a turn are logged, including an unavailable database. A stopping server is
// not logged, although its error has the same code.
func TestW23_FailuresAreLogged(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		reeve.Errorf(reeve.Unavailable, "the database cannot be reached"): 1,
		reeve.Errorf(reeve.Internal, "internal error"):                    1,
		reeve.Errorf(reeve.NotFound, "no such agent"):                     0,
		errStopping: 0,
	} {
		logged := 0
		logServerFailure(context.WithValue(t.Context(), requestKey, request{log: func(string, ...any) { logged++ }}),
			err)
		if logged != want {
			t.Errorf("%v was logged %d times", err, logged)
		}
	}
}
