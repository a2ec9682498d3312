package host_test

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

// free makes an agent whose commands run without being asked about.
func free(h *reevetest.Host, name string, tools ...string) reeve.Agent {
	h.T.Helper()
	a := h.Agent(name, append([]string{"shell_exec"}, tools...)...)
	policy := kit.Object{"tools": kit.Object{"shell_exec": "allow"}}
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"kind": "engineer", "policy": policy})
	return a
}

// TestO06_AWorkspaceHasATotal fills a workspace: a command may take what is left and no more, and once the workspace
// is full none is run until something was deleted.
func TestO06_AWorkspaceHasATotal(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.ShellDiskMB = 64
	h := reevetest.StartWith(t, cfg)
	free(h, "ops", "file_delete")
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
