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

// chatInTerminal runs a chat session with the agent bot on the input typed, and returns what the session writes to
// standard output and standard error.
func chatInTerminal(t *testing.T, h *reevetest.Host, typed string) (stdout, stderr string) {
	t.Helper()
	c, err := client.New(client.Config{URL: h.URL, Token: h.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out, errs bytes.Buffer
	session := &chatSession{app: &app{environment: environment{in: strings.NewReader(typed), out: &out, err: &errs,
		env: func(string) string { return "" }}}, client: c}
	if err := session.open(t.Context(), "bot"); err != nil {
		t.Fatal(err)
	}
	if err := session.interact(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// TestChat_Terminal checks that a terminal shows messages as they arrive and calls with their results, asks for
// approvals, and shows no control characters from the agent.
func TestChat_Terminal(t *testing.T) {
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

	stdout, stderr := chatInTerminal(t, h, "hello\n\ndanger\nmaybe\ny\n")
	if !strings.HasPrefix(stdout, "Good morning, you.\nI would write it.\n") || strings.Contains(stdout, "write_file") {
		t.Errorf("stdout:\n%s", stdout)
	}
	for _, s := range []string{"* write_file {", "? write_file needs approval", "/a.txt", "= write_file:",
		"to continue: reeve chat"} {
		if !strings.Contains(stderr, s) {
			t.Errorf("no %q in stderr:\n%s", s, stderr)
		}
	}
	if n := strings.Count(stderr, "allow? [y/n]"); n != 2 {
		t.Errorf("asked %d times:\n%s", n, stderr)
	}
	stdout, stderr = chatInTerminal(t, h, "danger\nn\nbroken\nhello\nevil\n")
	if !strings.Contains(stdout, "So be it.\n") || !strings.Contains(stderr, "! write_file:") ||
		!strings.Contains(stderr, "reeve: ") || !strings.Contains(stdout, "Good morning") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
	if strings.ContainsRune(stdout, 0x1b) {
		t.Errorf("an escape character of the agent reached the terminal: %q", stdout)
	}
}

// TestChat_CallWithUnknownOutcome checks that control characters in the message of a tool do not reach the terminal.
func TestChat_CallWithUnknownOutcome(t *testing.T) {
	var errs bytes.Buffer
	p := &pipeView{chatSession: &chatSession{app: &app{environment: environment{err: &errs}}},
		approval: &reeve.Frame{Tool: "send", Message: "server response \x1b[2J"}}
	if err := p.finish(t.Context()); err != (exitError{exitPending}) || strings.ContainsRune(errs.String(), 0x1b) ||
		!strings.Contains(errs.String(), "send waits: server response") {
		t.Errorf("%v: %q", err, errs.String())
	}
}
