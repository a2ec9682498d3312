//go:build oracles

// These tests run third-party OpenAI clients against a running Reeve. Run them with make oracles. REEVE_ORACLES names
// the clients' folder. They need node, and npm to install the clients.

package chat_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"reeve/test/kit"
)

func TestOracle_OpenAIClients(t *testing.T) {
	t.Parallel()
	from := os.Getenv("REEVE_ORACLES")
	if from == "" {
		t.Fatal("REEVE_ORACLES is not set: it names the folder of outside test suites")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(from, "clients"))); err != nil {
		t.Fatal(err)
	}
	run := func(env []string, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		t.Logf("%s %v\n%s", name, args, out)
		if err != nil {
			t.Errorf("%s %v: %v", name, args, err)
		}
	}
	run(nil, "npm", "install", "--no-audit", "--no-fund")
	h := runForOpenAI(t)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "flaky", "config": kit.Object{"model": "flaky"}})
	for _, client := range []string{"openai.mjs", "vercel.mjs", "langchain.mjs"} {
		run([]string{"BASE_URL=" + h.URL + "/v1", "API_KEY=" + h.Token, "ANTHROPIC=0"}, "node", client)
	}
}

// TestOracle_OpenAIBothAPIs drives chat completions and responses with OpenAI's own client and two others.
func TestOracle_OpenAIBothAPIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/openai")); err != nil {
		t.Fatal(err)
	}
	h := runForOpenAI(t)
	for _, c := range [][]string{{"npm", "ci", "--no-audit", "--no-fund"}, {"node", "clients.mjs"}} {
		cmd := exec.CommandContext(t.Context(), c[0], c[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "BASE_URL="+h.URL+"/v1", "API_KEY="+h.Token)
		out, err := cmd.CombinedOutput()
		t.Logf("%v\n%s", c, out)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
}
