package host_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"reeve"
)

// What is kept for undo, or was sent in a conversation, is no output: neither a viewer nor an agent that may read no
// files gets at it by its hash, unless the same bytes are an output too. Nor does restoring files bring out what was
// sent.
func TestG21_KeptBytesAreReadOnlyAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	both := strings.Repeat("an output and a file\n", 1000)
	h := talkerIn(t, t.TempDir(), `- {when: {tool: send_media}, text: Done.}
- {when: {said: send it}, calls: [{name: send_media, args: {path: /shared/sent.txt}}]}
- {text: Seen.}
`, saying("say", func() (any, error) { return both, nil }))
	h.Agent("bot", "send_media")
	h.Agent("clerk", "file_write", "file_delete", "file_restore", "file_read")
	h.Agent("reader", "say")
	viewer := as(h, "eve", "viewer")
	read := func(body string) (viewed int, byTool reeve.Result) {
		hash := reeve.Hash([]byte(body))
		byTool = h.Call("reader", "output_read", object{"hash": hash})
		r := h.Do("GET", "/api/outputs/"+hash, nil, viewer...)
		if strings.Contains(string(r.Body), body[:20]) != (r.Status == http.StatusOK) ||
			strings.Contains(byTool.Content, body[:20]) == byTool.IsError {
			t.Errorf("%d %s; %+v", r.Status, r.Body, byTool)
		}
		return r.Status, byTool
	}
	write := func(path, content string, overwrite bool) {
		if res := h.Call("clerk", "file_write", object{"path": path, "content": content,
			"overwrite": overwrite}); res.IsError {
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
	removed := h.Call("clerk", "file_delete", object{"path": "/shared/gone.txt"})
	if removed.Undo == nil || !strings.Contains(removed.Content, reeve.Hash([]byte(gone))) {
		t.Fatalf("the ledger does not name what is kept: %+v", removed)
	}
	h.Call("clerk", "file_delete", object{"path": "/shared/both.txt"})
	c := h.StartConversation("bot")
	over(h, speak(h, c.ID, "send it").ID)
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "look", "attachments": []object{
			{"name": "note.txt", "media_type": "text/plain",
				"data": base64.StdEncoding.EncodeToString([]byte(attached))}}})
	if d := over(h, turn.ID); d.Output != "Seen." {
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
			object{"tool": "file_restore", "args": object{"path": "/tmp/" + reeve.Hash([]byte(body))[:8],
				"hash": reeve.Hash([]byte(body))}})
		if (r.Status == http.StatusOK) != kept {
			t.Errorf("%.20q is restored: %d %s", body, r.Status, r.Body)
		}
	}
	if r := h.Want(http.StatusOK, nil, "GET", "/api/conversations/"+c.ID+"/media/"+reeve.Hash([]byte(posted)),
		nil); string(r.Body) != posted {
		t.Errorf("what was sent is %q", r.Body)
	}
}
