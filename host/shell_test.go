package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// shellBroken gives why commands cannot be run on this machine, having checked that everybody is told so.
func shellBroken(h *reevetest.Host) string {
	h.T.Helper()
	var tool reeve.Tool
	h.Want(200, &tool, "GET", "/api/tools/shell_exec", nil)
	var up api.DoctorReport
	h.Want(200, &up, "GET", "/api/doctor", nil)
	for _, c := range up.Checks {
		if c.Name == "sandbox" && c.OK != (tool.Broken == "") {
			h.T.Errorf("doctor says %+v, the tool %q", c, tool.Broken)
		}
	}
	if tool.Broken != "" {
		if _, p, _ := do(h, "ops",
			call{"tool": "shell_exec", "args": map[string]any{"command": "true"}}); p.Code != reeve.Unsupported {
			h.T.Errorf("%+v", p)
		}
	}
	return tool.Broken
}

// TestG18_ACommandsTreeIsGone has a person approve a command that never ends: it is killed, the result says so, the
// next one works.
func TestG18_ACommandsTreeIsGone(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, quick(t))
	a := h.Agent("ops", "shell_exec", "file_write")
	if _, p, _ := do(h, "ops",
		call{"tool": "shell_exec", "args": map[string]any{"command": "true"}}); p.Code != reeve.OutOfScope &&
		p.Code != reeve.Unsupported {
		t.Errorf("an assistant ran a command: %+v", p)
	}
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, map[string]any{"kind": "engineer"})
	if reason := shellBroken(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	h.Call("ops", "file_write", map[string]any{"path": "/shared/in.txt", "content": "from the file tools"})
	run := func(args map[string]any) string {
		t.Helper()
		do(h, "ops", call{"tool": "shell_exec", "args": args})
		list := inbox(h).Approvals
		if len(list) != 1 {
			t.Fatalf("%d approvals wait", len(list))
		}
		decide(h, list[0].ID, "approve")
		h.RunUntilIdle(t.Context())
		op := operation(h, list[0].OperationID)
		if op.State != reeve.Committed {
			t.Fatalf("%+v", op)
		}
		for _, pair := range pairs(h, thread(h, "ops", "")) {
			if pair[0].OperationID == op.ID {
				return pair[1].Content
			}
		}
		t.Fatal("no result")
		return ""
	}
	if got := run(map[string]any{"command": "(setsid sleep 1000 &); sleep 1000 & sleep 1000",
		"timeout_ms": 300}); !strings.Contains(got, `timed_out`) {
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
