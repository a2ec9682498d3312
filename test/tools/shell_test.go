package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// newFreeAgent creates an agent whose commands need no approval.
func newFreeAgent(h *reevetest.Host, name string, tools ...string) reeve.Agent {
	h.T.Helper()
	a := h.Agent(name, append([]string{"shell_exec"}, tools...)...)
	policy := kit.Object{"tools": kit.Object{"shell_exec": "allow"}}
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"kind": "engineer", "policy": policy})
	return a
}

// A command may use what is left of the disk limit of its workspace. In a full workspace no command runs until
// something is deleted.
func TestO06_WorkspaceHasADiskLimit(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.ShellDiskMB = 64
	h := reevetest.StartWith(t, cfg)
	newFreeAgent(h, "ops", "file_delete")
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	run := func(command string) (reeve.Result, api.Problem) {
		t.Helper()
		res, p, _ := kit.TryCall(h, "ops",
			kit.Call{"tool": "shell_exec", "args": kit.Object{"command": command, "timeout_ms": 60000}})
		return res, p
	}
	if res, p := run("echo fine"); !strings.Contains(res.Content, "fine") {
		t.Fatalf("%+v %+v", res, p)
	}
	shared := filepath.Join(h.Dir(), "workspaces", "default", "shared")
	if err := os.WriteFile(filepath.Join(shared, "before"), make([]byte, 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	res, p := run("for i in 1 2 3 4; do head -c 200M /dev/zero > big$i & done; wait; echo all")
	if !strings.Contains(res.Content, `"disk_full":true`) || !strings.Contains(res.Content, "were removed") {
		t.Errorf("%+v %+v", res, p)
	}
	if left, err := filepath.Glob(filepath.Join(shared, "big*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(shared, "more"), make([]byte, 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, p := run("echo again"); res.Code != reeve.TooLarge || !strings.Contains(res.Hint, "file_delete") {
		t.Errorf("%+v %+v", res, p)
	}
	if err := os.Remove(filepath.Join(shared, "more")); err != nil {
		t.Fatal(err)
	}
	if res, p := run("echo again"); !strings.Contains(res.Content, "again") {
		t.Errorf("%+v %+v", res, p)
	}
}

// A person approves a command that never ends. It is killed, the result says so, and the next one works.
func TestG18_TimeoutKillsTheProcessesOfACommand(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	a := h.Agent("ops", "shell_exec", "file_write")
	if _, p, _ := kit.TryCall(h, "ops", kit.Call{"tool": "shell_exec", "args": map[string]any{"command": "true"}}); p.Code != reeve.OutOfScope &&
		p.Code != reeve.Unsupported {
		t.Errorf("an assistant ran a command: %+v", p)
	}
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, map[string]any{"kind": "engineer"})
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	h.Call("ops", "file_write", map[string]any{"path": "/shared/in.txt", "content": "from the file tools"})
	run := func(args map[string]any) string {
		t.Helper()
		kit.TryCall(h, "ops", kit.Call{"tool": "shell_exec", "args": args})
		list := kit.GetInbox(h).Approvals
		if len(list) != 1 {
			t.Fatalf("%d approvals wait", len(list))
		}
		kit.Decide(h, list[0].ID, "approve")
		h.RunUntilIdle(t.Context())
		op := kit.GetOperation(h, list[0].OperationID)
		if op.State != reeve.Committed {
			t.Fatalf("%+v", op)
		}
		for _, pair := range kit.PairCalls(h, kit.ListThread(h, "ops", "")) {
			if pair[0].OperationID == op.ID {
				return pair[1].Content
			}
		}
		t.Fatal("no result")
		return ""
	}
	if got := run(map[string]any{"command": "(setsid sleep 1000 &); sleep 1000 & sleep 1000", "timeout_ms": 300}); !strings.Contains(got, `timed_out`) {
		t.Error(got)
	}
	if got := run(map[string]any{"command": "cat in.txt; echo done > out.txt; cat /etc/shadow"}); !strings.Contains(got,
		"from the file tools") || !strings.Contains(got, "No such file") && !strings.Contains(got, "denied") {
		t.Error(got)
	}
	if b, err := filepath.Glob(filepath.Join(h.Dir(), "workspaces", "*", "shared", "out.txt")); err != nil ||
		len(b) != 1 {
		t.Error(b, err)
	}
}

// Commands use up processes, memory and output, leave daemons, and print binary data. Each has a clear result, the
// server answers during and after them, and nothing keeps running.
func TestG22_RunawayCommandsAreContained(t *testing.T) {
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
			return r.ExitCode == 0 && strings.Contains(r.Stdout, "\ufffd")
		}},
		{"kill -9 -1; kill -9 1; kill -9 $$; echo alive", func(r kit.CommandResult) bool {
			return r.Stdout == "alive\n" || r.ExitCode != 0
		}},
		{"while :; do mkdir d && cd d || break; done; exit 3",
			func(r kit.CommandResult) bool { return r.ExitCode != 0 }},
	} {
		answers := make(chan int, 1)
		go func() { answers <- h.Do("GET", "/api/status", nil).Status }() // the server still responds
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
	kit.Eventually(t, "all that was left behind is gone", func() bool { return !isRunning(mark) })
}

// isRunning reports whether a process whose command line begins with mark runs on the machine.
func isRunning(mark string) bool {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range list {
		if b, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(b), mark) {
			return true
		}
	}
	return false
}
