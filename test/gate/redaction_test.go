package gate_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	seq "slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// harmlessData is data that earlier versions damaged: page tokens, hashes, lock files, ids, public keys and values
// after words such as password that are not stored secrets.
var harmlessData = map[string]string{
	"page token": "CAUQAA-Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A",
	"go.sum":     "github.com/google/uuid v1.6.0 h1:NIvaJDMOsjHA8n1jAhLSgzrAzy1Hgr+hNrb57e+94F0=",
	"npm lock":   `"integrity": "sha512-` + strings.Repeat("aB3+/x9Q", 10) + `Zg=="`,
	"commit":     "da39a3ee5e6b4b0d3255bfef95601890afd80709",
	"access id":  "AKIAIOSFODNN7EXAMPLE",
	"password":   "password=correcthorse99",
	"secret":     `{"client_secret":"s3cr3t-v4lue-9"}`,
	"public key": "-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("MIIBIjANBgkqhkiG", 4) +
		"\n-----END PUBLIC KEY-----\n",
}

// A script passes a page token to the next call, and an HTTP tool and a file read return the same data. A stored secret
// passes none of them.
func TestG21_DataPassesAScriptAnHTTPToolAndAFileReadUnchanged(t *testing.T) {
	t.Parallel()
	const stored = "plain stored phrase 7"
	var mu sync.Mutex
	var pages []string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		pages = append(pages, r.URL.Query().Get("page"))
		w.Header().Set("Content-Type", "application/json")
		b, _ := json.Marshal(map[string]any{"data": harmlessData, "secret": stored}) // strings can always be encoded
		_, _ = w.Write(b)                                                            // the client may have disconnected
	}))
	t.Cleanup(far.Close)
	h := reevetest.StartWith(t, kit.FastConfig(t))
	h.Want(204, nil, "PUT", "/api/secrets/S", kit.Object{"value": stored})
	h.Want(201, nil, "POST", "/api/tools", kit.Call{"id": "page_list", "kind": "http", "description": "Lists.",
		"effect": "read",
		"tier":   "read_only", "category": "page", "parameters": kit.Call{"type": "object",
			"properties": kit.Call{"page": kit.Call{"type": "string"}}, "additionalProperties": false},
		"spec": kit.Call{"method": "GET", "url": far.URL, "query": kit.Call{"page": "page"}}})
	h.Agent("clerk", "page_list", "file_write", "file_read")

	res := h.Call("clerk", "page_list", kit.Object{"page": "first"})
	var got struct {
		Data   map[string]string
		Secret string
	}
	if err := json.Unmarshal([]byte(res.Content), &got); err != nil {
		t.Fatalf("%v: %s", err, res.Content)
	}
	for name, text := range harmlessData {
		if got.Data[name] != text {
			t.Errorf("%s came back as %q", name, got.Data[name])
		}
		h.Call("clerk", "file_write", kit.Object{"path": "/shared/data", "overwrite": true, "content": text + " " +
			stored})
		var read struct{ Text string }
		res := h.Call("clerk", "file_read", kit.Object{"path": "/shared/data"})
		if err := json.Unmarshal([]byte(res.Content), &read); err != nil || read.Text != text+" [REDACTED]" {
			t.Errorf("%s was read as %q, %v", name, read.Text, err)
		}
	}
	if got.Secret != reeve.Redacted || strings.Contains(res.Content, stored) {
		t.Errorf("a stored secret passes: %s", res.Content)
	}

	a := &kit.Automation{Host: h, T: t, Name: "pager"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": []string{"page_list"}, "source": `
		const first = await Page.list({ page: 'one' });
		for (const name of Object.keys(first.data).sort()) await Page.list({ page: first.data[name] });`})
	mu.Lock()
	pages = nil
	mu.Unlock()
	a.MustComplete()
	mu.Lock()
	defer mu.Unlock()
	want := []string{"one"}
	for _, name := range seq.Sorted(maps.Keys(harmlessData)) {
		want = append(want, harmlessData[name])
	}
	if strings.Join(pages, "|") != strings.Join(want, "|") {
		t.Errorf("the script handed on %q, want %q", pages, want)
	}
}

// A value after password= is masked in the output of a command, unless the settings of the agent show it. Stored
// secrets and keys of known formats are always masked.
func TestG21_NamedValuesAreMaskedInShellOutputOnly(t *testing.T) {
	t.Parallel()
	key := makeKey("sk_"+"live_", 30)
	for _, show := range []bool{false, true} {
		h := reevetest.StartWith(t, kit.FastConfig(t))
		h.Want(204, nil, "PUT", "/api/secrets/S", kit.Object{"value": "plain stored phrase 7"})
		a := h.Agent("ops", "file_write", "file_read")
		h.Want(200, nil, "PATCH", "/api/agents/"+a.ID,
			kit.Object{"kind": "engineer", "policy": kit.Object{"tools": kit.Object{"shell_exec": "allow"}}})
		config := kit.Object{}
		if show {
			config["show_named_values"] = true
		}
		h.Want(201, nil, "POST", "/api/agents/"+a.ID+"/tools", kit.Object{"tool_id": "shell_exec", "config": config})
		if reason := kit.ShellUnavailable(h); reason != "" {
			t.Log("no confinement here: ", reason)
			return
		}
		text := "password=correcthorse99 key=" + key + " plain stored phrase 7 token " + harmlessData["page token"] + "\n"
		h.Call("ops", "file_write", kit.Object{"path": "/shared/env", "content": text})
		var ran struct{ Stdout, Stderr string }
		res := h.Call("ops", "shell_exec", kit.Object{"command": "cat env; cat env >&2"})
		if err := json.Unmarshal([]byte(res.Content), &ran); err != nil {
			t.Fatalf("%v: %+v", err, res)
		}
		want := "password=[REDACTED] key=[REDACTED] [REDACTED] token " + harmlessData["page token"] + "\n"
		if show {
			want = strings.Replace(want, "[REDACTED]", "correcthorse99", 1)
		}
		if ran.Stdout != want || ran.Stderr != want {
			t.Errorf("shown: %v, printed %q and %q", show, ran.Stdout, ran.Stderr)
		}
		res = h.Call("ops", "file_read", kit.Object{"path": "/shared/env"})
		if !strings.Contains(res.Content, "password=correcthorse99 ") {
			t.Errorf("a file read masks by name: %s", res.Content)
		}
	}
}

// An agent reads a file with a secret and writes it back as it was shown.
func TestG21_RedactionMarkIsNotWrittenBack(t *testing.T) {
	t.Parallel()
	const stored = "plain stored phrase 7"
	var sent atomic.Int32
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sent.Add(1) }))
	t.Cleanup(far.Close)
	h := reevetest.StartWith(t, kit.FastConfig(t))
	kit.DefineHTTPTool(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": far.URL}, nil)
	kit.DefineHTTPTool(h, "look", reeve.Read, map[string]any{"method": "POST", "read": true, "url": far.URL},
		map[string]any{"tier": "read_only"})
	h.Want(204, nil, "PUT", "/api/secrets/S", kit.Object{"value": stored})
	h.Agent("clerk", "send", "look", "file_write", "file_edit", "file_read", "file_search")
	file := filepath.Join(h.Dir(), "workspaces", "default", "shared", "env")
	h.Call("clerk", "file_write", kit.Object{"path": "/shared/env", "content": "KEY=" + stored + "\nPORT=80\n"})
	var read struct{ Text string }
	res := h.Call("clerk", "file_read", kit.Object{"path": "/shared/env"})
	if err := json.Unmarshal([]byte(res.Content), &read); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(read.Text, "80", "81", 1)
	write := kit.Object{"path": "/shared/env", "overwrite": true, "content": changed}
	for name, c := range map[string]kit.Call{
		"write":   {"tool": "file_write", "args": write},
		"preview": {"tool": "file_write", "args": write, "preview_only": true},
		"edit":    {"tool": "file_edit", "args": kit.Object{"path": "/shared/env", "old": "PORT=80", "new": read.Text}},
		"nested":  {"tool": "send", "args": kit.Object{"list": []any{kit.Object{"text": read.Text}}}},
		"name":    {"tool": "send", "args": kit.Object{read.Text: 1}},
	} {
		res, p, status := kit.TryCall(h, "clerk", c)
		said := res.Message + p.Detail
		if res.Code != reeve.Validation && p.Code != reeve.Validation ||
			!strings.Contains(said, "stands for a redacted secret") || !strings.Contains(res.Hint+p.Hint, "anchor") {
			t.Errorf("%s: %d %+v %+v", name, status, res, p)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "KEY="+stored+"\nPORT=80\n" || sent.Load() != 0 {
		t.Errorf("the file is %q, %v; %d requests were sent", b, err, sent.Load())
	}
	// An edit around the masked text, and calls that change nothing, are let through.
	for _, c := range []kit.Call{
		{"tool": "file_edit", "args": kit.Object{"path": "/shared/env", "old": "PORT=80", "new": "PORT=81"}},
		{"tool": "file_search", "args": kit.Object{"query": reeve.Redacted, "path": "/shared/env"}},
		{"tool": "look", "args": kit.Object{"q": reeve.Redacted}},
		{"tool": "file_write", "args": kit.Object{"path": "/shared/other", "content": "the word [redacted]"}},
	} {
		if res, p, status := kit.TryCall(h, "clerk", c); status != 200 || res.IsError {
			t.Errorf("%v: %d %+v %+v", c, status, res, p)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "KEY="+stored+"\nPORT=81\n" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// A confirmation link is read through two HTTP tools.
func TestG21_ATokenLosesItsSignatureUnlessTheToolPassesIt(t *testing.T) {
	t.Parallel()
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(`{"sub":"12345678"}`)) + "."
	link := "https://example.com/confirm?t=" + claims + makeKey("", 43)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, link) // the client may have disconnected
	}))
	t.Cleanup(far.Close)
	h := reevetest.StartWith(t, kit.FastConfig(t))
	read := map[string]any{"tier": "read_only"}
	kit.DefineHTTPTool(h, "plain", reeve.Read, map[string]any{"method": "GET", "url": far.URL}, read)
	kit.DefineHTTPTool(h, "passing", reeve.Read, map[string]any{"method": "GET", "url": far.URL, "pass_tokens": true},
		read)
	h.Agent("clerk", "plain", "passing")
	if got := h.Call("clerk", "plain", nil).Content; got != "https://example.com/confirm?t="+claims+reeve.Redacted {
		t.Errorf("the signature passes: %s", got)
	}
	if got := h.Call("clerk", "passing", nil).Content; got != link {
		t.Errorf("the token does not pass: %s", got)
	}
}

// A value that is too short to be redacted cannot be stored as a secret.
func TestG21_AShortSecretIsRefused(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	for value, why := range map[string]string{"abcde": "too short", "abcde\n": "too short",
		"key [REDACTED]": "replaces redacted secrets"} {
		if r := h.Want(400, nil, "PUT", "/api/secrets/S", kit.Object{"value": value}); !strings.Contains(string(r.Body),
			why) {
			t.Errorf("%q: %s", value, r.Body)
		}
	}
	h.Want(204, nil, "PUT", "/api/secrets/S", kit.Object{"value": "abcdef"})
}

// The logger of the server masks secrets and named values.
func TestG21_TheLogMasksSecretsAndNamedValues(t *testing.T) {
	t.Parallel()
	var log kit.LogBuffer
	cfg := kit.FastConfig(t)
	cfg.Log, cfg.LogTo, cfg.MetricsToken = nil, &log, "metrics-token-of-this-server"
	key := makeKey("sk_"+"live_", 30)
	crash := kit.ToolReturning("crash", func() (any, error) {
		panic("password=correcthorse99 " + key + " " + cfg.MetricsToken + " at line 7")
	})
	h := reevetest.StartWith(t, cfg, crash)
	h.Agent("clerk", "crash")
	kit.TryCall(h, "clerk", kit.Call{"tool": "crash"})
	text := log.String()
	if !strings.Contains(text, "tool crashed") || !strings.Contains(text, "at line 7") {
		t.Fatalf("the log says %s", text)
	}
	for _, secret := range []string{"correcthorse99", key, cfg.MetricsToken} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the log: %s", secret, text)
		}
	}
}
