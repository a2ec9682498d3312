package httpapi

import (
	"context"
	"testing"

	"reeve"
)

// What goes wrong in the server while somebody waits for a turn is in its log, a database that is away too. That the
// server stops is not: its code is the same.
func TestW23_FailuresAreLogged(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		reeve.Errorf(reeve.Unavailable, "the database cannot be reached"): 1,
		reeve.Errorf(reeve.Internal, "internal error"):                    1,
		reeve.Errorf(reeve.NotFound, "no such agent"):                     0,
		errStopping: 0,
	} {
		noted := 0
		logServerFailure(context.WithValue(t.Context(), requestKey, request{log: func(string, ...any) { noted++ }}),
			err)
		if noted != want {
			t.Errorf("%v was noted %d times", err, noted)
		}
	}
}
