package gate_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Bytes that are stored for undo or were sent in a conversation are not outputs: viewers and agents without file tools
// cannot read them by hash, unless an output has the same bytes. Restoring files does not reveal what was sent.
func TestG21_StoredBytesAreReadOnlyForTheirPurpose(t *testing.T) {
	t.Parallel()
	both := strings.Repeat("an output and a file\n", 1000)
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: send_media}, text: Done.}
- {when: {said: send it}, calls: [{name: send_media, args: {path: /shared/sent.txt}}]}
- {text: Seen.}
`, kit.ToolReturning("say", func() (any, error) { return both, nil }))
	h.Agent("bot", "send_media")
	h.Agent("clerk", "file_write", "file_delete", "file_restore", "file_read")
	h.Agent("reader", "say")
	viewer := kit.NewTokenFor(h, "eve", "viewer")
	read := func(body string) (viewed int, byTool reeve.Result) {
		hash := reeve.Hash([]byte(body))
		byTool = h.Call("reader", "output_read", kit.Object{"hash": hash})
		r := h.Do("GET", "/api/outputs/"+hash, nil, viewer...)
		if strings.Contains(string(r.Body), body[:20]) != (r.Status == http.StatusOK) ||
			strings.Contains(byTool.Content, body[:20]) == byTool.IsError {
			t.Errorf("%d %s; %+v", r.Status, r.Body, byTool)
		}
		return r.Status, byTool
	}
	write := func(path, content string, overwrite bool) {
		if res := h.Call("clerk", "file_write", kit.Object{"path": path, "content": content, "overwrite": overwrite}); res.IsError {
			t.Fatalf("%+v", res)
		}
	}

	const gone, replaced, posted, attached = "deleted: this was in a file", "overwritten: this was in a file",
		"sent: only for those who talk", "attached: only for those who talk"
	write("/shared/gone.txt", gone, false)
	write("/shared/over.txt", replaced, false)
	write("/shared/over.txt", "something else", true)
	write("/shared/sent.txt", posted, false)
	write("/shared/both.txt", both, false)
	removed := h.Call("clerk", "file_delete", kit.Object{"path": "/shared/gone.txt"})
	if removed.Undo == nil || !strings.Contains(removed.Content, reeve.Hash([]byte(gone))) {
		t.Fatalf("the ledger does not name what is kept: %+v", removed)
	}
	h.Call("clerk", "file_delete", kit.Object{"path": "/shared/both.txt"})
	c := h.StartConversation("bot")
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "send it").ID)
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "look", "attachments": []kit.Object{
			{"name": "note.txt", "media_type": "text/plain",
				"data": base64.StdEncoding.EncodeToString([]byte(attached))}}})
	if d := kit.WaitForTurn(h, turn.ID); d.Output != "Seen." {
		t.Fatalf("%+v", d)
	}

	for _, body := range []string{gone, replaced, posted, attached, both} {
		if viewed, byTool := read(body); viewed != http.StatusNotFound || byTool.Code != reeve.ToolFailed {
			t.Errorf("%.20q is read as an output: %d, %+v", body, viewed, byTool)
		}
	}
	h.Call("reader", "say", nil)
	if viewed, byTool := read(both); viewed != http.StatusOK || byTool.IsError {
		t.Errorf("the output is not read: %d, %+v", viewed, byTool)
	}
	for body, kept := range map[string]bool{gone: true, replaced: true, both: true, posted: false, attached: false} {
		r := h.Do("POST", "/api/agents/clerk/calls",
			kit.Object{"tool": "file_restore", "args": kit.Object{"path": "/tmp/" + reeve.Hash([]byte(body))[:8],
				"hash": reeve.Hash([]byte(body))}})
		if (r.Status == http.StatusOK) != kept {
			t.Errorf("%.20q is restored: %d %s", body, r.Status, r.Body)
		}
	}
	if r := h.Want(http.StatusOK, nil, "GET", "/api/conversations/"+c.ID+"/media/"+reeve.Hash([]byte(posted)), nil); string(r.Body) != posted {
		t.Errorf("what was sent is %q", r.Body)
	}
}

// File names that only look like a key are shown, so that the file can be opened. Names that contain a stored secret
// are not. Lists are complete in both cases.
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
	if res := h.Call("clerk", "file_read", kit.Object{"path": "/shared/one/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv.pdf"}); !strings.HasSuffix(res.Message,
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

// The owner token and the key that seals secrets are shown to nobody, from the first start on.
func TestG21_ServerKeysAreNotShown(t *testing.T) {
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

// A provider key in the configuration is redacted like one in the environment. A short placeholder for a local server
// is not a secret.
func TestG21_ProviderKeysOfTheConfigAreNotShown(t *testing.T) {
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

// No tool shows the password of the database.
func TestG21_DatabasePasswordIsNotShown(t *testing.T) {
	t.Parallel()
	const password = "quiet-copper-meadow"
	at, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword(at.User.Username(), password)
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Database: at.String()})
	h.Agent("reader")
	h.Call("reader", "write_file", kit.Object{"path": "env", "content": "say " + password + " at the door"})
	if got := h.Call("reader", "read_file", kit.Object{"path": "env"}); strings.Contains(got.Content, password) ||
		!strings.Contains(got.Content, reeve.Redacted) {
		t.Errorf("%s", got.Content)
	}
}

// Secrets are redacted in results and errors before these are cut, stored or sent. Ordinary text is not.
func TestG21_SecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const stored = `my "stored" s3cret/+`
	shapes := []string{stored, makeKey("sk-"+"proj-", 60), makeKey("sk_"+"live_", 30), makeKey("AI"+"za", 35)}
	var said any
	var fail bool
	speak := func() (any, error) {
		if fail {
			return nil, &reeve.Error{Code: reeve.ToolFailed, Message: fmt.Sprint(said), Hint: fmt.Sprint(said),
				Fields: []reeve.Field{{Path: fmt.Sprint(said), Message: fmt.Sprint(said)}}}
		}
		return said, nil
	}
	loud := kit.Tool("loud", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) { return speak() })
	loud.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: fmt.Sprint(said)}, nil
	}
	checked := kit.Tool("checked", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, nil
	})
	checked.Check = func(context.Context, *reeve.Invocation) error { return reeve.Errorf(reeve.Denied, "%v", said) }
	panics := kit.Tool("panics", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { panic(said) })
	var log kit.LogBuffer
	cfg := kit.FastConfig(t)
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	h := reevetest.StartWith(t, cfg, kit.ToolReturning("say", speak), loud, checked, panics)
	h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/S", map[string]any{"value": stored})
	a := h.Agent("a", "say", "loud", "checked", "panics")
	shapes = append(shapes, h.Token)
	for _, secret := range shapes {
		for _, said = range []any{
			"before " + secret + " after",
			map[string]any{"nested": []string{"x", secret}},
			"key: " + secret,
			// across the cap
			strings.Repeat("x", 16<<10-len(secret)/2-1) + " " + secret + " " + strings.Repeat("y", 100),
			// beyond the cap, in what is kept
			strings.Repeat("x ", 16<<10) + secret,
		} {
			for _, fail = range []bool{false, true} {
				for _, c := range []kit.Call{{"tool": "say"}, {"tool": "loud"}, {"tool": "loud", "preview_only": true},
					{"tool": "checked"}, {"tool": "panics"}} {
					r := h.Do("POST", "/api/agents/a/calls", c)
					checkNoSecret(t, secret, "the answer to "+fmt.Sprint(c), string(r.Body))
					var res reeve.Result
					if r.Status == http.StatusOK {
						r.Decode(t, &res)
					}
					if res.Hash != "" {
						checkNoSecret(t, secret, "what is kept",
							string(h.Do("GET", "/api/outputs/"+res.Hash+"?limit=1048576", nil).Body))
					}
				}
			}
		}
		for _, m := range kit.ListThread(h, a.ID, "") {
			checkNoSecret(t, secret, "a message", m.Content+string(m.Metadata))
		}
		checkNoSecret(t, secret, "the operations", string(h.Do("GET", "/api/operations?limit=500", nil).Body))
	}
	if !strings.Contains(log.String(), "tool crashed") {
		t.Error("the log says nothing of the crashes")
	}
	for _, secret := range shapes {
		checkNoSecret(t, secret, "the log", log.String())
	}
}

// checkNoSecret reports an error if a text contains a secret or more than half of it.
func checkNoSecret(t *testing.T, secret, where, text string) {
	t.Helper()
	esc, _ := json.Marshal(secret)
	half := secret[:len(secret)/2+1]
	if strings.HasPrefix(secret, `my `) {
		half = secret[:12]
	}
	for _, s := range []string{secret, strings.Trim(string(esc), `"`), half} {
		if i := strings.Index(text, s); i >= 0 {
			t.Fatalf("%q is in %s: …%s…", s, where, text[max(0, i-60):min(len(text), i+60)])
		}
	}
}

func TestG21_OrdinaryTextIsNotRedacted(t *testing.T) {
	t.Parallel()
	var said string
	h := reevetest.Start(t, kit.ToolReturning("say", func() (any, error) { return said, nil }))
	a := h.Agent("a", "say", "file_write", "file_list")
	first := h.Call(a.ID, "say", nil)
	wrote := h.Call(a.ID, "file_write", map[string]any{"path": "/shared/Reports-2026/Q3-Final-Numbers-V2.txt",
		"content": "x"})
	for _, said = range []string{
		first.CallID + " " + wrote.OperationID + " " + a.ID,
		reeve.OperationKey("default", a.ID, "k"),
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main)",
		"sha256:" + reeve.Hash([]byte("x")),
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8",
		"/shared/Reports-2026/Q3-Final-Numbers-V2.txt and /tmp/build-output/Release2/App.Main.Http2Client.dll",
		"The secret is that every token counts. Password policy: ask the admin.",
		"for token := range tokens { if err := parse(token); err != nil { return err } }",
		`{"max_tokens":4096,"token_type":"bearer","name":"API key rotation"}`,
	} {
		if res := h.Call(a.ID, "say", nil); res.Content != said {
			t.Errorf("%q became %q", said, res.Content)
		}
	}
	if res := h.Call(a.ID, "file_list", map[string]any{"path": "/shared/Reports-2026"}); !strings.Contains(res.Content,
		"Q3-Final-Numbers-V2.txt") {
		t.Errorf("%q", res.Content)
	}
}
