package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

// pixel is a picture.
const pixel = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

// TestW17_AttachmentsGoAlong: what was attached to a turn reaches whoever its agent hands a task to, and whoever that
// one does, byte by byte; the second turn, to which nothing was attached, hands on nothing.
func TestW17_AttachmentsGoAlong(t *testing.T) {
	t.Parallel()
	h, heard := kit.RunWithRecordingModel(t, `- {when: {tool: delegate}, text: "It is a dot."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: "what is it?"}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: eyes, input: "look"}}]}
- {when: {system: I am eyes}, text: "A dot."}
`)
	kit.NewPersona(h, "boss", nil, "delegate")
	kit.NewPersona(h, "middle", nil, "delegate")
	kit.NewPersona(h, "eyes", nil)
	c := h.Talk("boss")
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "look at this", "attachments": []kit.Object{
			{"name": "dot.gif", "media_type": "image/gif", "data": pixel},
			{"name": "note.txt", "media_type": "text/plain",
				"data": "aGk="}}})
	if d := kit.WaitForTurn(h, turn.ID); d.Output != "It is a dot." {
		t.Fatalf("%+v", d.Turn)
	}
	want := "dot.gif image/gif " + pixel + ", note.txt text/plain aGk="
	for _, who := range []string{"I am boss", "I am middle", "I am eyes"} {
		if got := strings.Join(heard.MediaShownTo(who), ", "); got != want {
			t.Errorf("%s was shown %s", who, got)
		}
	}
	child := kit.ListChildren(h, turn.ID)
	if len(child) != 1 {
		t.Fatalf("%+v", child)
	}
	if body := string(h.Do("GET", "/api/conversations/"+child[0].SessionID+"/messages", nil).
		Body); !strings.Contains(body, "dot.gif") {
		t.Errorf("a person does not see it in the other's conversation: %s", body)
	}
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "and now?").ID)
	if got := heard.MediaShownTo("I am eyes"); len(got) != 0 {
		t.Errorf("nothing was attached, and it was shown %v", got)
	}
}

// TestW18_AttachmentsAreSeenByWhoIsLoopedIn, once: it sees what was said, with what came with it; what it sends is seen
// in the conversation.
func TestW18_AttachmentsAreSeenByWhoIsLoopedIn(t *testing.T) {
	t.Parallel()
	h, heard := kit.RunWithRecordingModel(t, `- {when: {system: I am boss, tool: loop_in}, text: "So it is."}
- {when: {system: I am boss}, calls: [{name: loop_in, args: {agent: eyes, input: "what is it?"}}]}
- {when: {system: I am eyes, tool: send_media}, text: "A dot, and I drew another."}
- {when: {system: I am eyes}, calls: [{name: send_media, args: {path: /shared/dot.txt}}]}
`)
	kit.NewPersona(h, "boss", nil, "loop_in", "send_media")
	eyes := kit.NewPersona(h, "eyes", nil, "send_media")
	h.Agent("clerk", "file_write")
	h.Call("clerk", "file_write", kit.Call{"path": "/shared/dot.txt", "content": "."})
	c := h.Talk("boss")
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "look at this",
			"attachments": []kit.Object{{"name": "dot.gif", "media_type": "image/gif", "data": pixel}}})
	if d := kit.WaitForTurn(h, turn.ID); d.Output != "So it is." {
		t.Fatalf("%+v", d.Turn)
	}
	if got := strings.Join(heard.MediaShownTo("I am eyes"), ", "); got != "dot.gif image/gif "+pixel {
		t.Errorf("it was shown %s", got)
	}
	if list := kit.ListMediaFrames(h, c.ID); len(list) != 1 || list[0].AgentID != eyes.ID ||
		list[0].Attachments[0].Name != "dot.txt" {
		t.Errorf("the conversation was sent %+v", list)
	}
}
