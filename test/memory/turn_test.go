package memory_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The model takes notes of each turn once, within the agent's budget. Later conversations get the relevant notes and
// the latest.
func TestW02_NotesAreTakenAndRecalled(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, `answers:
- {when: {system: /take notes/, said: /Known.*tea/}, text: 'Here: {"notes": []}'}
- {when: {system: /take notes/, said: /tea/}, text: '{"notes": ["Ann drinks tea.", "  ", "Ann works in Riga."]}'}
- {when: {system: /take notes/}, text: '{"notes": []}'}
- {when: {said: /./}, text: fine}
`)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "notes": true}})
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			kit.Object{"name": "other", "config": kit.Object{"instructions": "I am other.", "notes": true}})
		d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "I drink tea, in Riga").ID)
		if d.Issues.ExtractionFailed || d.Spent.Tokens == 0 {
			t.Errorf("%+v", d.Turn)
		}
		kit.CheckTurn(t, h, d)
		if got := fmt.Sprint(kit.ListNotes(h, "")); got != "[Ann works in Riga. Ann drinks tea.]" {
			t.Errorf("the notes are %s", got)
		}
		// in another conversation; the same again is not taken
		kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "what do I drink? tea?").ID)
		if got := heard.LastPrompt("I am bot"); got != "user: [Your earlier notes, which may be relevant]\n- Ann "+
			"drinks tea.\n- Ann works in Riga. | user: what do I drink? tea?" {
			t.Errorf("the model was told %s", got)
		}
		if got := len(kit.ListNotes(h, "")); got != 2 {
			t.Errorf("there are %d notes", got)
		}
		// notes belong to the user, so another agent gets them too
		kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("other").ID, "hello").ID)
		if got := heard.LastPrompt("I am other"); !strings.Contains(got, "Ann drinks tea.") {
			t.Errorf("another agent was told %s", got)
		}
	})
}

// Recall is bounded and finds the relevant notes among many of the user's own and of others.
func TestW02_RelevantNotesAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t,
			"answers:\n- {when: {system: /take notes/}, text: '{\"notes\": []}'}\n- {when: {said: /./}, text: fine}\n")}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "notes": true}})
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		for i := range 30 {
			h.Want(http.StatusCreated, nil, "POST", "/api/notes",
				kit.Object{"content": fmt.Sprint("Ann's sailing boat number ", i)}, ann...)
			h.Want(http.StatusCreated, nil, "POST", "/api/notes",
				kit.Object{"content": fmt.Sprint("Ben keeps a parrot, number ", i)}, ben...)
			if i == 3 {
				h.Want(http.StatusCreated, nil, "POST", "/api/notes",
					kit.Object{"content": "The parrot of Ann's mother is called Zoë"}, ann...)
			}
		}
		var c reeve.Conversation
		var turn reeve.Turn
		h.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "bot"}, ann...)
		h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
			kit.Object{"content": "who is zoe, the PARROTS?  \" OR owner:* ) '"}, ann...)
		kit.WaitForTurn(h, turn.ID)
		got := heard.LastPrompt("I am bot")
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

// The last note of a page may be deleted before the next page is requested.
func TestO11_PagesOfNotesSurviveADeletion(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg)
		h.Agent("bot")
		for i := range 4 {
			h.Want(http.StatusCreated, nil, "POST", "/api/notes",
				kit.Object{"content": fmt.Sprint("note ", i)})
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

// A model that returns no notes only flags the turn.
func TestW09_NotesThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	heard := &kit.RecordingModel{Model: kit.ScriptedModel(t,
		"answers:\n- {when: {system: /take notes/}, text: 'I would rather not'}\n- {when: {said: /./}, text: fine}\n")}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "notes": true}})
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hello").ID)
	if d.State != reeve.RunCompleted || !d.Issues.ExtractionFailed || d.Output != "fine" ||
		len(kit.ListNotes(h, "")) != 0 {
		t.Errorf("%+v", d.Turn)
	}
}

// A server that stops while it takes notes leaves that to the next one, as after a kill.
func TestW22_NotesAreTakenAfterAStop(t *testing.T) {
	t.Parallel()
	heard := &kit.RecordingModel{Model: kit.ScriptedModel(t,
		"answers:\n- {when: {system: /take notes/}, text: wait, fail: {hang: true}}\n- {when: {said: /./}, text: "+
			"fine}\n")}
	cfg := host.Config{Dir: t.TempDir(), Model: heard}
	h := reevetest.Run(t, cfg)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "notes": true}})
	turn := kit.StartTurn(h, h.StartConversation("bot").ID, "hello")
	kit.Eventually(t, "notes are being taken", func() bool { return heard.LastPrompt("take notes") != "" })
	h.Stop()
	cfg.Model = kit.ScriptedModel(t,
		"answers:\n- {when: {system: /take notes/}, text: '{\"notes\": [\"They said hello.\"]}'}\n- "+
			"{when: {said: /./}, text: again}\n")
	h = reevetest.Run(t, cfg)
	d := kit.WaitForTurn(h, turn.ID)
	if got := fmt.Sprint(kit.ListNotes(h, "")); d.State != reeve.RunCompleted || d.Issues.ExtractionFailed ||
		d.Output != "fine" || got != "[They said hello.]" {
		t.Errorf("%+v, and the notes %s", d.Turn, got)
	}
}

// A note belongs to its user. For others it does not exist.
func TestO11_NotesOfOthers(t *testing.T) {
	t.Parallel()
	h := reevetest.Run(t, host.Config{Dir: t.TempDir()})
	h.Agent("bot")
	ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
	var n reeve.Note
	h.Want(http.StatusCreated, &n, "POST", "/api/notes", kit.Object{"content": "mine"}, ann...)
	if got := kit.ListNotes(h, "", ben...); len(got) != 0 {
		t.Errorf("ben sees %v", got)
	}
	none := h.Do("DELETE", "/api/notes/note_none", nil, ben...)
	his := h.Do("DELETE", "/api/notes/"+n.ID, nil, ben...)
	if his.Status != http.StatusNotFound || none.Status != his.Status || strings.ReplaceAll(string(his.Body), n.ID,
		"note_none") == "" {
		t.Errorf("%d %s, and %d %s", his.Status, his.Body, none.Status, none.Body)
	}
	if got := kit.ListNotes(h, ""); len(got) != 1 { // the owner
		t.Errorf("the owner sees %v", got)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/notes/"+n.ID, nil, ann...)
	if got := kit.ListNotes(h, "", ann...); len(got) != 0 {
		t.Errorf("ann sees %v", got)
	}
	h.Want(http.StatusCreated, &n, "POST", "/api/notes", kit.Object{"content": "still mine"}, ann...)
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/bot", nil) // notes belong to the user
	if got := kit.ListNotes(h, "", ann...); len(got) != 1 {
		t.Errorf("after the agent was deleted, ann sees %v", got)
	}
	h.Agent("bot")
	for what, body := range map[string]kit.Object{"an unknown field": {"agent": "nobody", "content": "x"},
		"nothing":  {"content": " "},
		"too much": {"content": strings.Repeat("ä", 4001)}} {
		if r := h.Do("POST", "/api/notes", body, ann...); r.Status < 400 || r.Status >= 500 {
			t.Errorf("%s: %d %s", what, r.Status, r.Body)
		}
	}
}
