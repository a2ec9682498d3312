package crash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// startOrdinary starts a server as an ordinary user, with only a lower level of confinement available.
func (r *rig) startOrdinary(t *testing.T, level string) (caller, world) {
	t.Helper()
	_, c, w := r.startOrdinaryWith(t, "REEVE_CONFINE="+level)
	return c, w
}

// startOrdinaryWith starts a server as an ordinary user.
func (r *rig) startOrdinaryWith(t *testing.T, env ...string) (*process, caller, world) {
	t.Helper()
	e := sqliteEngine(t)
	w, err := e.newEmptyWorld()
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []string{w.dir, r.program} {
		for dir := leaf; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	program, args := r.program, []string{"serve"}
	if os.Getuid() == 0 {
		if err := os.Chown(w.dir, 1234, 1234); err != nil {
			t.Fatal(err)
		}
		program, args = "setpriv", append([]string{"--reuid=1234", "--regid=1234", "--clear-groups", r.program},
			args...)
	}
	p, err := r.family.start(append(r.serverEnv(w), env...), program, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if err := p.waitUntilReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := w.owner(p, "default")
	if err != nil {
		t.Fatal(err)
	}
	return p, c, w
}

// getSandboxHealth returns the doctor's check of the sandbox.
func getSandboxHealth(t *testing.T, c caller) reeve.PartHealth {
	t.Helper()
	var up api.DoctorReport
	if err := c.do(t.Context(), "GET", "/api/doctor", nil, &up); err != nil {
		t.Fatal(err)
	}
	for _, p := range up.Checks {
		if p.Name == "sandbox" {
			return p
		}
	}
	t.Fatal("the doctor has no check of the sandbox")
	return reeve.PartHealth{}
}

// newEngineer creates an agent that may run commands without approval.
func newEngineer(ctx context.Context, c caller, settings object) error {
	if err := c.do(ctx, "POST", "/api/agents", object{"name": "dev", "kind": "engineer",
		"policy": object{"tools": object{"shell_exec": "allow"}}}, nil); err != nil {
		return err
	}
	return c.do(ctx, "POST", "/api/agents/dev/tools", object{"tool_id": "shell_exec", "config": settings}, nil)
}

// TestO05_WithoutNamespaces runs the real server as an ordinary user without user namespaces. Landlock and seccomp
// confine commands, the doctor reports this and the reason, and git branches and sessions work.
func TestO05_WithoutNamespaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, w := r.startOrdinary(t, "landlock")
	ctx := t.Context()
	health := getSandboxHealth(t, c)
	if !health.OK && !strings.Contains(health.Detail, "REEVE_CONFINE") {
		t.Log("no confinement here: ", health.Detail)
		return
	}
	if !strings.Contains(health.Detail, "Landlock and seccomp only") ||
		!strings.Contains(health.Detail, "REEVE_CONFINE") || health.Hint == "" {
		t.Errorf("the doctor reports %+v", health)
	}
	if err := newEngineer(ctx, c, object{"backend": "session"}); err != nil {
		t.Fatal(err)
	}
	run := func(command string) string {
		t.Helper()
		var res reeve.Result
		if err := c.do(ctx, "POST", "/api/agents/dev/calls",
			object{"tool": "shell_exec", "args": object{"command": command}}, &res); err != nil {
			t.Fatal(err)
		}
		return res.Content
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("as it was"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outside, 0o666); err != nil {
		t.Fatal(err)
	}
	port := c.url[strings.LastIndex(c.url, ":")+1:]
	for _, escape := range []string{"cat " + w.dir + "/owner.token", "cat " + w.dir + "/reeve.db", "ls " + w.dir,
		"cat " + outside, "echo x > " + outside, ": > " + outside, "rm " + outside, "chmod 0 " + outside,
		"touch -d 2001-01-01 " + outside, "ln " + outside + " hard", "cat /etc/shadow", "cat /proc/$PPID/environ",
		"cat /proc/$PPID/cmdline", "kill -0 $PPID", "exec 3<>/dev/tcp/127.0.0.1/" + port,
		"exec 3<>/dev/udp/127.0.0.1/53",
		"setsid true", "unshare -r true", "mount -t tmpfs x .", "ls /proc", "echo x > /var/tmp/reeve-evil",
		"echo x > /tmp/reeve-evil", "mknod dev c 1 1"} {
		if got := run(escape); strings.Contains(got, `"exit_code":0`) {
			t.Errorf("%s: %s", escape, got)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "as it was" {
		t.Errorf("outside is %q, %v", b, err)
	}
	run("cd /; sub=1; cd - ; mkdir -p sub; cd sub; X=kept")
	if got := run("echo $X; basename $PWD; (sleep 1000 &) ; echo end"); !strings.Contains(got, `kept\nsub\nend\n`) {
		t.Errorf("%s", got)
	}

	dir, err := w.repository()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(p, 1234, 1234)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/api/projects", object{"name": "site", "path": dir}},
		{"DELETE", "/api/agents/dev/tools/shell_exec", nil},
		{"POST", "/api/agents/dev/tools", object{"tool_id": "shell_exec", "config": object{"project": "site"}}},
	} {
		if err := c.do(ctx, step.method, step.path, step.body, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := run("echo new > new.txt; git log --oneline | wc -l"); !strings.Contains(got, `"commit":"`) {
		t.Fatal(got)
	}
	if got := run("rm -rf .git; echo more >> new.txt; echo x > " + dir + "/evil"); !strings.Contains(got,
		"created again") || !strings.Contains(got, `"commit":"`) {
		t.Error(got)
	}
	var list api.BranchList
	if err := c.do(ctx, "GET", "/api/branches", nil, &list); err != nil || len(list.Branches) != 1 {
		t.Fatal(err, list)
	}
	if err := c.do(ctx, "POST", "/api/branches/"+list.Branches[0].ID+"/merge", object{}, nil); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "new.txt")); err != nil || string(b) != "new\nmore\n" {
		t.Errorf("%q %v", b, err)
	}
	if err := c.do(ctx, "POST", "/api/branches/"+list.Branches[0].ID+"/discard", nil, nil); err != nil {
		t.Error(err)
	}
}

// TestO05_DisabledSandboxIsReported runs the real server without any confinement. The tool is listed as broken, calls
// are refused, and the doctor reports the reason.
func TestO05_DisabledSandboxIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.startOrdinary(t, "off")
	ctx := t.Context()
	if health := getSandboxHealth(t, c); health.OK || !strings.Contains(health.Detail, "REEVE_CONFINE=off") ||
		health.Hint == "" {
		t.Errorf("the doctor reports %+v", health)
	}
	if err := newEngineer(ctx, c, object{}); err != nil && !hasStatus(err, 501) {
		t.Fatal(err)
	}
	err := c.do(ctx, "POST", "/api/agents/dev/calls", object{"tool": "shell_exec", "args": object{"command": "true"}},
		nil)
	if !hasStatus(err, 501) {
		t.Errorf("%v", err)
	}
	if err := c.do(ctx, "POST", "/api/projects", object{"name": "site", "path": "/"}, nil); err == nil {
		t.Error("a project was created")
	}
}
