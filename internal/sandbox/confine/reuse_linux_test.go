//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"testing"

	"reeve/internal/sandbox/child"
)

// TestReusedProgramPath checks that a worker is started from the program that its path now leads to. The path of a
// program in memory is a descriptor number, which is reused once the program is closed.
func TestReusedProgramPath(t *testing.T) {
	var paths []string
	var sizes []int64
	for _, name := range []string{"/proc/self/exe", "/bin/true"} {
		program, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		file, path, err := child.NewMemoryProgram("program", program)
		if err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: path, Args: []string{"program"}}
		started, err := confineProgram(cmd, "", Landlock)
		if err != nil {
			t.Fatal(err)
		}
		is, err := cmd.ExtraFiles[0].Stat()
		if err != nil {
			t.Fatal(err)
		}
		paths, sizes = append(paths, path), append(sizes, is.Size())
		started()
		file.Close()
		program.Close()
	}
	if paths[0] != paths[1] {
		t.Fatalf("they had different paths: %s", paths)
	}
	if sizes[0] == sizes[1] {
		t.Errorf("what was started by the path %s is what it was before", paths[0])
	}
}

// TestUnmeasurableDiskIsNotFull measures the disk of a workspace that exists, and of one that is removed while its
// command runs. The latter must not count as full.
func TestUnmeasurableDiskIsNotFull(t *testing.T) {
	here := t.TempDir()
	if free, _, ok := measureDisk(job{Command: Command{Root: here}}); !ok || free <= 0 {
		t.Errorf("%d bytes free, %v", free, ok)
	}
	for _, j := range []job{{Command: Command{Root: here + "/gone"}},
		{Command: Command{Root: here}, TempDir: here + "/gone"}} {
		if free, files, ok := measureDisk(j); ok {
			t.Errorf("%d bytes free and %d files where there is nothing", free, files)
		}
	}
}
