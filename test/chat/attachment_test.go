package chat_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

var png = []byte("\x89PNG\r\n\x1a\n and what makes a picture")

// imageServer serves pictures and other files and counts requests.
type imageServer struct {
	*httptest.Server
	asked atomic.Int64
}

func newImageServer(t *testing.T) *imageServer {
	g := &imageServer{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		switch r.URL.Path {
		case "/cat.png":
			w.Header().Set("Content-Type", "application/octet-stream") // the server detects the real type
			_, _ = w.Write(png)
		case "/page":
			_, _ = w.Write([]byte("<html>no picture</html>"))
		case "/huge":
			_, _ = w.Write(append(bytes.Clone(png), make([]byte, 21<<20)...))
		case "/away":
			http.Redirect(w, r, "http://127.0.0.1:9/cat.png", http.StatusFound)
		case "/tired":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func runWithImages(t *testing.T) (*reevetest.Host, *kit.RecordingModel, *imageServer) {
	t.Helper()
	g, heard := newImageServer(t),
		&kit.RecordingModel{Model: kit.ScriptedModel(t, "answers:\n- {text: seen, when: {said: /./}}\n")}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard,
		HTTPAllow: []string{strings.TrimPrefix(g.URL, "http://")}})
	h.Agent("bot")
	return h, heard, g
}

// The server fetches an attachment by its address once, so that any model gets its bytes, also in later turns.
func TestW02_AttachmentsByAddressAreFetched(t *testing.T) {
	t.Parallel()
	h, heard, g := runWithImages(t)
	c := h.StartConversation("bot")
	body := kit.Object{"content": "look",
		"attachments": []kit.Object{{"media_type": "image/png", "url": g.URL + "/cat.png"}}}
	var first, again reeve.Turn
	h.Want(http.StatusCreated, &first, "POST", "/api/conversations/"+c.ID+"/turns", body, "Idempotency-Key", "k")
	kit.WaitForTurn(h, first.ID)
	if list := heard.LastMedia(); len(list) != 1 || !bytes.Equal(list[0].Data, png) || list[0].URL != "" ||
		list[0].MediaType != "image/png" {
		t.Errorf("the model was shown %+v", list)
	}
	g.Close() // a repeated request must not fetch the image again
	h.Want(http.StatusCreated, &again, "POST", "/api/conversations/"+c.ID+"/turns", body, "Idempotency-Key", "k")
	if again.ID != first.ID {
		t.Errorf("the same key began another turn: %+v", again)
	}
	body["attachments"] = []kit.Object{{"media_type": "image/png", "url": g.URL + "/dog.png"}}
	h.Want(http.StatusConflict, nil, "POST", "/api/conversations/"+c.ID+"/turns", body, "Idempotency-Key", "k")
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "and again").ID)
	if list := heard.LastMedia(); len(list) != 1 || !bytes.Equal(list[0].Data, png) {
		t.Errorf("in the next turn the model was shown %+v", list)
	}
	if n := g.asked.Load(); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}

// The error names the attachment and the reason, no turn begins, and the conversation continues.
func TestW02_AttachmentsThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	h, heard, g := runWithImages(t)
	other := newImageServer(t) // which no operator has allowed
	gone := newImageServer(t)
	gone.Close()
	c := h.StartConversation("bot")
	for address, want := range map[string]struct {
		status int
		code   reeve.Code
		says   string
	}{
		other.URL + "/cat.png":               {http.StatusForbidden, reeve.Denied, "network policy"},
		"http://169.254.169.254/latest/meta": {http.StatusForbidden, reeve.Denied, "network policy"},
		"http://[::ffff:127.0.0.1]/cat.png":  {http.StatusForbidden, reeve.Denied, "network policy"},
		g.URL + "/away":                      {http.StatusForbidden, reeve.Denied, "network policy"},
		g.URL + "/none":                      {http.StatusBadRequest, reeve.Validation, "responded 404"},
		g.URL + "/page":                      {http.StatusBadRequest, reeve.Validation, "is not image/png but text/html"},
		g.URL + "/tired":                     {http.StatusServiceUnavailable, reeve.Unavailable, "responded 503"},
		g.URL + "/huge":                      {http.StatusRequestEntityTooLarge, reeve.TooLarge, "more than"},
		"ftp://example.com/cat.png":          {http.StatusBadRequest, reeve.Validation, "web address"},
	} {
		r := h.Do("POST", "/api/conversations/"+c.ID+"/turns",
			kit.Object{"content": "look",
				"attachments": []kit.Object{{"media_type": "image/png", "data": base64.StdEncoding.EncodeToString(png)},
					{"media_type": "image/png", "url": address}}})
		var p api.Problem
		r.Decode(t, &p)
		if r.Status != want.status || p.Code != want.code || !strings.Contains(p.Detail, want.says) ||
			!strings.Contains(p.Detail, "/attachments/1") {
			t.Errorf("%s: %d %s %s", address, r.Status, p.Code, p.Detail)
		}
	}
	if n := other.asked.Load(); n != 0 {
		t.Errorf("an address that is not allowed was asked %d times", n)
	}
	if list := kit.ListTurns(h, c.ID); len(list) != 0 || len(heard.Requests) != 0 {
		t.Errorf("%+v", list)
	}
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "go on").ID); d.State != reeve.RunCompleted {
		t.Errorf("%+v", d.Turn)
	}
}

// An image_url of an OpenAI client is fetched too, whatever its type, also in earlier messages.
func TestW23_PicturesByAddress(t *testing.T) {
	t.Parallel()
	h, heard, g := runWithImages(t)
	seen := kit.Object{"type": "image_url", "image_url": kit.Object{"url": g.URL + "/cat.png"}}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", kit.Object{"model": "bot", "messages": []kit.Object{
		{"role": "user", "content": []kit.Object{{"type": "text", "text": "one"}, seen}},
		{"role": "assistant", "content": "a cat"},
		{"role": "user", "content": []kit.Object{{"type": "text", "text": "two"}, seen}}}})
	list := heard.LastMedia()
	if len(list) != 2 {
		t.Fatalf("the model was shown %+v", list)
	}
	for _, p := range list {
		if !bytes.Equal(p.Data, png) || p.URL != "" || p.MediaType != "image/png" {
			t.Errorf("the model was shown %+v", p)
		}
	}
	h.Want(http.StatusOK, nil, "POST", "/v1/responses",
		kit.Object{"model": "bot", "input": []kit.Object{{"role": "user",
			"content": []kit.Object{{"type": "input_image", "image_url": g.URL + "/cat.png"}}}}})
	if list := heard.LastMedia(); len(list) != 1 || !bytes.Equal(list[0].Data, png) {
		t.Errorf("the model was shown %+v", list)
	}
	r := h.Do("POST", "/v1/chat/completions",
		kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user",
			"content": []kit.Object{{"type": "image_url", "image_url": kit.Object{"url": g.URL + "/none"}}}}}})
	if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "responded 404") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// Pictures of an OpenAI client are checked like every attachment.
func TestW23_PicturesAreChecked(t *testing.T) {
	t.Parallel()
	h, _, _ := runWithImages(t)
	picture := func(kind string, data []byte) kit.Object {
		return kit.Object{"type": "image_url", "image_url": kit.Object{"url": "data:" + kind + ";base64," +
			base64.StdEncoding.EncodeToString(data)}}
	}
	say := func(parts ...kit.Object) reevetest.Reply {
		return h.Do("POST", "/v1/chat/completions",
			kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": parts}}})
	}
	good := picture("image/png", png)
	if r := say(good); r.Status != http.StatusOK {
		t.Errorf("a picture: %d %s", r.Status, r.Body)
	}
	many := make([]kit.Object, 21)
	for i := range many {
		many[i] = good
	}
	for name, r := range map[string]reevetest.Reply{"a script": say(picture("image/png", []byte("#!/bin/sh\n"))),
		"an unknown type": say(picture("application/x-sh", []byte("hi"))),
		"too many":        say(many...),
		"too large":       say(picture("image/png", append(bytes.Clone(png), make([]byte, 21<<20)...)))} {
		if r.Status < 400 || r.Status >= 500 {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
}

// pixel is a picture.
const pixel = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

// Attachments of a turn reach every agent that its agent delegates to, directly or not, byte by byte. A second turn
// without attachments passes none.
func TestW17_AttachmentsArePassedToDelegates(t *testing.T) {
	t.Parallel()
	h, heard := kit.RunWithRecordingModel(t, `- {when: {tool: delegate}, text: "It is a dot."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: middle, input: "what is it?"}}]}
- {when: {system: I am middle}, calls: [{name: delegate, args: {agent: eyes, input: "look"}}]}
- {when: {system: I am eyes}, text: "A dot."}
`)
	kit.NewPersona(h, "boss", nil, "delegate")
	kit.NewPersona(h, "middle", nil, "delegate")
	kit.NewPersona(h, "eyes", nil)
	c := h.StartConversation("boss")
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
	if body := string(h.Do("GET", "/api/conversations/"+child[0].SessionID+"/messages", nil).Body); !strings.Contains(body, "dot.gif") {
		t.Errorf("a person does not see it in the other's conversation: %s", body)
	}
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "and now?").ID)
	if got := heard.MediaShownTo("I am eyes"); len(got) != 0 {
		t.Errorf("nothing was attached, and it was shown %v", got)
	}
}

// An agent that is looped in sees earlier messages with their attachments once, and the conversation shows what it
// sends.
func TestW18_LoopedInAgentSeesAttachments(t *testing.T) {
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
	c := h.StartConversation("boss")
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
