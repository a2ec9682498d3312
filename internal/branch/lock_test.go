package branch

import (
	"testing"

	"reeve"
)

// The error for a locked branch names the holder: a command, or another request.
func TestTryLockBranchNamesHolder(t *testing.T) {
	t.Parallel()
	var d Service
	b := reeve.Branch{ID: "brn_1", Name: "reeve/one"}
	refused := func(want string) {
		t.Helper()
		if _, err := d.tryLockBranch(b, "merged"); reeve.CodeOf(err) != reeve.Conflict || reeve.AsError(err).
			Message != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, what := range []string{"merged", "discarded"} {
		leave, err := d.tryLockBranch(b, what)
		if err != nil {
			t.Fatal(err)
		}
		refused("branch reeve/one is being " + what + " by another request")
		leave()
	}
	leave, err := d.locks.Wait(t.Context(), b.ID) // as a command does
	if err != nil {
		t.Fatal(err)
	}
	refused("a command is running on branch reeve/one")
	leave()
	leave, err = d.tryLockBranch(b, "merged")
	if err != nil {
		t.Fatal(err)
	}
	leave()
}
