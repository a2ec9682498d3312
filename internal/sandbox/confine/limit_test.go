package confine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
)

// works runs a command that must succeed, after another one has failed.
func (b *box) works() {
	b.t.Helper()
	if r := b.sh("echo fine; echo err >&2; exit 3", confine.Limits{}); string(r.Stdout) != "fine\n" ||
		string(r.Stderr) != "err\n" || r.ExitCode != 3 || r.TimedOut || r.Truncated {
		b.t.Errorf("afterwards: %+v", r)
	}
}

// TestO06_TimeoutKillsTheTree starts processes in the background, detached, ignoring signals, and stopped. All are
// killed at the time limit.
func TestO06_TimeoutKillsTheTree(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		for _, line := range []string{
			"while :; do :; done",
			"trap '' TERM INT HUP; sleep 1000",
			"sleep 1000 & sleep 1000 & wait",
			"(setsid sleep 1000 &) ; (nohup sleep 1000 >/dev/null 2>&1 &) ; sleep 1000",
			"sh -c 'sh -c \"sleep 1000\" & sleep 1000' & kill -STOP $!; sleep 1000",
		} {
			r := b.sh("echo begun; "+line, confine.Limits{Time: 300 * time.Millisecond})
			if !r.TimedOut || r.ExitCode != 137 || string(r.Stdout) != "begun\n" || r.Duration > 5*time.Second {
				t.Errorf("%s: %+v", line, r)
			}
			b.nobodyLeft()
		}
		b.works()
	})
}

// TestO06_DaemonEndsWithItsCommand detaches a process and exits. The process neither outlives nor delays the command.
func TestO06_DaemonEndsWithItsCommand(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		r := b.sh("(setsid sh -c 'sleep 1000; echo late > late' &) ; sleep 1000 & echo done", confine.Limits{})
		if string(r.Stdout) != "done\n" || r.ExitCode != 0 || r.TimedOut || r.Duration > 10*time.Second {
			t.Errorf("%+v", r)
		}
		b.nobodyLeft()
		b.works()
	})
}

// TestO06_CancelEndsTheCommand checks that the command ends when its context ends.
func TestO06_CancelEndsTheCommand(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			for {
				if _, err := os.Stat(filepath.Join(b.root, "begun")); err == nil || t.Context().Err() != nil {
					cancel()
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		_, err := b.try(ctx, confine.Command{Args: []string{"/bin/sh", "-c", "touch begun; sleep 1000"}},
			confine.Limits{})
		group.Wait()
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		b.nobodyLeft()
		b.works()
	})
}

// TestO06_BombsStayInside runs commands that try to use up processes, memory and disk space.
func TestO06_BombsStayInside(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		fork := b.sh("f() { f | f & }; f; wait; sleep 1000", confine.Limits{Time: time.Second, Processes: 40})
		if !fork.TimedOut && fork.ExitCode == 0 {
			t.Errorf("fork bomb: %+v", fork)
		}
		b.nobodyLeft()
		b.works()

		file := b.sh("head -c 50000000 /dev/zero > big; echo $?; wc -c < big", confine.Limits{FileSize: 1 << 20})
		if !strings.HasSuffix(string(file.Stdout), "1048576\n") || strings.HasPrefix(string(file.Stdout), "0\n") {
			t.Errorf("one large file: %+v %s", file, file.Stdout)
		}
		many := b.sh("i=0; while :; do head -c 1000000 /dev/zero > f$i || sleep 1; i=$((i+1)); done",
			confine.Limits{Disk: 64 << 20, Time: time.Minute})
		if !many.DiskFull || many.ExitCode != 137 {
			t.Errorf("many files: %+v", many)
		}
		for _, name := range glob(t, b.root+"/f*") {
			_ = os.Remove(name)
		}
		if empty := b.sh("i=0; while [ $i -lt 200000 ]; do : > e$i; i=$((i+1)); done",
			confine.Limits{Files: 500, Time: time.Minute}); countsFiles(b.root) &&
			(!empty.DiskFull || empty.ExitCode != 137) {
			t.Errorf("many empty files: %+v", empty)
		}
		for _, name := range glob(t, b.root+"/e*") {
			_ = os.Remove(name)
		}
		if b.mode == confine.Namespaces {
			if temp := b.sh("head -c 50000000 /dev/zero > /tmp/big; wc -c < /tmp/big", confine.Limits{Temp: 2 << 20}); strings.TrimSpace(string(temp.Stdout)) != "2097152" {
				t.Errorf("a large temporary file: %s %s", temp.Stdout, temp.Stderr)
			}
		}
		memory := b.sh("x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}", confine.Limits{Memory: 80 << 20})
		if memory.ExitCode == 0 || strings.Contains(string(memory.Stdout), "300000000") {
			t.Errorf("memory: exit %d %.100s", memory.ExitCode, memory.Stdout)
		}
		cpu := b.sh("while :; do :; done", confine.Limits{CPU: time.Second, Time: time.Minute})
		if cpu.TimedOut || cpu.ExitCode < 128 {
			t.Errorf("processor time: %+v", cpu)
		}
		b.works()
	})
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestO06_OutputIsCappedAndDrained writes a gigabyte of bytes that are not text to stdout and stderr.
func TestO06_OutputIsCappedAndDrained(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		r := b.sh("head -c 1000000000 /dev/zero; head -c 100000 /dev/zero | tr '\\0' e >&2; exit 7",
			confine.Limits{Output: 1000, Time: 2 * time.Minute})
		if r.ExitCode != 7 || !r.Truncated || r.StdoutSize != 1_000_000_000 || len(r.Stdout) != 1000 ||
			r.StderrSize != 100_000 || string(r.Stderr) != strings.Repeat("e", 1000) {
			t.Errorf("exit %d, %d of %d, %d of %d, %v", r.ExitCode, len(r.Stdout), r.StdoutSize, len(r.Stderr),
				r.StderrSize, r.Truncated)
		}
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		r = b.run(confine.Command{Args: []string{"cat"}, Stdin: all}, confine.Limits{})
		if !bytes.Equal(r.Stdout, all) || r.Truncated {
			t.Errorf("%x", r.Stdout)
		}
	})
}

// TestO06_ManyAtOnce runs commands concurrently, each with its own limits.
func TestO06_ManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() {
				r, err := b.try(t.Context(),
					confine.Command{Args: []string{"/bin/sh", "-c", "echo " + itoa(i) + " | cat"}},
					confine.Limits{Processes: 200})
				if err != nil || string(r.Stdout) != itoa(i)+"\n" {
					t.Errorf("%d: %v %q %q", i, err, r.Stdout, r.Stderr)
				}
			})
		}
		group.Wait()
	})
}

// TestO05_BadCommandsAreRefused checks the errors of invalid commands.
func TestO05_BadCommandsAreRefused(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		for name, c := range map[string]struct {
			command confine.Command
			limits  confine.Limits
			code    reeve.Code
			says    string
		}{
			"no command": {code: reeve.Validation, says: "empty"},
			"NUL":        {command: confine.Command{Args: []string{"echo", "a\x00b"}}, code: reeve.Validation, says: "NUL"},
			"directory outside": {command: confine.Command{Args: []string{"true"}, Dir: "../other"},
				code: reeve.Validation, says: "not in the workspace"},
			"no directory": {command: confine.Command{Args: []string{"true"}, Dir: "nowhere"},
				code: reeve.ToolFailed, says: "no such file"},
			"no program": {command: confine.Command{Args: []string{"nothing-of-that-name"}},
				code: reeve.ToolFailed, says: "program not found"},
			"not a program": {command: confine.Command{Args: []string{"/etc/passwd"}}, code: reeve.ToolFailed,
				says: "permission denied"},
			"no value": {command: confine.Command{Args: []string{"true"}, Env: []string{"X"}},
				code: reeve.Validation, says: "name=value"},
			"negative": {command: confine.Command{Args: []string{"true"}}, limits: confine.Limits{Time: -1},
				code: reeve.Validation, says: "negative"},
			"little memory": {command: confine.Command{Args: []string{"true"}}, limits: confine.Limits{Memory: 1},
				code: reeve.Validation, says: "too small"},
		} {
			_, err := b.try(t.Context(), c.command, c.limits)
			if reeve.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := os.Symlink(b.top+"/other", filepath.Join(b.root, "out")); err != nil {
			t.Fatal(err)
		}
		if r, err := b.try(t.Context(), confine.Command{Args: []string{"cat", "note.txt"}, Dir: "out"},
			confine.Limits{}); err == nil && r.ExitCode == 0 {
			t.Errorf("through a link: %q", r.Stdout)
		}
		if _, err := confine.Run(t.Context(), confine.Command{Args: []string{"true"},
			Root: filepath.Join(b.top, "gone")}, confine.Limits{}); reeve.CodeOf(err) != reeve.Unavailable {
			t.Error(err)
		}
	})
}
