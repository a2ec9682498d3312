package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A file may be called whatever it likes: names that only look like a key are shown, so that the file can be opened,
// and lists come to their end. Those that hold a stored secret are not, and lists come to their end all the same.
func TestG21_NamesOfFilesAreShown(t *testing.T) {
	t.Parallel()
	const stored = "correct horse 99"
	h := reevetest.Start(t)
	h.Agent("clerk", "file_write", "file_read", "file_list", "file_search", "file_edit", "file_delete")
	h.Want(204, nil, "PUT", "/api/secrets/S", kit.Object{"value": stored})
	list := func(path string) (names []string) {
		after := ""
		for page := 0; ; page++ {
			res := h.Call("clerk", "file_list", kit.Object{"path": path, "after": after})
			var l struct {
				Entries []struct{ Name string }
				Total   int
				Next    string
			}
			if err := json.Unmarshal([]byte(res.Content), &l); err != nil || len(names) > l.Total ||
				strings.Contains(l.Next, "REDACTED") {
				t.Fatalf("page %d: %+v, %v", page, res, err)
			}
			for _, e := range l.Entries {
				names = append(names, e.Name)
			}
			if after = l.Next; after == "" {
				return names
			}
		}
	}
	write := func(path string) {
		if res := h.Call("clerk", "file_write", kit.Object{"path": path, "content": "needle"}); res.IsError ||
			strings.Contains(res.Content, path) == strings.Contains(path, stored) {
			t.Fatalf("%+v", res)
		}
	}
	for _, name := range []string{"1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv.pdf", "My 1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv (1).pdf",
		"password=hunter22.txt", "ghp_iK2ZWeqhFWCEPyYnaB3dEfGh1JkLmN0pQrSt"} {
		path := "/shared/one/" + name
		write(path)
		if got := list("/shared/one"); len(got) != 1 || got[0] != name {
			t.Errorf("%s is listed as %q", name, got)
		}
		for tool, args := range map[string]kit.Object{"file_search": {"query": "needle", "path": "/shared/one"},
			"file_read": {"path": path}} {
			if res := h.Call("clerk", tool, args); res.IsError || !strings.Contains(res.Content, path) {
				t.Errorf("%s: %+v", tool, res)
			}
		}
		h.Call("clerk", "file_delete", kit.Object{"path": path})
	}
	if res := h.Call("clerk", "file_read",
		kit.Object{"path": "/shared/one/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv.pdf"}); !strings.HasSuffix(res.Message,
		"/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv.pdf") {
		t.Errorf("%+v", res)
	}
	for i := range 250 {
		write(fmt.Sprintf("/shared/many/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv%03d.pdf", i))
		write(fmt.Sprintf("/shared/known/%s %03d.pdf", stored, i))
	}
	many := list("/shared/many")
	for i, name := range many {
		if name != fmt.Sprintf("1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv%03d.pdf", i) {
			t.Fatalf("%d is %s", i, name)
		}
	}
	known := list("/shared/known")
	for i, name := range known {
		if name != fmt.Sprintf("[REDACTED] %03d.pdf", i) {
			t.Fatalf("%d is %s", i, name)
		}
	}
	if len(many) != 250 || len(known) != 250 {
		t.Errorf("%d and %d names", len(many), len(known))
	}
}

// What the server itself lives on is nobody's to read, from its first start on: the owner's token, and the key that
// seals secrets.
func TestG21_WhatTheServerLivesOnIsNotShown(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Agent("clerk", "file_write")
	for _, name := range []string{"owner.token", "secret.key"} {
		b, err := os.ReadFile(filepath.Join(h.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		value := strings.TrimSpace(string(b))
		if res := h.Call("clerk", "file_write", kit.Object{"path": "/shared/" + value, "content": "x"}); res.IsError ||
			strings.Contains(res.Content, value) {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// TestG21_KeysOfTheConfigAreNotShown: a provider's key that the configuration holds is known like one in the
// environment. A word that a server of one's own is content with is no secret.
func TestG21_KeysOfTheConfigAreNotShown(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Models.Servers = map[string]model.Endpoint{"mine": {URL: "http://127.0.0.1:1",
		Key: "correct-horse-battery-staple"}, "local": {URL: "http://127.0.0.1:1", Key: "not-needed"}}
	h := reevetest.StartWith(t, cfg)
	h.Agent("clerk", "file_write", "file_read")
	h.Call("clerk", "file_write",
		kit.Object{"path": "/shared/env", "content": "MINE correct-horse-battery-staple\nLOCAL not-needed\n"})
	if res := h.Call("clerk", "file_read", kit.Object{"path": "/shared/env"}); strings.Contains(res.Content, "horse") ||
		!strings.Contains(res.Content, "LOCAL not-needed") {
		t.Errorf("%+v", res)
	}
}
