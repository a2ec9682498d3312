package js

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"reeve/internal/sandbox/child"
)

// nobody is a host without functions.
type nobody struct{}

func (nobody) Call(context.Context, string, []Arg) (json.RawMessage, error) { return nil, nil }
func (nobody) Log(string, string)                                           {}

// TestSmallWorker builds the worker program like make build, and starts it from memory like the reeve binary.
func TestSmallWorker(t *testing.T) {
	program := filepath.Join(t.TempDir(), "worker")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, path, err := child.NewMemoryProgram("worker", f)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, binary := range []string{program, path} {
		p := New(Config{Binary: binary})
		for range 3 {
			v, err := p.Run(t.Context(), Script{Source: "const a: number = 41; a + 1", Language: TypeScript}, Limits{},
				nobody{})
			if err != nil || string(v) != "42" {
				t.Errorf("%s: got %s, %v", binary, v, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWholeProgramServes checks that the program itself is the worker if there is no small program, or it does not
// start.
func TestWholeProgramServes(t *testing.T) {
	broken, err := os.Open("asset/README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	p := New(Config{})
	p.smallOnce.Do(func() {})
	if p.smallFile, p.smallPath, err = child.NewMemoryProgram("worker", broken); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		v, err := p.Run(t.Context(), Script{Source: "41 + 1"}, Limits{}, nobody{})
		if err != nil || string(v) != "42" {
			t.Errorf("got %s, %v", v, err)
		}
	}
	if !p.smallFails.Load() {
		t.Error("a README was started")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
