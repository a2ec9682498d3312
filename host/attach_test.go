package host_test

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
	"reeve/model"
	"reeve/reevetest"
)

var png = []byte("\x89PNG\r\n\x1a\n and what makes a picture")

// gallery serves pictures and other things, and counts how often it is asked.
type gallery struct {
	*httptest.Server
	asked atomic.Int64
}

func newGallery(t *testing.T) *gallery {
	g := &gallery{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		switch r.URL.Path {
		case "/cat.png":
			w.Header().Set("Content-Type", "application/octet-stream") // what it is shows
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

// picture gives the media of what a model was last asked.
func (l *eavesdropper) picture() (list []model.Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.asked[len(l.asked)-1].Messages {
		for _, p := range m.Parts {
			if p.Type == model.Media {
				list = append(list, p)
			}
		}
	}
	return list
}

func visitor(t *testing.T) (*reevetest.Host, *eavesdropper, *gallery) {
	t.Helper()
	g, heard := newGallery(t), &eavesdropper{Model: script(t, "answers:\n- {text: seen, when: {said: /./}}\n")}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard,
		HTTPAllow: []string{strings.TrimPrefix(g.URL, "http://")}})
	h.Agent("bot")
	return h, heard, g
}

// TestW02_AttachmentsByAddressAreFetched: the server reads what is attached by its address, once, so that any model is
// given bytes, also in later turns.
func TestW02_AttachmentsByAddressAreFetched(t *testing.T) {
	t.Parallel()
	h, heard, g := visitor(t)
	c := h.StartConversation("bot")
	body := object{"content": "look", "attachments": []object{{"media_type": "image/png", "url": g.URL + "/cat.png"}}}
	var first, again reeve.Turn
	h.Want(http.StatusCreated, &first, "POST", "/api/conversations/"+c.ID+"/turns", body, "Idempotency-Key", "k")
	over(h, first.ID)
	if list := heard.picture(); len(list) != 1 || !bytes.Equal(list[0].Data, png) || list[0].URL != "" ||
		list[0].MediaType != "image/png" {
		t.Errorf("the model was shown %+v", list)
	}
	g.Close() // it is not there any more, and need not be
	h.Want(http.StatusCreated, &again, "POST", "/api/conversations/"+c.ID+"/turns", body, "Idempotency-Key", "k")
	if again.ID != first.ID {
		t.Errorf("the same key began another turn: %+v", again)
	}
	body["attachments"] = []object{{"media_type": "image/png", "url": g.URL + "/dog.png"}}
	h.Want(http.StatusConflict, nil, "POST", "/api/conversations/"+c.ID+"/turns", body, "Idempotency-Key", "k")
	over(h, speak(h, c.ID, "and again").ID)
	if list := heard.picture(); len(list) != 1 || !bytes.Equal(list[0].Data, png) {
		t.Errorf("in the next turn the model was shown %+v", list)
	}
	if n := g.asked.Load(); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}

// TestW02_AttachmentsThatCannotBeFetched: an error that says which and why, no turn, and a conversation that goes on.
func TestW02_AttachmentsThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	h, heard, g := visitor(t)
	other := newGallery(t) // which no operator has allowed
	gone := newGallery(t)
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
		g.URL + "/page": {http.StatusBadRequest, reeve.Validation,
			"is not image/png but text/html"},
		g.URL + "/tired":            {http.StatusServiceUnavailable, reeve.Unavailable, "responded 503"},
		g.URL + "/huge":             {http.StatusRequestEntityTooLarge, reeve.TooLarge, "more than"},
		"ftp://example.com/cat.png": {http.StatusBadRequest, reeve.Validation, "web address"},
	} {
		r := h.Do("POST", "/api/conversations/"+c.ID+"/turns",
			object{"content": "look",
				"attachments": []object{{"media_type": "image/png", "data": base64.StdEncoding.EncodeToString(png)},
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
	if list := turns(h, c.ID); len(list) != 0 || len(heard.asked) != 0 {
		t.Errorf("%+v", list)
	}
	if d := over(h, speak(h, c.ID, "go on").ID); d.State != reeve.RunCompleted {
		t.Errorf("%+v", d.Turn)
	}
}

// TestW23_PicturesByAddress: an OpenAI client's image_url is fetched too, whatever its type turns out to be, also in
// what was said before.
func TestW23_PicturesByAddress(t *testing.T) {
	t.Parallel()
	h, heard, g := visitor(t)
	seen := object{"type": "image_url", "image_url": object{"url": g.URL + "/cat.png"}}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", object{"model": "bot", "messages": []object{
		{"role": "user", "content": []object{{"type": "text", "text": "one"}, seen}},
		{"role": "assistant", "content": "a cat"},
		{"role": "user", "content": []object{{"type": "text", "text": "two"}, seen}}}})
	list := heard.picture()
	if len(list) != 2 {
		t.Fatalf("the model was shown %+v", list)
	}
	for _, p := range list {
		if !bytes.Equal(p.Data, png) || p.URL != "" || p.MediaType != "image/png" {
			t.Errorf("the model was shown %+v", p)
		}
	}
	h.Want(http.StatusOK, nil, "POST", "/v1/responses",
		object{"model": "bot", "input": []object{{"role": "user",
			"content": []object{{"type": "input_image", "image_url": g.URL + "/cat.png"}}}}})
	if list := heard.picture(); len(list) != 1 || !bytes.Equal(list[0].Data, png) {
		t.Errorf("the model was shown %+v", list)
	}
	r := h.Do("POST", "/v1/chat/completions",
		object{"model": "bot", "messages": []object{{"role": "user",
			"content": []object{{"type": "image_url", "image_url": object{"url": g.URL + "/none"}}}}}})
	if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "responded 404") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestW23_PicturesAreChecked: what an OpenAI client sends along is checked like every attachment.
func TestW23_PicturesAreChecked(t *testing.T) {
	t.Parallel()
	h, _, _ := visitor(t)
	picture := func(kind string, data []byte) object {
		return object{"type": "image_url", "image_url": object{"url": "data:" + kind + ";base64," +
			base64.StdEncoding.EncodeToString(data)}}
	}
	say := func(parts ...object) reevetest.Reply {
		return h.Do("POST", "/v1/chat/completions",
			object{"model": "bot", "messages": []object{{"role": "user", "content": parts}}})
	}
	good := picture("image/png", png)
	if r := say(good); r.Status != http.StatusOK {
		t.Errorf("a picture: %d %s", r.Status, r.Body)
	}
	many := make([]object, 21)
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
