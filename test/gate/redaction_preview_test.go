package gate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A diff shows some lines of a file. A preview hides lines that are part of a secret, but shows that a secret changes.
// An approver sees everything except stored secrets, because text that only looks like a secret may be executed.
func TestG21_PreviewShowsNoPartOfASecret(t *testing.T) {
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
	changes := "\\ The text shown as [REDACTED] changes\n"
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

// An undo restores the exact bytes, secrets included. Viewers see it redacted. An approver sees text that only looks
// like a secret, but no stored secret.
func TestG21_AnUndoIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		const stored, told = "amber-lantern-willow", "Summer2026rain"
		const title, note = "Use " + stored, "postgres://me:" + told + "@db.example.com"
		h := start()
		var looker api.NewToken
		h.Want(201, &looker, "POST", "/api/tokens", kit.Object{"name": "looks on", "user": "bob", "role": "viewer"})
		viewer := []string{"Authorization", "Bearer " + looker.Token}
		h.Want(204, nil, "PUT", "/api/secrets/LAMP", kit.Object{"value": stored})
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
		var task reeve.Task
		h.Want(201, &task, "POST", "/api/journal/tasks", kit.Object{"category_id": gym.ID, "title": title,
			"description": note})
		a := h.Agent("coach", "update_task_fields")
		set := func(policy string) {
			h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"kind": "planner", "categories": []string{gym.ID},
				"policy": kit.Object{"tools": kit.Object{"update_task_fields": policy}}})
		}
		holds := func(when, title, description string) {
			t.Helper()
			var got reeve.Task
			if h.Want(200, &got, "GET", "/api/journal/tasks/"+task.ID, nil); got.Title != title ||
				got.Description != description {
				t.Errorf("%s: the task is %q, %q", when, got.Title, got.Description)
			}
		}
		unseen := func(when string) {
			t.Helper()
			for _, path := range []string{"operations", "approvals", "proposals", "inbox", "agents/coach/messages",
				"change-sets"} {
				deciders := path != "operations" && path != "agents/coach/messages"
				body := string(h.Want(200, nil, "GET", "/api/"+path, nil).Body)
				if strings.Contains(body, stored) || strings.Contains(body, told) && !deciders {
					t.Errorf("%s: /api/%s shows it: %s", when, path, body)
				}
				body = string(h.Want(200, nil, "GET", "/api/"+path, nil, viewer...).Body)
				if strings.Contains(body, stored) || strings.Contains(body, told) {
					t.Errorf("%s: /api/%s shows it to those who cannot decide: %s", when, path, body)
				}
			}
		}
		change := func() reeve.Result {
			t.Helper()
			set("allow")
			res := h.Call("coach", "update_task_fields", kit.Object{"task_id": task.ID, "title": "Use another",
				"description": ""})
			if res.Undo == nil || strings.Contains(string(res.Undo.Args), stored) ||
				strings.Contains(string(res.Undo.Args), told) || !strings.Contains(string(res.Undo.Args),
				"Use [REDACTED]") {
				t.Errorf("the call's answer: %+v", res)
			}
			return res
		}
		look := func(op string) {
			t.Helper()
			for _, path := range []string{"operations/" + op, "calls/" + op + "/explanation"} {
				body := string(h.Want(200, nil, "GET", "/api/"+path, nil, viewer...).Body)
				if strings.Contains(body, stored) || strings.Contains(body, told) {
					t.Errorf("/api/%s shows it: %s", path, body)
				}
			}
		}
		undo := func(op string) (res reeve.Result) {
			t.Helper()
			h.Do("POST", "/api/operations/"+op+"/undo", nil).Decode(t, &res)
			return res
		}

		res := change()
		look(res.OperationID)
		if again, p, status := kit.TryCall(h, "coach", kit.Call{"tool": res.Undo.Tool, "args": res.Undo.Args}); again.Code != reeve.Validation &&
			p.Code != reeve.Validation || !strings.Contains(again.Message+p.Detail, "stands for a redacted secret") {
			t.Errorf("called with what is shown: %d %+v %+v", status, again, p)
		}
		holds("called with what is shown", "Use another", "")
		back := undo(res.OperationID)
		look(back.OperationID)
		holds("undone", title, note)
		unseen("undone")

		res = change()
		set("ask")
		parked := undo(res.OperationID)
		look(parked.OperationID)
		unseen("asked for")
		if list := kit.GetInbox(h).Approvals; len(list) != 1 || !strings.Contains(list[0].Args, "Use [REDACTED]") ||
			!strings.Contains(list[0].Args, told) { // approvers see text that only looks like a secret
			t.Fatalf("%+v", list)
		}
		kit.Decide(h, parked.ApprovalID, "approve")
		h.RunUntilIdle(t.Context())
		look(parked.OperationID)
		holds("approved", title, note)

		res = change()
		set("propose")
		item := undo(res.OperationID)
		unseen("proposed")
		h.Want(200, nil, "POST", "/api/proposals/"+item.ProposalID+"/accept", kit.Object{})
		h.RunUntilIdle(t.Context())
		holds("accepted", title, note)
		var p reeve.Proposal
		if h.Want(200, &p, "GET", "/api/proposals/"+item.ProposalID, nil); p.State != reeve.ProposalApplied {
			t.Errorf("%+v", p)
		}
		look(p.OperationID)
		unseen("accepted")
	})
}
