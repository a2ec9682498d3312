//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"testing"

	"reeve/internal/sandbox/child"
)

// A program in memory has a number for a path, which is another's once it is closed: each start runs what is there now.
func TestAPathThatIsAnothersNow(t *testing.T) {
	var paths []string
	var sizes []int64
	for _, name := range []string{"/proc/self/exe", "/bin/true"} {
		program, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		file, path, err := child.InMemory("program", program)
		if err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: path, Args: []string{"program"}}
		started, err := worker(cmd, "", Landlock)
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
