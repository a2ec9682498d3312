package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// TestG18_ACommandsTreeIsGone has a person approve a command that never ends: it is killed, the result says so, the
// next one works.
func TestG18_ACommandsTreeIsGone(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	a := h.Agent("ops", "shell_exec", "file_write")
	if _, p, _ := kit.TryCall(h, "ops",
		kit.Call{"tool": "shell_exec", "args": map[string]any{"command": "true"}}); p.Code != reeve.OutOfScope &&
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
		h.Settle(t.Context())
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
