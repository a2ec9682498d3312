package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

// A diff shows some lines of a file. Those that are part of a secret are not shown in a preview, whatever else the
// file holds. That a secret changes is seen. A person who decides on the call or on a proposal is shown all but
// stored secrets: what only looks like a secret may be what will be run.
func TestG21_NoPreviewShowsAPartOfASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := kit.RunScriptedIn(t, dir, "- {text: hello}\n")
	a := h.Agent("clerk", "file_edit", "file_write", "file_delete")
	shared := filepath.Join(dir, "workspaces", "default", "shared")
	if err := os.MkdirAll(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	pem := "-----BEGIN PRIVATE KEY-----\n"
	for i := range 22 {
		pem += fmt.Sprintf("MIIEvQ%02dADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", i)
	}
	pem += "-----END PRIVATE KEY-----\n"
	phrase := "correct-horse-battery-staple"
	h.Want(204, nil, "PUT", "/api/secrets/PHRASE", kit.Object{"value": phrase})
	short, stored := "-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("MIIEvQIBADANBgkq", 4)+
		"\n-----END PRIVATE KEY-----", "amber lynx A sleeps"
	h.Want(204, nil, "PUT", "/api/secrets/STORED", kit.Object{"value": stored})
	const red = "[REDACTED]\n"
	changes := "\\ What is [REDACTED] is not the same before and after\n"
	same := func(n int) string { return strings.Repeat(" "+red, n) }
	edit := func(old, new string) kit.Call {
		return kit.Call{"tool": "file_edit", "args": kit.Object{"path": "/shared/k", "old": old, "new": new}}
	}
	moved := strings.Replace(pem, "MIIEvQ11", "NEWLINE1", 1)
	for i, c := range []struct {
		before string
		call   kit.Call
		want   string
	}{
		{"head\n" + pem + "tail line\n", edit("tail line", "TAIL"), "@@ -23,4 +23,4 @@\n" + same(3) +
			"-tail line\n+TAIL\n"},
		{"head\n" + pem + "tail line\n", edit("head", "HEAD"), "@@ -1,4 +1,4 @@\n-head\n+HEAD\n" + same(3)},
		{"head\n" + pem + "tail line\n", edit("MIIEvQ11", "NEWLINE1"), "@@ -11,7 +11,7 @@\n" + same(3) + "-" + red +
			"+" + red + same(3) + changes},
		{"head\n" + pem + "tail line\n", edit("-----BEGIN PRIVATE KEY-----", "gone"), "@@ -1,5 +1,5 @@\n head\n-" +
			red + "+gone\n" + same(3)},
		{"head\n" + pem + "tail line\n", edit("-----END PRIVATE KEY-----\n", ""), "@@ -22,5 +22,4 @@\n" + same(3) +
			"-" + red + " tail line\n"},
		{"head\n" + pem, kit.Call{"tool": "file_write", "args": kit.Object{"path": "/shared/k", "overwrite": true,
			"content": "head\n" + moved}}, "@@ -11,7 +11,7 @@\n" + same(3) + "-" + red + "+" + red + same(3) + changes},
		{"head\n" + pem, kit.Call{"tool": "file_write", "args": kit.Object{"path": "/shared/k", "overwrite": true,
			"content": "head\n"}}, "@@ -1,25 +1 @@\n head\n" + strings.Repeat("-"+red, 24)},
		{"head\n" + short + "\ntail line\n", kit.Call{"tool": "file_delete", "args": kit.Object{"path": "/shared/k"}},
			"@@ -1,5 +0,0 @@\n-head\n" + strings.Repeat("-"+red, 3) + "-tail line\n"},
		{"key is " + short + " here\nx\n", edit("x", "y"),
			"@@ -1,4 +1,4 @@\n key is [REDACTED]\n [REDACTED]\n [REDACTED] here\n-x\n+y\n"},
		{"say " + stored + " and x\n", edit("sleeps and x", "sleeps and y"),
			"@@ -1 +1 @@\n-say [REDACTED] and x\n+say [REDACTED] and y\n"},
		{"db://me:correcthorse99@h and x\n", edit("and x", "and y"),
			"@@ -1 +1 @@\n-db://me:[REDACTED]@h and x\n+db://me:[REDACTED]@h and y\n"},
		{"db: " + phrase + "\n", edit("db: c", "db: "), "@@ -1 +1 @@\n-db: [REDACTED]\n+db: [REDACTED]\n" + changes},
		{"db: " + phrase + "\n", edit("horse", "XhorXX"),
			"@@ -1 +1 @@\n-db: [REDACTED]\n+db: [REDACTED]XhorXX[REDACTED]\n" + changes},
		{"db: " + phrase + "\n", edit("rse-b", "rse\nb"),
			"@@ -1 +1,2 @@\n-db: [REDACTED]\n+db: [REDACTED]\n+[REDACTED]\n" + changes},
		{"db: " + phrase + "\n", kit.Call{"tool": "file_write", "args": kit.Object{"path": "/shared/k",
			"overwrite": true,
			"content":   "db: horse\n  horseback, cor\n"}},
			"@@ -1 +1,2 @@\n-db: [REDACTED]\n+db: [REDACTED]\n+  [REDACTED]back, cor\n" + changes},
		{"note: Summer\nfar\nfar\nfar\nfar\ndb://me:Summer2026rain@h\n", edit("note", "say"),
			"@@ -1,4 +1,4 @@\n-note: [REDACTED]\n+say: [REDACTED]\n far\n far\n far\n"},
		{"db://me:Summer2026rain@h\n", edit("db://me:", "note "),
			"@@ -1 +1 @@\n-db://me:[REDACTED]@h\n+note [REDACTED]@h\n"},
		{"  k: |\n    " + strings.ReplaceAll(short, "\n", "\n    ") + "\n    x: 1\n", edit("x: 1", "y: 2 ----"),
			"@@ -2,4 +2,4 @@\n" + "     [REDACTED]\n [REDACTED]\n [REDACTED]\n-    x: 1\n+    y: 2 ----\n"},
		{"schlüssel: größe-öäü-straße7\ndb://me:größe-öäü-straße7@h\n", edit("schl", "SCHL"),
			"@@ -1,2 +1,2 @@\n-schlüssel: [REDACTED]\n+SCHLüssel: [REDACTED]\n db://me:[REDACTED]@h\n"},
		{"db://me:correcthorse99@h\n", edit("horse99", "horse98"),
			"@@ -1 +1 @@\n-db://me:[REDACTED]@h\n+db://me:[REDACTED]@h\n" + changes},
	} {
		if err := os.WriteFile(filepath.Join(shared, "k"), []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		stored := strings.Contains(c.before, phrase) || strings.Contains(c.before, stored)
		decidable := func(where, text string) {
			t.Helper()
			for _, secret := range []string{phrase, "amber lynx A sleeps"} {
				if strings.Contains(text, secret) {
					t.Errorf("%d, %s shows a stored secret:\n%s", i, where, text)
				}
			}
			if !stored && strings.Contains(text, "[REDACTED]") {
				t.Errorf("%d, %s hides what is decided on:\n%s", i, where, text)
			}
		}
		seen := func(where, text string) {
			t.Helper()
			if _, diff, ok := strings.Cut(text, "@@"); !ok || "@@"+diff != c.want {
				t.Errorf("%d, %s:\n%s\nwant\n%s", i, where, text, c.want)
			}
		}
		set := func(policy string) {
			h.Want(200, nil, "PATCH", "/api/agents/"+a.ID,
				kit.Object{"policy": kit.Object{"tools": kit.Object{c.call["tool"].(string): policy}}})
		}
		set("allow")
		look := kit.Call{"preview_only": true}
		for k, v := range c.call {
			look[k] = v
		}
		res, p, _ := kit.TryCall(h, "clerk", look)
		if seen("a preview", res.Content); p.Code != "" {
			t.Errorf("%+v", p)
		}
		set("ask")
		kit.TryCall(h, "clerk", c.call)
		list := kit.GetInbox(h).Approvals
		if len(list) != 1 {
			t.Fatalf("%d approvals wait", len(list))
		}
		decidable("an approval", list[0].Preview)
		kit.Decide(h, list[0].ID, "deny")
		set("propose")
		kit.TryCall(h, "clerk", c.call)
		var last reeve.Proposal
		for _, p := range kit.ListProposals(h, "") {
			if p.ID > last.ID {
				last = p
			}
		}
		decidable("a proposal", last.Preview)
		h.Want(200, nil, "POST", "/api/proposals/"+last.ID+"/reject", kit.Object{})
	}
}
