package py_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/py"
)

// counting returns a pool that counts the workers it starts.
func counting(t *testing.T, c py.Config) (*py.Pool, *atomic.Int32) {
	n := new(atomic.Int32)
	c.Confine = func(*exec.Cmd, string) (func(), error) { n.Add(1); return func() {}, nil }
	return newPool(t, c), n
}

func runFor(t *testing.T, p *py.Pool, owner string) {
	t.Helper()
	if r, err := p.Run(context.Background(), py.Code{Owner: owner, Source: "print(1)"}, py.Limits{Time: time.Minute}); err != nil || string(r.Stdout) != "1\n" {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestI11_OwnersShareNoWorker counts workers. There is one for each owner, kept for the owner's next run, and ended
// when there are too many.
func TestI11_OwnersShareNoWorker(t *testing.T) {
	p, started := counting(t, py.Config{Warm: -1, Keep: 2})
	for i, step := range []struct {
		owner string
		want  int32
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"a", 2}, {"b", 2}, {"c", 3}, {"b", 3}, {"c", 3}, {"a", 4}} {
		if runFor(t, p, step.owner); started.Load() != step.want {
			t.Fatalf("step %d: %d workers were started, not %d", i, started.Load(), step.want)
		}
	}
	if n := children(t); n != 2 {
		t.Errorf("%d workers wait", n)
	}
}

// TestI11_WorkersAreStartedAhead checks that workers are started in advance after the first run, and ended when idle.
func TestI11_WorkersAreStartedAhead(t *testing.T) {
	p, started := counting(t, py.Config{Warm: 1, Keep: 1})
	if runFor(t, p, "a"); started.Load() < 1 {
		t.Error("no worker")
	}
	until(t, "a worker that is nobody's", func() bool { return children(t) == 2 })
	if _, err := p.Run(t.Context(), py.Code{Owner: "a", Source: "while True: pass"}, py.Limits{Time: time.Second}); err != nil {
		t.Error(err)
	}
	runFor(t, p, "a")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := children(t); n != 0 {
		t.Errorf("%d workers outlive their pool", n)
	}
	if _, err := p.Run(t.Context(), py.Code{}, py.Limits{}); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("a closed pool: %v", err)
	}
	idle := newPool(t, py.Config{Idle: time.Millisecond})
	if err := idle.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runFor(t, idle, "a")
	until(t, "idle workers to be ended", func() bool { return children(t) == 0 })
	runFor(t, idle, "a")
}

// TestI11_ClosingDoesNotWaitForAStart closes a pool while its first worker starts, which takes seconds. The start is
// ended, and the next pool starts normally.
func TestI11_ClosingDoesNotWaitForAStart(t *testing.T) {
	dir := t.TempDir()
	p := newPool(t, py.Config{Dir: dir})
	ended := make(chan error)
	go func() { ended <- p.Start(context.Background()) }()
	until(t, "a worker to be started", func() bool { return children(t) == 1 })
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("%v", err)
	}
	if n := children(t); n != 0 {
		t.Errorf("%d workers outlive their pool", n)
	}
	runFor(t, newPool(t, py.Config{Dir: dir}), "a")
}

// TestI11_RunSurvivesDeadIdleWorker checks that the next run works after an idle worker has died.
func TestI11_RunSurvivesDeadIdleWorker(t *testing.T) {
	p := newPool(t, py.Config{Warm: -1})
	runFor(t, p, "a")
	killChildren(t)
	runFor(t, p, "a")
}

// TestI11_CacheIsChecked checks that the cache's permissions and content are checked before the interpreter runs.
func TestI11_CacheIsChecked(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(cacheDirReady(t))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "python"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	own := filepath.Dir(files[0])
	for _, d := range []string{dir, own, filepath.Join(own, "code")} {
		chmod(t, d, 0o700)
	}
	stale := filepath.Join(dir, "0123456789abcdef")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(){
		"changed":           func() { damage(t, files[0], 12<<20) },
		"changed in memory": func() { damage(t, files[0], 5<<20) },
		"cut off": func() {
			if err := os.Truncate(files[0], 1000); err != nil {
				t.Error(err)
			}
		},
		"gone": func() {
			if err := os.RemoveAll(own); err != nil {
				t.Error(err)
			}
		},
		"machine code changed": func() {
			code, err := filepath.Glob(filepath.Join(own, "code", "*", "*"))
			if err != nil || len(code) != 1 {
				t.Fatalf("%v, %v", code, err)
			}
			damage(t, code[0], 1<<20)
		},
	} {
		damage()
		p := newPool(t, py.Config{Dir: dir, Warm: -1, Stderr: quiet(t)})
		if r, err := p.Run(context.Background(), py.Code{Source: "print(1)"}, py.Limits{Time: time.Minute}); err != nil || string(r.Stdout) != "1\n" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("another version's interpreter is still there: %v", err)
	}
	for _, d := range []string{dir, own} {
		chmod(t, d, 0o777)
		p := newPool(t, py.Config{Dir: dir, Warm: -1})
		if _, err := p.Run(t.Context(), py.Code{}, py.Limits{}); reeve.CodeOf(err) != reeve.Forbidden {
			t.Errorf("others can write to %s: %v", d, err)
		}
		chmod(t, d, 0o700)
	}
	p := newPool(t, py.Config{Dir: files[0], Warm: -1})
	if _, err := p.Run(t.Context(), py.Code{}, py.Limits{}); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("no directory: %v", err)
	}
}

// cacheDirReady returns the cache of all tests after the interpreter has been unpacked.
func cacheDirReady(t *testing.T) string {
	t.Helper()
	if found, err := filepath.Glob(filepath.Join(cacheDir, "*", "code", "*", "*")); err != nil || len(found) == 0 {
		runFor(t, newPool(t, py.Config{Warm: -1}), "")
	}
	return cacheDir
}

func quiet(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// damage changes some bytes of a file.
func damage(t *testing.T, path string, at int64) {
	t.Helper()
	chmod(t, path, 0o600)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damaged damaged damaged"), at); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
