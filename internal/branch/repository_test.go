package branch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/sandbox/confine"
)

func TestMain(m *testing.M) {
	confine.Serve()
	os.Exit(m.Run())
}

// TestW15_MergeAdvancesDefaultBranchOnly checks that a merge fails with Conflict if a person checks out another branch
// while the merge is computed. That branch and the default branch stay unchanged.
func TestW15_MergeAdvancesDefaultBranchOnly(t *testing.T) {
	t.Parallel()
	if mode, reason := confine.Available(); mode == confine.Off {
		t.Log("no confinement here: ", reason)
		return
	}
	for before, during := range map[string]string{"main": "feature", "feature": "main"} {
		t.Run("from "+before, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "site")
			git := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("git",
					append([]string{"-C", dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com"}, args...)...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			git("init", "-q", "-b", "main")
			git("commit", "-q", "--allow-empty", "-m", "one")
			git("branch", "feature")
			one := git("rev-parse", "main")
			two := git("commit-tree", "-p", one, "-m", "two", one+"^{tree}")
			git("switch", "-q", before)
			r, err := openRepository(reeve.Project{Name: "site", Path: dir, DefaultBranch: "main"})
			if err != nil {
				t.Fatal(err)
			}
			seen, err := r.readState(t.Context(), "none")
			if err != nil {
				t.Fatal(err)
			}
			git("switch", "-q", during)
			if err := r.advanceDefaultBranch(t.Context(), seen, two); reeve.CodeOf(err) != reeve.Conflict ||
				git("rev-parse", "main") != one || git("rev-parse", "feature") != one {
				t.Errorf("%v; main is at %s, feature at %s", err, git("rev-parse", "main"), git("rev-parse", "feature"))
			}
			git("switch", "-q", before)
			if err := r.advanceDefaultBranch(t.Context(), seen, two); err != nil || git("rev-parse", "main") != two {
				t.Errorf("%v; main is at %s", err, git("rev-parse", "main"))
			}
		})
	}
}
