package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

func notes(h *reevetest.Host, query string, headers ...string) (out []string) {
	h.T.Helper()
	var l api.NoteList
	h.Want(http.StatusOK, &l, "GET", "/api/notes"+query, nil, headers...)
	for _, n := range l.Notes {
		out = append(out, n.Content)
	}
	return out
}

// TestW02_NotesAreTakenAndRecalled: the model takes notes of each turn, once, within the agent's budget; in later
// conversations it is told of those that fit and of the latest.
func TestW02_NotesAreTakenAndRecalled(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		heard := &eavesdropper{Model: script(t, `answers:
- {when: {system: /take notes/, said: /Known.*tea/}, text: 'Here: {"notes": []}'}
- {when: {system: /take notes/, said: /tea/}, text: '{"notes": ["Ann drinks tea.", "  ", "Ann works in Riga."]}'}
- {when: {system: /take notes/}, text: '{"notes": []}'}
- {when: {said: /./}, text: fine}
`)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			object{"name": "bot", "config": object{"instructions": "I am bot.", "notes": true}})
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			object{"name": "other", "config": object{"instructions": "I am other.", "notes": true}})
		d := over(h, speak(h, h.StartConversation("bot").ID, "I drink tea, in Riga").ID)
		if d.Issues.ExtractionFailed || d.Spent.Tokens == 0 {
			t.Errorf("%+v", d.Turn)
		}
		rules(t, h, d)
		if got := fmt.Sprint(notes(h, "")); got != "[Ann works in Riga. Ann drinks tea.]" {
			t.Errorf("the notes are %s", got)
		}
		// in another conversation; the same again is not taken
		over(h, speak(h, h.StartConversation("bot").ID, "what do I drink? tea?").ID)
		if got := heard.last("I am bot"); got != "user: [Your earlier notes, which may be relevant]\n- Ann "+
			"drinks tea.\n- Ann works in Riga. | user: what do I drink? tea?" {
			t.Errorf("the model was told %s", got)
		}
		if got := len(notes(h, "")); got != 2 {
			t.Errorf("there are %d notes", got)
		}
		over(h, speak(h, h.StartConversation("other").ID, "hello").ID)
		if got := heard.last("I am other"); got != "user: hello" {
			t.Errorf("another agent was told %s", got)
		}
	})
}

// TestW02_NotesThatFitAmongMany: what is recalled is bounded, and found among many of one's own and of others.
func TestW02_NotesThatFitAmongMany(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		heard := &eavesdropper{Model: script(t,
			"answers:\n- {when: {system: /take notes/}, text: '{\"notes\": []}'}\n- {when: {said: /./}, text: fine}\n")}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			object{"name": "bot", "config": object{"instructions": "I am bot.", "notes": true}})
		ann, ben := as(h, "ann", "member"), as(h, "ben", "member")
		for i := range 30 {
			h.Want(http.StatusCreated, nil, "POST", "/api/notes",
				object{"agent": "bot", "content": fmt.Sprint("Ann's sailing boat number ", i)}, ann...)
			h.Want(http.StatusCreated, nil, "POST", "/api/notes",
				object{"agent": "bot", "content": fmt.Sprint("Ben keeps a parrot, number ", i)}, ben...)
			if i == 3 {
				h.Want(http.StatusCreated, nil, "POST", "/api/notes",
					object{"agent": "bot", "content": "The parrot of Ann's mother is called Zoë"}, ann...)
			}
		}
		var c reeve.Conversation
		var turn reeve.Turn
		h.Want(http.StatusCreated, &c, "POST", "/api/conversations", object{"agent": "bot"}, ann...)
		h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
			object{"content": "who is zoe, the PARROTS?  \" OR owner:* ) '"}, ann...)
		over(h, turn.ID)
		got := heard.last("I am bot")
		if !strings.HasPrefix(got,
			"user: [Your earlier notes, which may be relevant]\n- The parrot of Ann's mother is called Zoë\n") ||
			strings.Contains(got, "Ben") || strings.Count(got, "\n- ") > 12 {
			t.Errorf("the model was told %s", got)
		}
		if !strings.Contains(got, "number 29") || strings.Contains(got, "number 20\n") {
			t.Errorf("not the latest: %s", got)
		}
	})
}

// TestO11_PagesOfNotesGoOnBehindOneThatIsGone: the note that a page ended with may be deleted before the next page is
// asked for.
func TestO11_PagesOfNotesGoOnBehindOneThatIsGone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg)
		h.Agent("bot")
		for i := range 4 {
			h.Want(http.StatusCreated, nil, "POST", "/api/notes",
				object{"agent": "bot", "content": fmt.Sprint("note ", i)})
		}
		var got []string
		for next, more := "", true; more; {
			var l api.NoteList
			h.Want(http.StatusOK, &l, "GET", "/api/notes?limit=1&cursor="+next, nil)
			for _, n := range l.Notes {
				got = append(got, n.Content)
				h.Want(http.StatusNoContent, nil, "DELETE", "/api/notes/"+n.ID, nil)
			}
			next, more = l.Next, l.Next != ""
		}
		if fmt.Sprint(got) != "[note 3 note 2 note 1 note 0]" {
			t.Errorf("the pages were %v", got)
		}
		for _, c := range []string{"note_one", "0", "-1", "1.5", "99999999999999999999"} {
			if r := h.Do("GET", "/api/notes?cursor="+c, nil); r.Status != http.StatusBadRequest {
				t.Errorf("the cursor %s: %d %s", c, r.Status, r.Body)
			}
		}
	})
}

// TestW09_NotesThatCannotBeTaken: a model that gives no notes only flags the turn.
func TestW09_NotesThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	heard := &eavesdropper{Model: script(t,
		"answers:\n- {when: {system: /take notes/}, text: 'I would rather not'}\n- {when: {said: /./}, text: fine}\n")}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		object{"name": "bot", "config": object{"instructions": "I am bot.", "notes": true}})
	d := over(h, speak(h, h.StartConversation("bot").ID, "hello").ID)
	if d.State != reeve.RunCompleted || !d.Issues.ExtractionFailed || d.Output != "fine" || len(notes(h, "")) != 0 {
		t.Errorf("%+v", d.Turn)
	}
}

// TestW22_NotesAreTakenAfterAStop: a server that is told to stop while it takes notes leaves that to the next, as one
// that is killed does.
func TestW22_NotesAreTakenAfterAStop(t *testing.T) {
	t.Parallel()
	heard := &eavesdropper{Model: script(t,
		"answers:\n- {when: {system: /take notes/}, text: wait, fail: {hang: true}}\n- {when: {said: /./}, text: "+
			"fine}\n")}
	cfg := host.Config{Dir: t.TempDir(), Model: heard}
	h := reevetest.Run(t, cfg)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		object{"name": "bot", "config": object{"instructions": "I am bot.", "notes": true}})
	turn := speak(h, h.StartConversation("bot").ID, "hello")
	eventually(t, "notes are being taken", func() bool { return heard.last("take notes") != "" })
	h.Stop()
	cfg.Model = script(t, "answers:\n- {when: {system: /take notes/}, text: '{\"notes\": [\"They said hello.\"]}'}\n- "+
		"{when: {said: /./}, text: again}\n")
	h = reevetest.Run(t, cfg)
	d := over(h, turn.ID)
	if got := fmt.Sprint(notes(h, "")); d.State != reeve.RunCompleted || d.Issues.ExtractionFailed ||
		d.Output != "fine" || got != "[They said hello.]" {
		t.Errorf("%+v, and the notes %s", d.Turn, got)
	}
}

// TestW22_AnAutomationGivesNotes: what an automation comes to that takes notes is remembered too.
func TestW22_AnAutomationGivesNotes(t *testing.T) {
	t.Parallel()
	h, heard, _ := stepper(t, object{"extraction": "notes", "notes": true},
		map[string]string{"notes": `({ notes: [input.input + ' was said'] })`})
	over(h, speak(h, h.StartConversation("bot").ID, "garden").ID)
	if got := fmt.Sprint(notes(h, "?agent=bot")); got != "[garden was said]" {
		t.Errorf("the notes are %s", got)
	}
	over(h, speak(h, h.StartConversation("bot").ID, "hello").ID)
	if got := heard.last("I am bot"); got != "user: [Your earlier notes, which may be relevant]\n- garden was "+
		"said | user: hello" {
		t.Errorf("the model was told %s", got)
	}
}

// TestO11_NotesOfOthers: a note is its user's: for others it does not exist.
func TestO11_NotesOfOthers(t *testing.T) {
	t.Parallel()
	h := reevetest.Run(t, host.Config{Dir: t.TempDir()})
	h.Agent("bot")
	ann, ben := as(h, "ann", "member"), as(h, "ben", "member")
	var n reeve.Note
	h.Want(http.StatusCreated, &n, "POST", "/api/notes", object{"agent": "bot", "content": "mine"}, ann...)
	if got := notes(h, "", ben...); len(got) != 0 {
		t.Errorf("ben sees %v", got)
	}
	none := h.Do("DELETE", "/api/notes/note_none", nil, ben...)
	his := h.Do("DELETE", "/api/notes/"+n.ID, nil, ben...)
	if his.Status != http.StatusNotFound || none.Status != his.Status || strings.ReplaceAll(string(his.Body), n.ID,
		"note_none") == "" {
		t.Errorf("%d %s, and %d %s", his.Status, his.Body, none.Status, none.Body)
	}
	if got := notes(h, ""); len(got) != 1 { // the owner
		t.Errorf("the owner sees %v", got)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/notes/"+n.ID, nil, ann...)
	if got := notes(h, "", ann...); len(got) != 0 {
		t.Errorf("ann sees %v", got)
	}
	h.Want(http.StatusCreated, &n, "POST", "/api/notes", object{"agent": "bot", "content": "still mine"}, ann...)
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/bot", nil) // forgets everybody
	if got := notes(h, "", ann...); len(got) != 0 {
		t.Errorf("of an agent that is gone, ann sees %v", got)
	}
	h.Agent("bot")
	for what, body := range map[string]object{"an unknown agent": {"agent": "nobody", "content": "x"},
		"nothing":  {"agent": "bot", "content": " "},
		"too much": {"agent": "bot", "content": strings.Repeat("ä", 1500)}} {
		if r := h.Do("POST", "/api/notes", body, ann...); r.Status < 400 || r.Status >= 500 {
			t.Errorf("%s: %d %s", what, r.Status, r.Body)
		}
	}
}
