package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve/reevetest"
	"reeve/test/kit"
)

// A list of what is a file says so, and what is written is what is read.
func TestO02_ASessionsFileIsShownAsOne(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Agent("clerk")
	write := func(path, content string) (status int, said string) {
		r := h.Do("POST", "/api/agents/clerk/calls",
			kit.Object{"tool": "write_file", "args": kit.Object{"path": path, "content": content}})
		return r.Status, string(r.Body)
	}
	refused := func(path, content, why string) {
		t.Helper()
		if status, said := write(path, content); status == http.StatusOK &&
			!strings.Contains(said, `"is_error":true`) || !strings.Contains(said, why) {
			t.Errorf("%s: %d %s", path, status, said)
		}
	}
	for _, path := range []string{"/a.txt", "/d/b.txt", "/a.txt"} {
		if status, said := write(path, "hello"); status != http.StatusOK || !strings.Contains(said, "Wrote") {
			t.Fatalf("%s: %s", path, said)
		}
	}
	refused("/n.txt", "a\x00b", "NUL")
	if res := h.Call("clerk", "read_file", kit.Object{"path": "/a.txt"}); res.Content != "hello" {
		t.Errorf("%+v", res)
	}
	for path, want := range map[string]string{"/a.txt": "/a.txt is a file of 5 bytes",
		"/a.txt/": "/a.txt is a file of 5 bytes", "/d": "/d/b.txt (5 bytes)", "/none": "/none is empty",
		"/": "[DIR]  /d"} {
		if res := h.Call("clerk", "list_files", kit.Object{"path": path}); !strings.Contains(res.Content, want) {
			t.Errorf("%s: %+v", path, res)
		}
	}
}
