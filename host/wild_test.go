package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/reevetest"
	"reeve/test/kit"
)

// TestG22_ACommandThatGoesWildHarmsNobody runs what uses up processes, memory and output, leaves daemons, and answers
// with what is no text: each has a clear result, the server answers meanwhile and afterwards, and nothing goes on
// running.
func TestG22_ACommandThatGoesWildHarmsNobody(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.OutputCap = 1 << 20
	h := reevetest.StartWith(t, cfg)
	w := kit.ShellAgent{Host: h, Agent: h.Agent("dev", "shell_exec", "file_list")}
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	w.Configure(map[string]any{"backend": "session"})
	const mark = "reeve-wild-mark"
	for _, c := range []struct {
		command string
		ok      func(kit.CommandResult) bool
	}{
		{"f() { f | f & }; f; wait; sleep 1000", func(r kit.CommandResult) bool { return r.ExitCode != 0 }},
		{"x=y; while :; do x=$x$x; done", func(r kit.CommandResult) bool { return r.ExitCode != 0 }},
		{"(setsid sh -c 'exec -a " + mark +
			" sleep 1000' &) ; (nohup sh -c 'trap \"\" TERM HUP; sleep 1000' >/dev/null 2>&1 &); echo left",
			func(r kit.CommandResult) bool { return r.ExitCode == 0 && r.Stdout == "left\n" }},
		{"head -c 300000000 /dev/zero | tr '\\0' x; echo over >&2", func(r kit.CommandResult) bool {
			return r.ExitCode == 0 && strings.HasSuffix(r.Stderr, "over\n") && len(r.Stdout) <= 256<<10
		}},
		{"head -c 3000 /dev/urandom; printf '\\0\\377\\033[2J'", func(r kit.CommandResult) bool {
			return r.ExitCode == 0 &&
				strings.Contains(r.Stdout, "\ufffd")
		}},
		{"kill -9 -1; kill -9 1; kill -9 $$; echo alive", func(r kit.CommandResult) bool {
			return r.Stdout == "alive\n" ||
				r.ExitCode != 0
		}},
		{"while :; do mkdir d && cd d || break; done; exit 3",
			func(r kit.CommandResult) bool { return r.ExitCode != 0 }},
	} {
		answers := make(chan int, 1)
		go func() { answers <- h.Do("GET", "/api/status", nil).Status }() // it answers while the command rages
		patience := 4000
		if strings.HasPrefix(c.command, "head -c 300000000") {
			patience = 60_000 // it comes to its end by itself, on a busy machine later
		}
		got := w.Run("", c.command, "timeout_ms", patience)
		if status := <-answers; status != 200 {
			t.Errorf("%s: the server answered %d", c.command, status)
		}
		if !c.ok(got) {
			got.Stdout = got.Stdout[:min(len(got.Stdout), 200)]
			t.Errorf("%s: %+v", c.command, got)
		}
		if next := w.Run("", "cd /shared; echo fine"); next.Stdout != "fine\n" {
			t.Errorf("after %s: %+v", c.command, next)
		}
	}
	if res := h.Call("dev", "file_list", map[string]any{"path": "/"}); res.IsError {
		t.Errorf("%+v", res)
	}
	kit.Eventually(t, "all that was left behind is gone", func() bool { return !running(mark) })
}

// running tells whether a process with this in its command line runs on the machine.
func running(mark string) bool {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range list {
		if b, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(b), mark) {
			return true
		}
	}
	return false
}
