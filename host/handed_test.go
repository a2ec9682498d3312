package host_test

import (
	"encoding/base64"
	"net/http"
	seq "slices"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// pixel is a picture.
const pixel = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

// media gives what files the agent with these instructions was last shown, by name, with their bytes.
func (l *eavesdropper) media(system string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range seq.Backward(l.asked) {
		if !strings.Contains(r.System, system) {
			continue
		}
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				if p.Type == model.Media {
					list = append(list, p.Name+" "+p.MediaType+" "+base64.StdEncoding.EncodeToString(p.Data)+p.URL)
				}
			}
		}
		return list
	}
	return nil
}

// hearing is a host whose model follows a script, and is overheard.
func hearing(t *testing.T, script string) (*reevetest.Host, *eavesdropper) {
	t.Helper()
	parsed, err := model.ParseScript([]byte("answers:\n" + script))
	if err != nil {
		t.Fatal(err)
	}
	heard := &eavesdropper{Model: model.Rehearsal(parsed)}
	return reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard}), heard
}

// TestW17_AttachmentsGoAlong: what was attached to a turn reaches whoever its agent hands a task to, and whoever that
// one does, byte by byte; the second turn, to which nothing was attached, hands on nothing.
func TestW17_AttachmentsGoAlong(t *testing.T) {
	t.Parallel()
	h, heard := hearing(t, `- {when: {tool: delegate}, text: "It is a dot."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: "what is it?"}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: eyes, input: "look"}}]}
- {when: {system: I am eyes}, text: "A dot."}
`)
	persona(h, "boss", nil, "delegate")
	persona(h, "middle", nil, "delegate")
	persona(h, "eyes", nil)
	c := h.StartConversation("boss")
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "look at this", "attachments": []object{
			{"name": "dot.gif", "media_type": "image/gif", "data": pixel},
			{"name": "note.txt", "media_type": "text/plain",
				"data": "aGk="}}})
	if d := over(h, turn.ID); d.Output != "It is a dot." {
		t.Fatalf("%+v", d.Turn)
	}
	want := "dot.gif image/gif " + pixel + ", note.txt text/plain aGk="
	for _, who := range []string{"I am boss", "I am middle", "I am eyes"} {
		if got := strings.Join(heard.media(who), ", "); got != want {
			t.Errorf("%s was shown %s", who, got)
		}
	}
	child := children(h, turn.ID)
	if len(child) != 1 {
		t.Fatalf("%+v", child)
	}
	if body := string(h.Do("GET", "/api/conversations/"+child[0].SessionID+"/messages", nil).
		Body); !strings.Contains(body, "dot.gif") {
		t.Errorf("a person does not see it in the other's conversation: %s", body)
	}
	over(h, speak(h, c.ID, "and now?").ID)
	if got := heard.media("I am eyes"); len(got) != 0 {
		t.Errorf("nothing was attached, and it was shown %v", got)
	}
}

// TestW18_AttachmentsAreSeenByWhoIsLoopedIn, once: it sees what was said, with what came with it; what it sends is seen
// in the conversation.
func TestW18_AttachmentsAreSeenByWhoIsLoopedIn(t *testing.T) {
	t.Parallel()
	h, heard := hearing(t, `- {when: {system: I am boss, tool: loop_in}, text: "So it is."}
- {when: {system: I am boss}, calls: [{name: loop_in, args: {agent: eyes, input: "what is it?"}}]}
- {when: {system: I am eyes, tool: send_media}, text: "A dot, and I drew another."}
- {when: {system: I am eyes}, calls: [{name: send_media, args: {path: /shared/dot.txt}}]}
`)
	persona(h, "boss", nil, "loop_in", "send_media")
	eyes := persona(h, "eyes", nil, "send_media")
	h.Agent("clerk", "file_write")
	h.Call("clerk", "file_write", call{"path": "/shared/dot.txt", "content": "."})
	c := h.StartConversation("boss")
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "look at this",
			"attachments": []object{{"name": "dot.gif", "media_type": "image/gif", "data": pixel}}})
	if d := over(h, turn.ID); d.Output != "So it is." {
		t.Fatalf("%+v", d.Turn)
	}
	if got := strings.Join(heard.media("I am eyes"), ", "); got != "dot.gif image/gif "+pixel {
		t.Errorf("it was shown %s", got)
	}
	if list := sent(h, c.ID); len(list) != 1 || list[0].AgentID != eyes.ID || list[0].Attachments[0].Name != "dot.txt" {
		t.Errorf("the conversation was sent %+v", list)
	}
}
