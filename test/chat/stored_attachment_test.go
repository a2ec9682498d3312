package chat_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// attach begins a turn with text files, given as name and content.
func attach(h *reevetest.Host, conversation, text string, files ...[2]string) reeve.Turn {
	h.T.Helper()
	list := make([]kit.Object, len(files))
	for i, f := range files {
		list[i] = kit.Object{"name": f[0], "media_type": "text/html",
			"data": base64.StdEncoding.EncodeToString([]byte(f[1]))}
	}
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+conversation+"/turns",
		kit.Object{"content": text, "attachments": list})
	return kit.WaitForTurn(h, turn.ID).Turn
}

// Frames name what a person attached. Every participant can list and download it, by number and by id, with headers
// that keep browsers from executing it. Others cannot.
func TestW25_AttachmentsCanBeDownloaded(t *testing.T) {
	t.Parallel()
	kit.RunOnBothDatabases(t, "- {text: seen}\n", nil, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		c := h.StartConversation("bot")
		h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
			kit.Object{"kind": "user", "id": "ann"})
		attach(h, c.ID, "look", [2]string{"a.html", "<b>a"}, [2]string{"", "<b>b"})
		attach(h, c.ID, "and this", [2]string{"a.html", "<b>c"})
		var named []reeve.Attachment
		for _, f := range kit.ListFrames(h, c.ID) {
			if f.Type == reeve.FrameStarted {
				named = append(named, f.Attachments...)
			}
		}
		var l api.AttachmentList
		path := "/api/conversations/" + c.ID + "/attachments"
		h.Want(http.StatusOK, &l, "GET", path, nil, ann...)
		if len(named) != 3 || len(l.Attachments) != 3 {
			t.Fatalf("%+v; %+v", named, l.Attachments)
		}
		for i, a := range l.Attachments {
			f := named[i]
			if f.ID != a.ID || f.Number != i+1 || a.Number != i+1 || f.Size != 4 || f.MediaType != "text/html" ||
				f.Name != a.Name || len(f.Data) > 0 || a.UserID != "owner" {
				t.Errorf("frame %+v, list %+v", f, a)
			}
			for _, id := range []string{a.ID, string(rune('1' + i))} {
				r := h.Want(http.StatusOK, nil, "GET", path+"/"+id, nil, ann...)
				if string(r.Body) != "<b>"+string(rune('a'+i)) {
					t.Errorf("%s is %q", id, r.Body)
				}
				name := []string{"a.html", "attachment-2", "a.html"}[i]
				for header, want := range map[string]string{"Content-Disposition": "attachment; filename=" + name,
					"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"} {
					if got := r.Header.Get(header); got != want {
						t.Errorf("%s is %q", header, got)
					}
				}
			}
		}
		h.Want(http.StatusOK, &l, "GET", path+"?after=1&limit=1", nil)
		if len(l.Attachments) != 1 || l.Attachments[0].Number != 2 || l.Next != 2 {
			t.Errorf("the second page is %+v", l)
		}
		for _, at := range []string{path, path + "/1", path + "/" + named[0].ID} {
			h.Want(http.StatusNotFound, nil, "GET", at, nil, ben...)
		}
		other := h.StartConversation("bot")
		for _, id := range []string{"0", "4", "-1", "att_none"} {
			h.Want(http.StatusNotFound, nil, "GET", path+"/"+id, nil)
		}
		h.Want(http.StatusNotFound, nil, "GET", "/api/conversations/"+other.ID+"/attachments/"+named[0].ID, nil)
	})
}

// attachment_save saves an attachment of the turn or of an earlier turn. Its errors say what there is.
func TestO08_AttachmentsAreSaved(t *testing.T) {
	t.Parallel()
	kit.RunOnBothDatabases(t, `- {when: {tool: attachment_save}, text: done}
- {when: {said: first}, calls: [{name: attachment_save, args: {path: /shared/in/a.txt}}]}
- {when: {said: second}, calls: [{name: attachment_save, args: {path: /tmp/b.txt, index: 2}}]}
- {when: {said: third}, calls: [{name: attachment_save, args: {path: /tmp/c.txt, index: 3}}]}
- {when: {said: again}, calls: [{name: attachment_save, args: {path: /shared/in/a.txt, overwrite: true}}]}
- {when: {said: earlier}, calls: [{name: attachment_save, args: {path: /shared/old.txt, turns_back: 2, index: 2}}]}
- {when: {said: oldest}, calls: [{name: attachment_save, args: {path: /shared/older.txt, turns_back: 9}}]}
- {when: {said: large}, calls: [{name: attachment_save, args: {path: /shared/large.txt}}]}
- {when: {said: project}, calls: [{name: attachment_save, args: {path: /project/a.txt}}]}
- {text: hm}
`, nil, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		for _, tool := range []string{"attachment_save", "file_read"} {
			h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": tool})
		}
		c := h.StartConversation("bot")
		save := func(text string, files ...[2]string) reeve.ResultInfo {
			t.Helper()
			infos, _ := kit.ListResults(h, attach(h, c.ID, text, files...).ID, "attachment_save")
			if len(infos) != 1 {
				t.Fatalf("%s: %+v", text, infos)
			}
			return infos[0]
		}
		wantFile := func(path, want string) {
			t.Helper()
			if got := h.Call("bot", "file_read", kit.Call{"path": path}); !strings.Contains(got.Content, want) {
				t.Errorf("%s: %s", path, got.Content)
			}
		}
		fails := func(says string, r reeve.ResultInfo) {
			t.Helper()
			if r.Status != "error" || !strings.Contains(r.Message, says) {
				t.Errorf("want %q: %s %s", says, r.Status, r.Message)
			}
		}
		one, two := [2]string{"one.txt", "first file"}, [2]string{"two.txt", "second file"}
		save("first", one, two)
		wantFile("/shared/in/a.txt", "first file")
		save("second", one, two)
		wantFile("/tmp/b.txt", "second file")
		fails("has 2 attachments: 1 one.txt, 2 two.txt", save("third", one, two))
		fails("already exists", save("first", two))
		wantFile("/shared/in/a.txt", "first file")
		replaced := save("again", two)
		wantFile("/shared/in/a.txt", "second file")
		save("earlier") // past the turns with one file each: "again" and "first"
		fails("this turn has 0 attachments", save("second"))
		fails("only 5 earlier turns have attachments", save("oldest"))
		fails("cannot be saved into a project", save("project", one))
		fails("a saved file has at most 10485760", save("large", [2]string{"large.txt", strings.Repeat("x", 10<<20+1)}))
		if got := h.Call("bot", "file_read", kit.Call{"path": "/shared/large.txt"}); !got.IsError {
			t.Errorf("a part was saved: %+v", got)
		}
		if replaced.Undo == nil {
			t.Errorf("it cannot be undone: %+v", replaced)
		}
		outside := h.Do("POST", "/api/agents/bot/calls", kit.Object{"tool": "attachment_save",
			"args": kit.Object{"path": "/tmp/x.txt"}})
		if !strings.Contains(string(outside.Body), "does not belong to a conversation") {
			t.Errorf("%s", outside.Body)
		}
	})
}
