//go:build linux && (amd64 || arm64)

package confine_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reeve/internal/sandbox/confine"
)

// TestO05_WorkersReachNothing runs a hostile program in place of a worker of scripts or Python that has not called
// lock.Restrict. It tries every known escape. It can read its one folder by the path in its argument, and cannot write
// it.
func TestO05_WorkersReachNothing(t *testing.T) {
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			_, port, _ := net.SplitHostPort(l.Addr().String())
			top := t.TempDir()
			secret, folder := filepath.Join(top, "secret"), filepath.Join(top, "folder")
			if err := os.WriteFile(secret, []byte("outside"), 0o666); err != nil {
				t.Fatal(err)
			}
			u, err := net.Listen("unix", filepath.Join(top, "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "book"), []byte("to read"), 0o644); err != nil {
				t.Fatal(err)
			}
			left, err := unix.Open(secret, unix.O_RDWR, 0) // a host that leaves its files to its children
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(left) }()
			for name, at := range map[string]string{"nothing": "", "a folder": folder} {
				cmd := exec.Command("/proc/self/exe")
				cmd.Args = []string{"worker", "probe", itoa(os.Getpid()), port, secret, filepath.Join(top, "s"),
					filepath.Join(folder, "book"), folder}
				cmd.Env, cmd.Dir = []string{"GOMAXPROCS=1"}, "/"
				started, err := confine.WorkerIn(cmd, at, mode)
				var out []byte
				if err == nil {
					out, err = cmd.CombinedOutput()
				}
				started()
				if err != nil {
					t.Fatalf("%s: %v\n%s", name, err, out)
				}
				var good []string
				open := "leaked files=0"
				if at != "" {
					good = []string{"book"}
					if mode == confine.Landlock {
						open = "leaked files=1" // the folder itself
					}
				}
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				for _, line := range lines {
					if what, said, _ := strings.Cut(line, "="); slices.Contains(good, what) != (said == "YES") {
						t.Errorf("%s: %s", name, line)
					}
				}
				if len(lines) < 55 || !slices.Contains(lines, "end=reached") || !slices.Contains(lines, open) ||
					slices.Contains(lines, "uid=0") {
					t.Errorf("%s: %d probes\n%s", name, len(lines), out)
				}
			}
			if b, err := os.ReadFile(secret); err != nil || string(b) != "outside" {
				t.Errorf("outside is %q, %v", b, err)
			}
			if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
				t.Errorf("the folder holds %v, %v", list, err)
			}
		})
	}
}
