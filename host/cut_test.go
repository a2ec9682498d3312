package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

const cutKey = "-----BEGIN PRIVATE " +
	"KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nx2/z0Q==\n-----END PRIVATE KEY-----"

// cuts are secrets that a tool's own limit may fall in, and what must not be seen of them.
var cuts = []struct{ secret, never string }{
	{"hunter22-Passw0rdB-XyZ9", "hunt"},
	{"amber lynx A sleeps by the door", "ambe"},
	{madeKey("sk-"+"ant-api03-", 60), "sk-ant-"},
	{cutKey, "MIIE"},
}

// What an HTTP tool does not give whole is cut where no secret is: a body over its limit, an error's text, a result
// that is not where it should be, an answer that broke off.
func TestG21_NoAnswerIsCutWithinASecret(t *testing.T) {
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
	h := reevetest.StartWith(t, quick(t))
	define(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": s.URL, "max_response_bytes": 1000}, nil)
	define(h, "pick", reeve.Unsafe, map[string]any{"method": "POST", "url": s.URL, "max_response_bytes": 1000,
		"result": "/id"}, nil)
	define(h, "look", reeve.Read, map[string]any{"method": "GET", "url": s.URL, "result": "/id"},
		map[string]any{"tier": "read_only"})
	define(h, "large", reeve.Unsafe, map[string]any{"method": "POST", "url": s.URL}, nil)
	h.Agent("a", "send", "pick", "look", "large")
	for i, c := range cuts {
		if i < 2 {
			h.Want(204, nil, "PUT", fmt.Sprintf("/api/secrets/S%d", i), object{"value": c.secret})
		}
		quoted, err := json.Marshal(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		for n := 4; n < len(c.secret); n += 1 + len(c.secret)/9 {
			filler := func(limit int) string { return strings.Repeat("! ", limit)[:limit-n] }
			try := func(what, tool string) {
				t.Helper()
				r := h.Do("POST", "/api/agents/a/calls", call{"tool": tool, "args": object{}})
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
	for _, m := range thread(h, "a", "") {
		for _, c := range cuts {
			if strings.Contains(m.Content+string(m.Metadata), c.never) {
				t.Fatalf("%q is kept: %.200s", c.never, m.Content)
			}
		}
	}
}

// What Python prints beyond what is kept, and what an exception says beyond what is told, is cut where no secret is.
func TestG21_NoOutputOfPythonIsCutWithinASecret(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), OutputCap: 1 << 20,
		Python: host.PythonConfig{Timeout: host.Duration(20 * time.Second), OutputKB: 1, Cache: pythonCache}})
	h.Agent("calc", "execute_python")
	for i, c := range cuts {
		if i < 2 {
			h.Want(204, nil, "PUT", fmt.Sprintf("/api/secrets/S%d", i), object{"value": c.secret})
		}
		n := len(c.secret) - 5
		res := h.Call("calc", "execute_python",
			object{"code": fmt.Sprintf("print(('! ' * 512)[:1024 - %d] + %q + ' and more')\nraise ValueError(('! ' * "+
				"1000)[:2000 - %d] + %q + ' and more')", n, c.secret, n, c.secret)})
		if strings.Contains(res.Content, c.never) || strings.Count(res.Content, "! ! !") < 3 ||
			!strings.Contains(res.Content, `"truncated":true`) {
			t.Errorf("%q: %s", c.secret, res.Content)
		}
	}
}

// What a command prints beyond what is kept is cut where no secret is, and so is what it had printed when it was
// killed.
func TestG21_NoOutputOfACommandIsCutWithinASecret(t *testing.T) {
	t.Parallel()
	cfg := quick(t)
	cfg.OutputCap = 1 << 20
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("ops", "shell_exec", "file_write")
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID,
		object{"kind": "engineer", "policy": object{"tools": object{"shell_exec": "allow"}}})
	if reason := shellBroken(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	for i, c := range cuts {
		if i < 2 {
			h.Want(204, nil, "PUT", fmt.Sprintf("/api/secrets/S%d", i), object{"value": c.secret})
		}
		n := len(c.secret) - 5
		h.Call("ops", "file_write", object{"path": "/shared/a.txt", "overwrite": true,
			"content": strings.Repeat("! ", 256<<9)[:256<<10-n] + c.secret + " and more"})
		h.Call("ops", "file_write", object{"path": "/shared/b.txt", "overwrite": true, "content": "! ! ! " +
			c.secret[:n]})
		for _, args := range []object{{"command": "cat a.txt; cat a.txt >&2"}, {"command": "cat b.txt; sleep 1000",
			"timeout_ms": 500}} {
			res := h.Call("ops", "shell_exec", args)
			if strings.Contains(res.Content, c.never) || !strings.Contains(res.Content, "! ! !") {
				t.Errorf("%q, %v: %d bytes, %.100s", c.secret, args, len(res.Content), res.Content)
			}
		}
	}
}
