package confine_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
)

func TestMain(m *testing.M) {
	confine.Serve()
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		probe(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// modes returns the modes that this machine supports. If there is none, Run must return the reason.
func modes(t *testing.T) []confine.Mode {
	t.Helper()
	switch best, reason := confine.Available(); best {
	case confine.Namespaces:
		return []confine.Mode{confine.Namespaces, confine.Landlock}
	case confine.Landlock:
		t.Log("no namespaces here: ", reason)
		return []confine.Mode{confine.Landlock}
	default:
		if reason == "" {
			t.Error("off without a reason")
		}
		_, err := confine.Run(t.Context(), confine.Command{Args: []string{"true"}, Root: t.TempDir()}, confine.Limits{})
		if reeve.CodeOf(err) != reeve.Unsupported || !strings.Contains(err.Error(), reason) {
			t.Errorf("off, but %v", err)
		}
		return nil
	}
}

// each runs a test in every mode.
func each(t *testing.T, f func(t *testing.T, b *box)) {
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			b := &box{t: t, mode: mode, top: t.TempDir()}
			// a command that runs as nobody must be able to reach the folder
			for _, dir := range []string{filepath.Dir(b.top), b.top} {
				if err := os.Chmod(dir, 0o711); err != nil {
					t.Fatal(err)
				}
			}
			b.root = filepath.Join(b.top, "root")
			b.put("secret.txt", "outside")
			b.put("other/note.txt", "another workspace")
			if err := os.Mkdir(b.root, 0o700); err != nil {
				t.Fatal(err)
			}
			before := b.outside()
			f(t, b)
			if after := b.outside(); after != before {
				t.Errorf("outside it was\n%s\nand is\n%s", before, after)
			}
			b.nobodyLeft()
		})
	}
}

// box is a workspace with files around it that must not change.
type box struct {
	t         *testing.T
	mode      confine.Mode
	top, root string
}

func (b *box) put(name, text string) {
	b.t.Helper()
	p := filepath.Join(b.top, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o711); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// outside returns a description of all files around the workspace.
func (b *box) outside() string {
	b.t.Helper()
	var out strings.Builder
	err := filepath.Walk(b.top, func(p string, info os.FileInfo, err error) error {
		if err != nil || p == b.root {
			return filepath.SkipDir
		}
		text := []byte(nil)
		if info.Mode().IsRegular() {
			text, _ = os.ReadFile(p)
		}
		out.WriteString(strings.TrimPrefix(p, b.top) + " " + info.Mode().String() + " " + string(text) + "\n")
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.String()
}

// nobodyLeft checks that no process runs in the workspace or has this box's variable.
func (b *box) nobodyLeft() {
	b.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		left := b.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Errorf("left running: %v", left)
			return
		}
		runtime.Gosched()
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *box) processes() (left []string) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if bytes.Contains(env, []byte("BOX="+b.root+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			left = append(left, filepath.Base(dir)+" "+string(line))
		}
	}
	return left
}

// run runs a command and fails the test if there is no result.
func (b *box) run(c confine.Command, l confine.Limits) confine.Result {
	b.t.Helper()
	r, err := b.try(b.t.Context(), c, l)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *box) try(ctx context.Context, c confine.Command, l confine.Limits) (confine.Result, error) {
	c.Root, c.Mode, c.At = b.root, b.mode, "/shared"
	c.Env = append(c.Env, "BOX="+b.root)
	return confine.Run(ctx, c, l)
}

// sh runs a shell command.
func (b *box) sh(line string, l confine.Limits) confine.Result {
	b.t.Helper()
	return b.run(confine.Command{Args: []string{"/bin/sh", "-c", line}}, l)
}

// probes runs this test binary in the sandbox, which tries to escape and prints the outcome of each attempt.
func (b *box) probes(c confine.Command, args ...string) map[string]string {
	b.t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		b.t.Fatal(err)
	}
	defer self.Close()
	program := filepath.Join(b.root, "probe")
	f, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.Copy(f, self); err != nil {
		b.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.t.Fatal(err)
	}
	c.Args = append([]string{"./probe", "probe"}, args...)
	r := b.run(c, confine.Limits{})
	out := map[string]string{}
	for line := range strings.Lines(string(r.Stdout)) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[name] = said
	}
	if out["end"] != "reached" {
		b.t.Fatalf("the probe ended early: exit %d\n%s%s", r.ExitCode, r.Stdout, r.Stderr)
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }
