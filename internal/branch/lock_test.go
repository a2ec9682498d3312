package branch

import (
	"testing"

	"reeve"
)

// TestTryLockBranchNamesHolder checks that the error for a locked branch names the holder of the lock, a command or
// another request.
func TestTryLockBranchNamesHolder(t *testing.T) {
	t.Parallel()
	var d Service
	b := reeve.Branch{ID: "brn_1", Name: "reeve/one"}
	wantConflict := func(want string) {
		t.Helper()
		if _, err := d.tryLockBranch(b, "merged"); reeve.CodeOf(err) != reeve.Conflict || reeve.AsError(err).
			Message != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, what := range []string{"merged", "discarded"} {
		unlock, err := d.tryLockBranch(b, what)
		if err != nil {
			t.Fatal(err)
		}
		wantConflict("branch reeve/one is being " + what + " by another request")
		unlock()
	}
	unlock, err := d.locks.Wait(t.Context(), b.ID) // as a command does
	if err != nil {
		t.Fatal(err)
	}
	wantConflict("a command is running on branch reeve/one")
	unlock()
	unlock, err = d.tryLockBranch(b, "merged")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
