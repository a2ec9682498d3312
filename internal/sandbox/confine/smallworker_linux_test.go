//go:build amd64 || arm64

package confine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/confine/cell"
)

// TestSmallProgram builds the program that make build embeds in the reeve binary, and confines commands with it in
// every mode that this machine supports. A program of another version is not used.
func TestSmallProgram(t *testing.T) {
	best, reason := Available()
	if best == Off {
		t.Log("no confinement here: ", reason)
		return
	}
	program := filepath.Join(t.TempDir(), "worker")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, path, err := child.NewMemoryProgram(childName, f)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if v := readVersion(path); v != cell.Version() {
		t.Errorf("it is %s, not %s", v, cell.Version())
	}
	was := smallWorkerPath
	defer func() { smallWorkerPath = was }()
	smallWorkerPath = func() string { return path }
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []Mode{Namespaces, Landlock} {
		if mode == Namespaces && best == Landlock {
			continue
		}
		r, err := Run(context.Background(), Command{Args: []string{"sh", "-c", "echo $0; cat /etc/shadow || exit 3"},
			Root: dir, Mode: mode}, Limits{})
		if err != nil || string(r.Stdout) != "sh\n" || r.ExitCode != 3 {
			t.Errorf("%s: %+v %v", mode, r, err)
		}
	}
}
