package child_test

import (
	"os"
	"testing"

	"reeve/internal/sandbox/child"
)

// TestProgramPath starts a program in memory whose descriptor is just above those of the files that the process
// receives, while lower descriptors are free. Without ProgramPath the new process would overwrite the program's
// descriptor before exec.
func TestProgramPath(t *testing.T) {
	low := []*os.File{open(t, os.DevNull), open(t, os.DevNull), open(t, os.DevNull)}
	program := open(t, "/bin/true")
	given := []*os.File{open(t, os.DevNull), open(t, os.DevNull), open(t, os.DevNull)}
	file, path, err := child.NewMemoryProgram("true", program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, f := range low {
		f.Close()
	}
	safe, done, err := child.ProgramPath(path, given)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	p, err := os.StartProcess(safe, []string{"true"}, &os.ProcAttr{Files: given})
	if err != nil {
		t.Fatalf("start %s (duplicate of %s) with files up to %d: %v", safe, path, given[len(given)-1].Fd(), err)
	}
	if state, err := p.Wait(); err != nil || !state.Success() {
		t.Errorf("%v %v", state, err)
	}
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
