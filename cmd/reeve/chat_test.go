package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/client"
	"reeve/host"
	"reeve/reevetest"
)

// person is a talk at a terminal: what is typed, and what is shown.
func person(t *testing.T, h *reevetest.Host, typed string) (shown, beside string) {
	t.Helper()
	c, err := client.New(client.Config{URL: h.URL, Token: h.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out, errs bytes.Buffer
	talk := &talk{app: &app{surroundings: surroundings{in: strings.NewReader(typed), out: &out, err: &errs,
		env: func(string) string { return "" }}}, client: c}
	if err := talk.open(t.Context(), "bot"); err != nil {
		t.Fatal(err)
	}
	if err := talk.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// At a terminal the words come as they are said, calls are shown with what they came to, and what needs approval asks
// for it.
func TestChat_AtATerminal(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte(`answers:
- {when: hello, text: "Good morning, you."}
- {when: danger, text: "I would write it.", calls: [{name: write_file, args: {path: /a.txt, content: x}}]}
- {when: {result: written}, text: "It is written."}
- {when: {tool: write_file}, text: "So be it."}
- {when: broken, fail: {status: 400, message: no}}
- {when: evil, text: "a \e[2J b"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", script
	h := reevetest.Run(t, cfg)
	h.Agent("bot", "write_file")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
		map[string]any{"policy": map[string]any{"tools": map[string]string{"write_file": "ask"}}})

	shown, beside := person(t, h, "hello\n\ndanger\nmaybe\ny\n")
	if !strings.HasPrefix(shown, "Good morning, you.\nI would write it.\n") || strings.Contains(shown, "write_file") {
		t.Errorf("shown:\n%s", shown)
	}
	for _, s := range []string{"* write_file {", "? write_file waits for you", "/a.txt", "= write_file:",
		"go on with: reeve chat"} {
		if !strings.Contains(beside, s) {
			t.Errorf("%q is not beside it:\n%s", s, beside)
		}
	}
	if n := strings.Count(beside, "allow it? [y/n]"); n != 2 {
		t.Errorf("asked %d times:\n%s", n, beside)
	}
	shown, beside = person(t, h, "danger\nn\nbroken\nhello\nevil\n")
	if !strings.Contains(shown, "So be it.\n") || !strings.Contains(beside, "! write_file:") ||
		!strings.Contains(beside, "reeve: ") || !strings.Contains(shown, "Good morning") {
		t.Errorf("shown:\n%s\nbeside:\n%s", shown, beside)
	}
	if strings.ContainsRune(shown, 0x1b) {
		t.Errorf("the terminal was written to by the agent: %q", shown)
	}
}

// What a tool said of a call that waits for a person's word writes nothing to the terminal either.
func TestChat_ACallOfUnknownOutcome(t *testing.T) {
	var errs bytes.Buffer
	p := &piped{talk: &talk{app: &app{surroundings: surroundings{err: &errs}}},
		waits: &reeve.Frame{Tool: "send", Message: "the line said \x1b[2J"}}
	if err := p.end(t.Context()); err != (silent{exitNotDone}) || strings.ContainsRune(errs.String(), 0x1b) ||
		!strings.Contains(errs.String(), "send waits: the line said") {
		t.Errorf("%v: %q", err, errs.String())
	}
}
