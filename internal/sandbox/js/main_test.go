package js_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
)

// lieVariable makes this binary a worker that violates the protocol.
const lieVariable = "REEVE_TEST_LIE"

func TestMain(m *testing.M) {
	if how := os.Getenv(lieVariable); how != "" {
		lie(how)
	}
	js.ServeWorker()
	os.Exit(m.Run())
}

// newPool returns a pool whose workers are this test binary. Under the race detector the workers are the program that
// is embedded in Reeve, because the detector makes stack frames too large and the tests of limits too slow.
func newPool(t testing.TB, c js.Config) *js.Pool {
	t.Helper()
	if c.Binary == "" && !instrumented {
		c.Binary = executable(t)
	}
	p := js.New(c)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func executable(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lying returns a pool whose workers violate the protocol.
func lying(t *testing.T, how string) *js.Pool {
	return newPool(t, js.Config{Binary: executable(t), Warm: -1, Confine: func(c *exec.Cmd, _ string) (func(), error) {
		c.Env = append(c.Env, lieVariable+"="+how)
		return func() {}, nil
	}})
}

// function is a host function of a test.
type function func(ctx context.Context, args []js.Arg) (any, error)

// host performs a script's calls and records its log.
type host struct {
	functions map[string]function
	mu        sync.Mutex
	lines     []string
}

func (h *host) Call(ctx context.Context, name string, args []js.Arg) (json.RawMessage, error) {
	v, err := h.functions[name](ctx, args)
	if err != nil || v == nil {
		return nil, err
	}
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	return json.Marshal(v)
}

func (h *host) Log(level, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, level+": "+text)
}

func (h *host) names() []string {
	var out []string
	for name := range h.functions {
		out = append(out, name)
	}
	return out
}

// standard are host functions that many tests use.
func standard() *host {
	return &host{functions: map[string]function{
		"echo": func(_ context.Context, args []js.Arg) (any, error) {
			if len(args) == 0 || args[0].JSON == nil {
				return nil, nil
			}
			return args[0].JSON, nil
		},
		"refuse": func(context.Context, []js.Arg) (any, error) {
			return nil, reeve.Errorf(reeve.NotFound, "no such letter").Hintf("look in the other box")
		},
		"abort": func(context.Context, []js.Arg) (any, error) {
			return nil, js.Abort(errors.New("that was a mutation"))
		},
		"never": func(ctx context.Context, _ []js.Arg) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		"testWithCallback": func(ctx context.Context, args []js.Arg) (any, error) { // calls back and doubles
			v, err := args[0].Func.Call(ctx)
			if err != nil {
				return nil, err
			}
			var n float64
			if err := json.Unmarshal(v, &n); err != nil {
				return nil, err
			}
			return 2 * n, nil
		},
	}}
}

// run runs a script with the standard functions.
func run(t *testing.T, p *js.Pool, source string, l js.Limits) (string, error) {
	t.Helper()
	return runWith(t, p, js.Script{Source: source}, l, standard())
}

func runWith(t *testing.T, p *js.Pool, s js.Script, l js.Limits, h *host) (string, error) {
	t.Helper()
	s.Functions = h.names()
	if l.Time == 0 {
		l.Time = time.Minute // no test waits for it
	}
	v, err := p.Run(context.Background(), s, l, h)
	return string(v), err
}

// want runs a script that must have the given value.
func want(t *testing.T, p *js.Pool, source, value string) {
	t.Helper()
	if got, err := run(t, p, source, js.Limits{}); err != nil || got != value {
		t.Errorf("%s\n  is %s, %v; want %s", source, got, err, value)
	}
}

// fails runs a script that must fail with an error of the given kind, and returns the error.
func fails(t *testing.T, p *js.Pool, source string, l js.Limits, kind js.Kind) *js.Error {
	t.Helper()
	got, err := run(t, p, source, l)
	var e *js.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("%.200s\n  is %s, %v (%s); want %s", source, got, err, js.KindOf(err), kind)
	}
	return e
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not say %q", text, part)
	}
}
