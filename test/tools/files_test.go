package tools_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Slices of a file join to it, whatever its characters and the slice length.
func TestO01_SlicesOfAFileJoin(t *testing.T) {
	t.Parallel()
	for _, most := range kit.OutputCaps {
		dir := t.TempDir()
		h := reevetest.StartWith(t, host.Config{Dir: dir, OutputCap: most})
		a := h.Agent("clerk", "file_write", "file_read", "file_list")
		for i, whole := range []string{strings.Repeat("日", 6000), strings.Repeat("\x01\x02", 2000),
			strings.Repeat("a", 20_000), kit.RandomText(5000)} {
			path := fmt.Sprintf("/shared/%d.txt", i)
			kit.MustBeWhole(t, h.Call(a.ID, "file_write", kit.Object{"path": path, "content": whole}))
			args, joined := kit.Object{"path": path}, ""
			for next := int64(1); next > 0; {
				page := kit.DecodeResult[struct {
					Text   string
					Offset int64
					Next   int64 `json:"next_offset"`
				}](t, kit.MustBeWhole(t, h.Call(a.ID, "file_read", args)))
				if page.Offset != int64(len(joined)) || page.Text == "" {
					t.Fatalf("%s: %d bytes at %d, after %d", path, len(page.Text), page.Offset, len(joined))
				}
				joined, next = joined+page.Text, page.Next
				args["offset"] = next
			}
			if joined != whole {
				t.Errorf("%s: %d bytes of %d", path, len(joined), len(whole))
			}
		}
	}
}

// All entries of a folder are listed page by page, however small the output cap.
func TestO01_AFolderInPages(t *testing.T) {
	t.Parallel()
	for _, most := range kit.OutputCaps {
		dir := t.TempDir()
		h := reevetest.StartWith(t, host.Config{Dir: dir, OutputCap: most})
		a := h.Agent("clerk", "file_list", "file_write")
		kit.MustBeWhole(t, h.Call(a.ID, "file_write", kit.Object{"path": "/shared/many/first", "content": "x"}))
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "many"))
		if err != nil || len(found) != 1 {
			t.Fatalf("where it is: %v %v", found, err)
		}
		want := map[string]bool{"first": true}
		for i := range 150 {
			name := fmt.Sprint(i, strings.Repeat("日", 1+rand.IntN(70)))
			want[name] = true
			if err := os.WriteFile(filepath.Join(found[0], name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for after, more := "", true; more; {
			page := kit.DecodeResult[struct {
				Entries []struct{ Name string }
				Total   int
				More    bool
			}](t, kit.MustBeWhole(t, h.Call(a.ID, "file_list", kit.Object{"path": "/shared/many", "after": after})))
			if page.Total != 151 || len(page.Entries) == 0 {
				t.Fatalf("after %q: %+v", after, page)
			}
			for _, e := range page.Entries {
				if !want[e.Name] {
					t.Errorf("%s is given twice", e.Name)
				}
				delete(want, e.Name)
				after = e.Name
			}
			more = page.More
		}
		if len(want) > 0 {
			t.Errorf("%d are not listed", len(want))
		}
	}
}

// A list shows a file as a file, and reading it returns what was written.
func TestO02_SessionFileIsListedAsAFile(t *testing.T) {
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
