package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"reeve/host"
)

// TestMain lets the test binary act as the reeve command, so that scripts run the real program in its own process.
func TestMain(m *testing.M) {
	host.ServeWorker()
	testscript.Main(m, map[string]func(){"reeve": main})
}

// TestScripts runs the scenarios in testdata. Each has a data directory of its own; "ready" waits for the server
// started on it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("REEVE_DIR", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready":      waitUntilReady,
			"exits":      checkExitCode,
			"onejson":    checkOneJSON,
			"pick":       setFromJSON,
			"longfile":   writeLongFile,
			"sametext":   checkFileText,
			"waitstatus": waitForStatus,
			"waittext":   waitForText,
			"until":      runUntil,
		},
	})
}

// waitForStatus waits until an automation has a status and a version: waitstatus pages active 2.1
func waitForStatus(ts *testscript.TestScript, _ bool, args []string) {
	last := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		ts.Check(ts.Exec("reeve", "automations", "show", args[0], "--json"))
		var m struct{ Status, Version string }
		last = ts.ReadFile("stdout")
		if json.Unmarshal([]byte(last), &m) == nil && m.Status == args[1] && m.Version == args[2] {
			return
		}
	}
	ts.Fatalf("%s did not become %s at %s: %s", args[0], args[1], args[2], last)
}

// waitForText waits until a file that a background program writes contains a text: waittext FILE TEXT
func waitForText(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(b), args[1]) {
			return
		}
	}
	ts.Fatalf("%s does not contain %q", args[0], args[1])
}

// runUntil runs a program until its output contains a text: until done reeve summaries list clerk
func runUntil(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("%v does not print %q but %s", args[1:], args[0], ts.ReadFile("stdout"))
}

// waitUntilReady waits until the server that the script started in the background responds.
func waitUntilReady(ts *testscript.TestScript, _ bool, _ []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		url, err := host.Address(ts.Getenv("REEVE_DIR"))
		if err != nil {
			continue
		}
		if resp, err := http.Get(url + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	ts.Fatalf("the server did not become ready")
}

// checkExitCode runs a program and checks its exit code: exits 3 reeve call ...
func checkExitCode(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// checkOneJSON checks that a stream of the last command holds exactly one JSON document and nothing else.
func checkOneJSON(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
}

// setFromJSON sets a variable from the JSON that the last command printed: pick OP operations.0.id
func setFromJSON(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for _, part := range strings.Split(args[1], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			if part != "0" || len(in) == 0 {
				ts.Fatalf("no %s in the output", args[1])
			}
			v = in[0]
		}
	}
	s, ok := v.(string)
	if !ok {
		ts.Fatalf("%s is %v, not a string", args[1], v)
	}
	ts.Setenv(args[0], s)
}

// writeLongFile writes two files: the arguments of a file_write whose content is longer than one slice of an output,
// and the content. The characters have different lengths, so that slices do not end at character boundaries by chance.
func writeLongFile(ts *testscript.TestScript, _ bool, args []string) {
	content := strings.Repeat("aé€𝄞", 30_000)
	b, err := json.Marshal(map[string]string{"path": "/tmp/long.txt", "content": content})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(content), 0o600))
}

// checkFileText checks that the JSON of a file_read has the text of a file: sametext stdout long.txt
func checkFileText(ts *testscript.TestScript, _ bool, args []string) {
	var v struct{ Text string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	if want := ts.ReadFile(args[1]); v.Text != want {
		ts.Fatalf("got %d bytes that differ from the %d expected", len(v.Text), len(want))
	}
}
