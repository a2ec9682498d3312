package tools_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// pythonResult is the result of execute_python.
type pythonResult struct {
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	TimedOut   bool   `json:"timed_out"`
	Truncated  bool   `json:"truncated"`
	Binary     bool   `json:"binary"`
	StdoutSize int64  `json:"stdout_bytes"`
	Error      *struct {
		Type string `json:"type"`
		Line int    `json:"line"`
	} `json:"error"`
}

// runPython runs code with execute_python over REST.
func runPython(h *reevetest.Host, agent, code string) (r pythonResult) {
	h.T.Helper()
	res := h.Call(agent, "execute_python", map[string]any{"code": code})
	if err := json.Unmarshal([]byte(res.Content), &r); err != nil {
		h.T.Fatalf("%s: %v", res.Content, err)
	}
	return r
}

// Calls of execute_python, as a client makes them.
func TestI11_PythonThroughTheGate(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), OutputCap: 1 << 20,
		Python: host.PythonConfig{Timeout: host.Duration(20 * time.Second), OutputKB: 64, Cache: kit.PythonCache}})
	var tool reeve.Tool
	h.Want(200, &tool, "GET", "/api/tools/execute_python", nil)
	if tool.Broken != "" || tool.Effect != reeve.Read || tool.Tier != reeve.ReadOnly || tool.Category != "code" ||
		tool.Capability != "" {
		t.Fatalf("%+v", tool)
	}
	h.Agent("calc", "execute_python", "write_file")
	if r := runPython(h, "calc", "import json, re, typing\nprint(json.dumps({'result': 42}))"); r.Stdout != "{\"result\": 42}\n" ||
		r.ExitCode != 0 || r.Stderr != "" || r.Error != nil {
		t.Errorf("%+v", r)
	}
	if r := runPython(h, "calc", "print('out')\nimport socket"); r.Stdout != "out\n" || r.ExitCode != 1 ||
		r.Error == nil || r.Error.Type != "ModuleNotFoundError" || r.Error.Line != 2 ||
		!strings.Contains(r.Stderr, "json, re and typing") {
		t.Errorf("%+v", r)
	}
	h.Call("calc", "write_file", map[string]any{"path": "/plan.md", "content": "secret plan"})
	if r := runPython(h, "calc", "print(open('/plan.md').read())"); r.ExitCode != 1 ||
		strings.Contains(r.Stdout+r.Stderr, "secret plan") {
		t.Errorf("%+v", r)
	}
	if r := runPython(h, "calc", "print('x' * 10_000_000)"); !r.Truncated || len(r.Stdout) != 64<<10 ||
		r.StdoutSize != 10_000_001 || r.ExitCode != 0 {
		t.Errorf("%d of %d, truncated %t", len(r.Stdout), r.StdoutSize, r.Truncated)
	}
	if r := runPython(h, "calc", "print('é' * 100_000)"); !r.Truncated || r.Binary || !strings.HasSuffix(r.Stdout, "éé") {
		t.Errorf("binary %t, ends with %q", r.Binary, r.Stdout[len(r.Stdout)-4:])
	}
	for _, c := range []struct {
		args map[string]any
		code reeve.Code
	}{
		{map[string]any{}, reeve.Validation},
		{map[string]any{"code": "1", "timeout": 3}, reeve.Validation},
		{map[string]any{"code": strings.Repeat("#", 1<<20+1)}, reeve.Validation},
	} {
		if _, p, _ := kit.TryCall(h, "calc", kit.Call{"tool": "execute_python", "args": c.args}); p.Code != c.code {
			t.Errorf("%.40v: %+v", c.args, p)
		}
	}
	if r := runPython(h, "calc", strings.Repeat("x = 1 # filler\n", 1<<16)+"print(x)"); r.Stdout != "1\n" &&
		(r.Error == nil || r.Error.Type != "MemoryError") {
		t.Errorf("1 MB of code: %+v", r)
	}
	if r := runPython(h, "calc", "print('\x00')"); r.ExitCode != 1 || r.Error.Type != "SyntaxError" {
		t.Errorf("a NUL: %+v", r)
	}
	if r := runPython(h, "calc", "print(chr(0), chr(27))"); r.Stdout != "\ufffd \x1b\n" || !r.Binary {
		t.Errorf("NUL printed: %+v", r)
	}
	h.Agent("other", "read_file")
	if _, p, _ := kit.TryCall(h, "other", kit.Call{"tool": "execute_python", "args": map[string]any{"code": "1"}}); p.Code != reeve.NotFound {
		t.Errorf("not attached: %+v", p)
	}
}

// With the default limit of 5 seconds an endless loop ends within 5.5 seconds. A busy machine gets three attempts.
// Server and agent continue.
func TestI11_AnEndlessLoopIsEndedInTime(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Python: host.PythonConfig{Cache: kit.PythonCache}})
	h.Agent("calc", "execute_python")
	runPython(h, "calc", "1") // the interpreter's first start is not the run's time
	const limit = 5500 * time.Millisecond
	fastest := time.Hour
	for try := 0; try < 3 && fastest > limit; try++ {
		begin := time.Now()
		r := runPython(h, "calc", "print('begun')\nwhile True: pass")
		took := time.Since(begin)
		if took < 5*time.Second || !r.TimedOut || r.ExitCode != 137 || r.Stdout != "begun\n" {
			t.Errorf("after %s: %+v", took, r)
		}
		fastest = min(fastest, took)
	}
	if fastest > limit {
		t.Errorf("the fastest of three took %s", fastest)
	}
	if r := runPython(h, "calc", "print('next')"); r.Stdout != "next\n" {
		t.Errorf("%+v", r)
	}
}

// Operators can disable Python, and every surface says so.
func TestI11_OperatorsSwitchItOff(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Python: host.PythonConfig{Disabled: true}})
	h.Agent("calc", "execute_python")
	_, p, _ := kit.TryCall(h, "calc", kit.Call{"tool": "execute_python", "args": map[string]any{"code": "1"}})
	if p.Code != reeve.Unsupported || !strings.Contains(p.Detail, "disabled in the server's configuration") {
		t.Errorf("%+v", p)
	}
	var up api.DoctorReport
	h.Want(200, &up, "GET", "/api/doctor", nil)
	found := false
	for _, c := range up.Checks {
		found = found || c.Name == "python" && c.OK && strings.Contains(c.Detail, "off")
	}
	if !found {
		t.Errorf("%+v", up)
	}
	for setting, c := range map[string]host.PythonConfig{
		"python.timeout": {Timeout: host.Duration(time.Hour)}, "python.memory_mb": {MemoryMB: 3},
		"python.output_kb": {OutputKB: -1}, "python.max_runs": {MaxRuns: 1000},
	} {
		if _, err := host.New(t.Context(), host.Config{Dir: t.TempDir(), Python: c}); reeve.CodeOf(err) != reeve.Validation ||
			!strings.Contains(err.Error(), setting) {
			t.Errorf("%s: %v", setting, err)
		}
	}
	if made, err := filepath.Glob(filepath.Join(h.Dir(), "python")); err != nil || len(made) > 0 {
		t.Errorf("a server without Python made %v", made)
	}
}
