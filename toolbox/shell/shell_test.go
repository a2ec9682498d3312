package shell

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/sandbox/confine"
)

func TestMain(m *testing.M) {
	confine.Serve()
	os.Exit(m.Run())
}

// fixture runs shell_exec in a new workspace.
type fixture struct {
	t      *testing.T
	tool   reeve.Tool
	shells *memoryStore
}

func newFixture(t *testing.T) fixture {
	dir := t.TempDir()
	shells := &memoryStore{states: map[string][]byte{}}
	p := &Pack{Root: func(string) (string, error) { return dir, nil },
		Env: func(name string) (string, bool) { return "given", name == "GIVEN" }, Shells: shells}
	return fixture{t, p.Tools()[0], shells}
}

// exec checks and runs a command as the gate does. delegators are the settings of the agents that the call is made for.
func (fx fixture) exec(config string, args map[string]any, delegators ...string) (execResult, error) {
	fx.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		fx.t.Fatal(err)
	}
	inv := &reeve.Invocation{Workspace: "w", Agent: "a", Thread: "a:session:s", Args: b,
		Config: json.RawMessage(config)}
	for _, c := range append([]string{config}, delegators...) {
		inv.Config = json.RawMessage(c)
		if err := fx.tool.Check(fx.t.Context(), inv); err != nil {
			return execResult{}, err
		}
	}
	inv.Config = json.RawMessage(config)
	for _, c := range delegators {
		inv.DelegatorConfigs = append(inv.DelegatorConfigs, json.RawMessage(c))
	}
	run := fx.tool.Handler
	out, err := run(context.WithoutCancel(fx.t.Context()), inv)
	r, _ := out.(execResult)
	return r, err
}

// TestO06_ExecResults runs real commands.
func TestO06_ExecResults(t *testing.T) {
	fx := newFixture(t)
	if mode, reason := confine.Available(); mode == confine.Off {
		if !strings.Contains(fx.tool.Broken, reason) {
			t.Errorf("Broken is %q, want the reason %q", fx.tool.Broken, reason)
		}
		return
	}
	for _, c := range []struct {
		config string
		args   map[string]any
		want   execResult
	}{
		{"", map[string]any{"command": "echo out; echo err >&2; exit 3"}, execResult{ExitCode: 3, Stdout: "out\n",
			Stderr: "err\n"}},
		{"", map[string]any{"command": "mkdir -p a/b; cd a; echo x > b/c"}, execResult{}},
		{"", map[string]any{"command": "cat c", "cwd": "/shared/a/b"}, execResult{Stdout: "x\n"}},
		{"", map[string]any{"command": "cat b/c", "cwd": "a"}, execResult{Stdout: "x\n"}},
		{"", map[string]any{"command": "[[ a == a ]] && echo bash"}, execResult{Stdout: "bash\n"}},
		{"", map[string]any{"command": "echo begun; sleep 1000", "timeout_ms": 300},
			execResult{ExitCode: 137, Stdout: "begun\n", TimedOut: true}},
		{`{"timeout_ms":300}`, map[string]any{"command": "sleep 1000"}, execResult{ExitCode: 137, TimedOut: true}},
		{"", map[string]any{"command": `printf 'a\0b\377c'`}, execResult{Stdout: "a\ufffdb\ufffdc", Binary: true}},
		{"", map[string]any{"command": "nothing-of-that-name 2>/dev/null"}, execResult{ExitCode: 127}},
		{`{"env":["GIVEN"]}`, map[string]any{"command": "echo $GIVEN"}, execResult{Stdout: "given\n"}},
		{"", map[string]any{"command": "echo $GIVEN"}, execResult{Stdout: "\n"}},
		{"", map[string]any{"command": "echo still here"}, execResult{Stdout: "still here\n"}},
	} {
		got, err := fx.exec(c.config, c.args)
		if got.DurationMS = 0; err != nil || got != c.want {
			t.Errorf("%v: %+v, %v", c.args, got, err)
		}
	}
	r, err := fx.exec("", map[string]any{"command": "head -c 5000000 /dev/zero | tr '\\0' x"})
	if err != nil || !r.Truncated || r.StdoutSize != 5_000_000 || len(r.Stdout) != maxOutput || r.Binary {
		t.Errorf("%v, %d of %d", err, len(r.Stdout), r.StdoutSize)
	}
}

// TestO04_SettingsAreCheckedFirst checks that invalid settings and arguments are refused before an approval.
func TestO04_SettingsAreCheckedFirst(t *testing.T) {
	fx := newFixture(t)
	for _, c := range []struct {
		config string
		args   map[string]any
		code   reeve.Code
	}{
		{`{"backend":"disabled"}`, map[string]any{"command": "ls"}, reeve.Denied},
		{`{"deny":["rm"]}`, map[string]any{"command": "ls && rm x"}, reeve.Denied},
		{`{"allow":["ls"]}`, map[string]any{"command": "cat x"}, reeve.Denied},
		{`{"operators":[]}`, map[string]any{"command": "ls | cat"}, reeve.Denied},
		{`{"operators":["pipes"]}`, map[string]any{"command": "ls"}, reeve.Validation},
		{`{"env":["HOME"]}`, map[string]any{"command": "ls"}, reeve.Denied},
		{"", map[string]any{"command": "ls", "cwd": "/etc"}, reeve.Validation},
		{"", map[string]any{"command": "ls", "cwd": "../x"}, reeve.Validation},
		{"", map[string]any{"command": "ls", "cwd": "/shared/../vault"}, reeve.Validation},
		{"", map[string]any{"command": "ls 'x"}, reeve.Validation},
		{"", map[string]any{"command": "ls\x00"}, reeve.Validation},
	} {
		if _, err := fx.exec(c.config, c.args); reeve.CodeOf(err) != c.code {
			t.Errorf("%s %v: %v", c.config, c.args, err)
		}
	}
	if fx.tool.Tier != reeve.Privileged || fx.tool.Effect != reeve.Unsafe || len(fx.tool.ConfigSchema) == 0 {
		t.Errorf("%+v", fx.tool)
	}
}
