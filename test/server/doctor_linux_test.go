package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// smallDisk returns a folder on a disk of 48 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=48m"); err != nil {
		t.Fatalf("a small disk cannot be mounted (%v): run the tests as root on Linux", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fillDisk writes to a file until only leave bytes are free on its disk.
func fillDisk(t *testing.T, file string, leave int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, int64(s.Bavail)*s.Bsize-leave)); err != nil {
		t.Fatal(err)
	}
}

// The doctor reports a disk that is full, or nearly, and says what to do. A small write may find room inside the log of
// the database where a call finds none. The server stays ready, because reads work.
func TestDoctor_ReportsAFullDisk(t *testing.T) {
	t.Parallel()
	for engine, url := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" },
		"postgres": storetest.PostgresURL} {
		t.Run(engine, func(t *testing.T) {
			dir := smallDisk(t)
			ballast := filepath.Join(dir, "ballast")
			h := reevetest.StartWith(t, host.Config{Dir: dir, Database: url(t)})
			says := func(want map[string]string) {
				t.Helper()
				for name, how := range want {
					if d := kit.GetHealth(h, name); d.OK != (how == "") || !strings.Contains(d.Detail, how) || !d.OK &&
						!strings.Contains(d.Hint, "free some space") {
						t.Errorf("the doctor says %+v, want %q", d, how)
					}
				}
				h.Want(http.StatusOK, nil, "GET", "/readyz", nil)
			}
			of := func(how string) map[string]string {
				if engine == "postgres" { // which is on another disk
					return map[string]string{"data directory": how, "database": ""}
				}
				return map[string]string{"data directory": how, "database": how}
			}
			says(of(""))
			fillDisk(t, ballast, 8<<20)
			says(of("is nearly full"))
			fillDisk(t, ballast, 0)
			says(of("is full"))
			if left, _ := filepath.Glob(filepath.Join(dir, ".doctor-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			says(of(""))
		})
	}
}
