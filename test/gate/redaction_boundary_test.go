package gate_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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

const cutKey = "-----BEGIN PRIVATE " +
	"KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nx2/z0Q==\n-----END PRIVATE KEY-----"

// cutCases are secrets that the limit of a tool may cut, and the part that must not appear.
var cutCases = []struct{ secret, never string }{
	{"hunter22-Passw0rdB-XyZ9", "hunt"},
	{"amber lynx A sleeps by the door", "ambe"},
	{makeKey("sk-"+"ant-api03-", 60), "sk-ant-"},
	{cutKey, "MIIE"},
}

// An HTTP tool cuts nothing inside a secret: not a body over its limit, an error text, a result at the wrong place, or
// an answer that broke off.
func TestG21_HTTPAnswerIsNotCutInsideASecret(t *testing.T) {
	t.Parallel()
	var status int
	var body, lost string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+len(lost)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		if lost != "" {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.Close)
	h := reevetest.StartWith(t, kit.FastConfig(t))
	kit.DefineHTTPTool(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": s.URL,
		"max_response_bytes": 1000},
		nil)
	kit.DefineHTTPTool(h, "pick", reeve.Unsafe, map[string]any{"method": "POST", "url": s.URL,
		"max_response_bytes": 1000,
		"result":             "/id"}, nil)
	kit.DefineHTTPTool(h, "look", reeve.Read, map[string]any{"method": "GET", "url": s.URL, "result": "/id"},
		map[string]any{"tier": "read_only"})
	kit.DefineHTTPTool(h, "large", reeve.Unsafe, map[string]any{"method": "POST", "url": s.URL}, nil)
	h.Agent("a", "send", "pick", "look", "large")
	for i, c := range cutCases {
		if i < 2 {
			h.Want(204, nil, "PUT", fmt.Sprintf("/api/secrets/S%d", i), kit.Object{"value": c.secret})
		}
		quoted, err := json.Marshal(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		for n := 4; n < len(c.secret); n += 1 + len(c.secret)/9 {
			filler := func(limit int) string { return strings.Repeat("! ", limit)[:limit-n] }
			try := func(what, tool string) {
				t.Helper()
				r := h.Do("POST", "/api/agents/a/calls", kit.Call{"tool": tool, "args": kit.Object{}})
				if said := string(r.Body); strings.Contains(said, c.never) || !strings.Contains(said, "! ! !") {
					t.Errorf("%s, %d of %q: %d %.4000s", what, n, c.secret, r.Status, said)
				}
			}
			status, body, lost = 200, filler(1000)+c.secret+" and more", ""
			try("over the limit", "send")
			try("over the limit, without its result", "pick")
			status, body = 400, filler(2048)+c.secret+" and more"
			try("an error", "large")
			body = `{"a":"` + filler(2048-6) + string(quoted[1:len(quoted)-1]) + `"}`
			try("an error in JSON", "large")
			status = 200
			try("a result that is not there", "look")
			status, body, lost = 200, filler(500)+c.secret[:n], c.secret[n:]
			try("a success that broke off", "send")
			try("a success that broke off, without its result", "pick")
			status = 400
			try("an error that broke off", "send")
		}
	}
	for _, m := range kit.ListThread(h, "a", "") {
		for _, c := range cutCases {
			if strings.Contains(m.Content+string(m.Metadata), c.never) {
				t.Fatalf("%q is kept: %.200s", c.never, m.Content)
			}
		}
	}
}

// Output and exceptions of Python are not cut inside a secret.
func TestG21_PythonOutputIsNotCutInsideASecret(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), OutputCap: 1 << 20,
		Python: host.PythonConfig{Timeout: host.Duration(20 * time.Second), OutputKB: 1, Cache: kit.PythonCache}})
	h.Agent("calc", "execute_python")
	for i, c := range cutCases {
		if i < 2 {
			h.Want(204, nil, "PUT", fmt.Sprintf("/api/secrets/S%d", i), kit.Object{"value": c.secret})
		}
		n := len(c.secret) - 5
		res := h.Call("calc", "execute_python",
			kit.Object{"code": fmt.Sprintf("print(('! ' * 512)[:1024 - %d] + %q + ' and more')\nraise ValueError(('! "+
				"' * "+
				"1000)[:2000 - %d] + %q + ' and more')", n, c.secret, n, c.secret)})
		if strings.Contains(res.Content, c.never) || strings.Count(res.Content, "! ! !") < 3 ||
			!strings.Contains(res.Content, `"truncated":true`) {
			t.Errorf("%q: %s", c.secret, res.Content)
		}
	}
}

// Output of a command is not cut inside a secret, not even if the command is killed.
func TestG21_CommandOutputIsNotCutInsideASecret(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.OutputCap = 1 << 20
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("ops", "shell_exec", "file_write")
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID,
		kit.Object{"kind": "engineer", "policy": kit.Object{"tools": kit.Object{"shell_exec": "allow"}}})
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	for i, c := range cutCases {
		if i < 2 {
			h.Want(204, nil, "PUT", fmt.Sprintf("/api/secrets/S%d", i), kit.Object{"value": c.secret})
		}
		n := len(c.secret) - 5
		h.Call("ops", "file_write", kit.Object{"path": "/shared/a.txt", "overwrite": true,
			"content": strings.Repeat("! ", 256<<9)[:256<<10-n] + c.secret + " and more"})
		h.Call("ops", "file_write", kit.Object{"path": "/shared/b.txt", "overwrite": true, "content": "! ! ! " +
			c.secret[:n]})
		for _, args := range []kit.Object{{"command": "cat a.txt; cat a.txt >&2"}, {"command": "cat b.txt; sleep 1000",
			"timeout_ms": 500}} {
			res := h.Call("ops", "shell_exec", args)
			if strings.Contains(res.Content, c.never) || !strings.Contains(res.Content, "! ! !") {
				t.Errorf("%q, %v: %d bytes, %.100s", c.secret, args, len(res.Content), res.Content)
			}
		}
	}
}

// fileSlice is the result of file_read for a part of a file.
type fileSlice struct {
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset"`
	Text       string `json:"text"`
}

func readFile(h *reevetest.Host, args kit.Object) (s fileSlice) {
	h.T.Helper()
	res := h.Call("clerk", "file_read", args)
	if err := json.Unmarshal([]byte(res.Content), &s); err != nil || res.IsError {
		h.T.Fatalf("%v: %+v, %v", args, res, err)
	}
	return s
}

// A secret in a file is redacted however the file is read. A slice that would begin or end inside a secret begins or
// ends elsewhere. No other text is lost or repeated.
func TestG21_FileSliceDoesNotSplitASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := kit.RunScriptedIn(t, dir, "- {text: hello}\n")
	h.Agent("clerk", "file_read", "file_search")
	shared := filepath.Join(dir, "workspaces", "default", "shared")
	if err := os.MkdirAll(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	key := "-----BEGIN PRIVATE KEY-----\n" +
		strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 11) +
		"x2/z0Q==\n-----END PRIVATE KEY-----"
	for name, c := range map[string]struct {
		secret string
		stride int
	}{
		"word":    {"plainlowercasewordthatisstored", 1},
		"spaced":  {"a \"stored\" pass phrase of some words", 1},
		"form":    {makeKey("sk_"+"live_", 30), 1},
		"address": {"db://me:correcthorse99batterystaple@h", 1},
		"key":     {key, 23},
		"long":    {strings.Repeat("Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A", 10)[:300], 11},
	} {
		if name == "word" || name == "spaced" || name == "long" {
			h.Want(204, nil, "PUT", "/api/secrets/"+name, kit.Object{"value": c.secret})
		}
		// see gives a text as it should be seen: filler that is in no secret, and marks.
		see := func(text string) string {
			return strings.ReplaceAll(text, "[REDACTED]", "#")
		}
		shown := func(where string, s fileSlice) {
			left := strings.Trim(see(s.Text), "!, \n#é")
			if name == "address" && strings.Contains("db://me:#@h", left) {
				return // only the password of an address is secret
			}
			if left != "" {
				t.Fatalf("%s, %s: %q is shown of the secret", name, where, left)
			}
		}
		write := func(before, after string) (whole, want string) {
			whole = before + " " + c.secret + " " + after
			if err := os.WriteFile(filepath.Join(shared, "a.txt"), []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			if want = before + " # " + after; name == "address" {
				want = before + " db://me:#@h " + after
			}
			return whole, want
		}
		filler := strings.Repeat("!!, é! !!!\n", 3000)
		// By next_offset alone, with the default limit and the secret across it in every way.
		for i := 0; i <= len(c.secret); i += c.stride {
			n := 12288 - 1 - i
			for filler[n]&0xc0 == 0x80 {
				n--
			}
			_, want := write(filler[:n], filler[:9000])
			var all strings.Builder
			for offset, first := 0, true; first || offset > 0; first = false {
				s := readFile(h, kit.Object{"path": "/shared/a.txt", "offset": offset})
				shown("by next_offset", s)
				if s.Offset != offset {
					t.Fatalf("%s: %d became %d", name, offset, s.Offset)
				}
				all.WriteString(see(s.Text))
				offset = s.NextOffset
			}
			if all.String() != want {
				t.Fatalf("%s, %d before the cut: the slices are not the file", name, i)
			}
		}
		// By offset and limit, wherever they are.
		whole, _ := write(filler[:1100], filler[:1100])
		for i := 1090; i <= 1110+len(c.secret); i += c.stride {
			for _, limit := range []int{1, 9, 600} {
				s := readFile(h, kit.Object{"path": "/shared/a.txt", "offset": i, "limit": limit})
				shown("by offset", s)
				if s.NextOffset != 0 && s.NextOffset <= i {
					t.Fatalf("%s: after %d comes %d", name, i, s.NextOffset)
				}
				if i >= limit {
					shown("by limit", readFile(h, kit.Object{"path": "/shared/a.txt", "offset": i - limit,
						"limit": limit}))
				}
			}
			if shown("by limit", readFile(h, kit.Object{"path": "/shared/a.txt", "limit": i})); i > len(whole) {
				break
			}
		}
		// A line that a search shows in part.
		if !strings.Contains(c.secret, "\n") {
			for i := 0; i <= min(len(c.secret), 290); i++ {
				write("needle"+strings.Repeat("! ", 150)[:300-7-i], "!!!")
				res := h.Call("clerk", "file_search", kit.Object{"query": "needle", "path": "/shared/a.txt"})
				var found struct{ Matches []struct{ Text string } }
				if err := json.Unmarshal([]byte(res.Content), &found); err != nil || len(found.Matches) != 1 {
					t.Fatalf("%+v, %v", res, err)
				}
				shown("by search", fileSlice{Text: strings.TrimSuffix(strings.TrimPrefix(found.Matches[0].Text, "needle"),
					"…")})
			}
		}
	}
}

// A search shows single lines. The part of a line that belongs to a secret over several lines is not shown.
func TestG21_SearchLineDoesNotSplitASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := kit.RunScriptedIn(t, dir, "- {text: hello}\n")
	h.Agent("clerk", "file_write", "file_search")
	h.Call("clerk", "file_write",
		kit.Object{"path": "/shared/key.pem", "content": "first line\n-----BEGIN PRIVATE KEY-----\n" +
			strings.Repeat("abcdefgh", 8) + "\n\nlast+of/the+key=\n-----END PRIVATE KEY-----\nlast line\n"})
	for query, want := range map[string]string{".*": "first line" + strings.Repeat("\n[REDACTED]", 5) + "\nlast line",
		"abc|last": "[REDACTED]\n[REDACTED]\nlast line"} {
		res := h.Call("clerk", "file_search", kit.Object{"query": query, "regexp": true})
		var found struct{ Matches []struct{ Text string } }
		if err := json.Unmarshal([]byte(res.Content), &found); err != nil {
			t.Fatalf("%+v, %v", res, err)
		}
		var lines []string
		for _, m := range found.Matches {
			lines = append(lines, m.Text)
		}
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// An output is stored without the secrets of its time. Slices do not show a secret that was stored later.
func TestG21_OutputSliceDoesNotSplitASecret(t *testing.T) {
	t.Parallel()
	secret := "a long pass phrase of many words that nobody had stored by then, and that no slice is to show"
	text := strings.Repeat("!!, é! !!!\n", 2000) + secret + strings.Repeat("!!, é! !!!\n", 2000)
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) { return text, nil }))
	h.Agent("clerk", "say", "output_read")
	kept := h.Call("clerk", "say", nil)
	h.Want(204, nil, "PUT", "/api/secrets/LATE", kit.Object{"value": secret})
	want := strings.ReplaceAll(text, secret, "[REDACTED]")
	if got := readSlices(h, "clerk", kept.Hash, 12000); got != want {
		t.Errorf("the slices are not the output")
	}
	var whole api.OutputSlice
	if h.Want(200, &whole, "GET", "/api/outputs/"+kept.Hash, nil); whole.Content != want || whole.NextOffset != 0 ||
		whole.Size != len(text) {
		t.Errorf("it is read as %d bytes, and goes on at %d", len(whole.Content), whole.NextOffset)
	}
	start := strings.Index(text, secret)
	for at := start - 10; at < start+len(secret)+10; at++ {
		var read api.OutputSlice
		h.Want(200, &read, "GET", fmt.Sprintf("/api/outputs/%s?offset=%d&limit=7", kept.Hash, at), nil)
		if left := strings.TrimFunc(strings.ReplaceAll(read.Content+string(read.Data), "[REDACTED]", ""), isFiller); left != "" || read.NextOffset <= at {
			t.Fatalf("%q is read at %d: %+v", left, at, read)
		}
		res := h.Call("clerk", "output_read", kit.Object{"hash": kept.Hash, "offset": at, "limit": 7})
		var s struct {
			Content    string `json:"content"`
			NextOffset int    `json:"next_offset"`
		}
		if res.IsError && strings.Contains(res.Message, "inside a character") {
			continue
		}
		if err := json.Unmarshal([]byte(res.Content), &s); err != nil || s.NextOffset <= at {
			t.Fatalf("%+v, %v", res, err)
		}
		if left := strings.Trim(strings.ReplaceAll(s.Content, "[REDACTED]", ""), "!, \né"); left != "" {
			t.Fatalf("%q is shown at %d", left, at)
		}
	}
}

// isFiller reports whether a character belongs to the text around a secret, also if a slice cut it.
func isFiller(r rune) bool { return strings.ContainsRune("!, \né\ufffd", r) }
