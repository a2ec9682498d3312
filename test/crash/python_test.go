package crash_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startPlain starts a server on a data directory with only the variables env set.
func startPlain(ctx context.Context, t *testing.T, program string, w world, env ...string) (*process, caller) {
	t.Helper()
	f := &processGroup{alive: map[*process]bool{}}
	t.Cleanup(f.killAll)
	p, err := f.start(append([]string{"HOME=" + w.dir, "REEVE_DIR=" + w.dir, "REEVE_LISTEN=127.0.0.1:0"}, env...),
		program, "serve")
	if err == nil {
		err = p.waitUntilReady(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.owner(p, "default")
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// TestI11_MissingInterpreterIsReported builds the binary without the Python interpreter, as in a fresh clone.
// Everything except Python works, and Python calls fail with instructions.
func TestI11_MissingInterpreterIsReported(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	asset, err := filepath.Abs("../../internal/sandbox/py/asset")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for _, name := range []string{"python.gz", "python.sha256", "worker"} {
		missing[filepath.Join(asset, name)] = ""
	}
	overlay, err := json.Marshal(map[string]any{"Replace": missing})
	if err != nil {
		t.Fatal(err)
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "reeve")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", program, "reeve/cmd/reeve").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := world{dir: filepath.Join(dir, "data")}
	p, c := startPlain(ctx, t, program, w)
	var tool struct {
		Broken string `json:"broken"`
	}
	if err := c.do(ctx, "GET", "/api/tools/execute_python", nil, &tool); err != nil ||
		!strings.Contains(tool.Broken, "built without the Python interpreter") {
		t.Errorf("%+v, %v", tool, err)
	}
	if err := c.do(ctx, "POST", "/api/agents", object{"name": "calc"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := attachTools(ctx, c, "calc", "execute_python"); err != nil {
		t.Fatal(err)
	}
	err = c.do(ctx, "POST", "/api/agents/calc/calls", object{"tool": "execute_python", "args": object{"code": "1"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "UNSUPPORTED") || !strings.Contains(err.Error(), "built without") {
		t.Errorf("%v", err)
	}
	doctor := exec.CommandContext(ctx, program, "doctor")
	doctor.Env = []string{"HOME=" + dir, "REEVE_DIR=" + w.dir}
	out, err := doctor.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAIL  python: execute_python is off") ||
		!strings.Contains(string(out), "make assets build") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
