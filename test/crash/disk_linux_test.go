package crash_test

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reeve/api"
)

// TestDisk_FailedWritesAreNotReportedAsDamage checks that a failed write is reported as a disk failure, not as a
// damaged database, and that the server works again as soon as the disk does.
func TestDisk_FailedWritesAreNotReportedAsDamage(t *testing.T) {
	t.Parallel()
	r, e := newRig(t), sqliteEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := e.newEmptyWorld()
	must(err)
	p, err := r.serve(w)
	must(err)
	defer p.kill()
	must(p.waitUntilReady(ctx))
	c, err := w.owner(p, unlimited)
	must(err)
	must(c.do(ctx, "POST", "/api/agents", object{"name": "clerk"}, nil))
	write := func(content string) error {
		return c.do(ctx, "POST", "/api/agents/clerk/calls",
			object{"tool": "write_file", "args": object{"path": "a", "content": content}}, nil)
	}
	must(write("b"))
	var was unix.Rlimit
	little := unix.Rlimit{Cur: 4096, Max: unix.RLIM_INFINITY}
	must(unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &little, &was))
	err = write(strings.Repeat("c", 100_000))
	if err == nil || !strings.Contains(err.Error(), "disk of the database failed") ||
		!strings.Contains(err.Error(), "keep the database file") ||
		strings.Contains(err.Error(), "restore") {
		t.Errorf("%v", err)
	}
	out, err := r.runCLI(ctx, w, "doctor")
	if err == nil || !strings.Contains(out, "disk of the database failed") || strings.Contains(out, "reeve restore") {
		t.Errorf("doctor: %v: %s", err, out)
	}
	must(unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &was, nil))
	must(write("d"))
	must(p.stop())
	must(w.checkFile(ctx))
	var list api.AgentList
	p, err = r.serve(w)
	must(err)
	must(p.waitUntilReady(ctx))
	c, err = w.owner(p, unlimited)
	must(err)
	must(c.do(ctx, "GET", "/api/agents", nil, &list))
	if len(list.Agents) != 1 {
		t.Errorf("%+v", list.Agents)
	}
	must(p.stop())
}
