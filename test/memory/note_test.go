package memory_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Tags are trimmed, in lower case and each once; a search may require several of them.
func TestO09_TagsAreNormalizedAndFilter(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		tea := write(h, "memory_save", kit.Object{"content": "I drink green tea", "tags": []string{" Food ", "food", "HABIT"}})
		write(h, "memory_save", kit.Object{"content": "I drink black tea at work", "tags": []string{"work"}})
		got := search(h, kit.Object{"query": "tea", "tags": []string{"FOOD", "habit"}}).Results
		if len(got) != 1 || got[0].NoteID != tea.NoteID || !slices.Equal(got[0].Tags, []string{"food", "habit"}) {
			t.Errorf("got %+v", got)
		}
		if got := search(h, kit.Object{"query": "tea", "tags": []string{"food", "work"}}).Results; len(got) != 0 {
			t.Errorf("a note with only one of the tags: %+v", got)
		}
		var many []string
		for i := range 17 {
			many = append(many, fmt.Sprint("tag", i))
		}
		for what, args := range map[string]kit.Object{
			"17 tags":   {"content": "x", "tags": many},
			"long tag":  {"content": "x", "tags": []string{strings.Repeat("t", 65)}},
			"long note": {"content": strings.Repeat("x", 8001)},
			"empty":     {"content": "  "},
		} {
			if res := call(h, "memory_save", args); res.Code != reeve.Validation {
				t.Errorf("%s: %+v", what, res)
			}
		}
		if n := len(kit.ListNotes(h, "")); n != 2 {
			t.Errorf("there are %d notes", n)
		}
	})
}

// An update keeps the id and the time of creation, replaces the text, and can be undone; so can a deletion.
func TestO09_UpdateDeleteAndUndo(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		id := write(h, "memory_save", kit.Object{"content": "Standup is at nine", "tags": []string{"work"}}).NoteID
		var before, after reeve.Note
		h.Want(http.StatusOK, &before, "GET", "/api/notes/"+id, nil)
		update := call(h, "memory_update", kit.Object{"note_id": id, "content": "Standup is at ten"})
		h.Want(http.StatusOK, &after, "GET", "/api/notes/"+id, nil)
		if after.Content != "Standup is at ten" || !after.CreatedAt.Equal(before.CreatedAt) || after.Version != 2 ||
			!slices.Equal(after.Tags, []string{"work"}) || after.OperationID != update.OperationID {
			t.Errorf("got %+v", after)
		}
		undo(h, update)
		if got := texts(h, "standup"); !slices.Equal(got, []string{"Standup is at nine"}) {
			t.Errorf("after the undo: %v", got)
		}
		deletion := call(h, "memory_delete", kit.Object{"note_id": id})
		if got := texts(h, "standup"); len(got) != 0 {
			t.Errorf("after the deletion: %v", got)
		}
		if res := call(h, "memory_update", kit.Object{"note_id": id, "content": "x"}); res.Code != reeve.NotFound {
			t.Errorf("an update of a deleted note: %+v", res)
		}
		undo(h, deletion)
		if got := texts(h, "standup"); !slices.Equal(got, []string{"Standup is at nine"}) {
			t.Errorf("after the undo of the deletion: %v", got)
		}
	})
}

// undo undoes an operation over REST.
func undo(h *reevetest.Host, res reeve.Result) {
	h.T.Helper()
	var out reeve.Result
	h.Want(http.StatusOK, &out, "POST", "/api/operations/"+res.OperationID+"/undo", kit.Object{})
	if out.IsError {
		h.T.Fatalf("undo: %+v", out)
	}
}

// A user's notes do not exist for another user, by any tool or route.
func TestN11_NotesArePrivate(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		id := write(h, "memory_save", kit.Object{"content": "Ann plans a surprise party"}, ann...).NoteID
		write(h, "memory_save", kit.Object{"content": "Ben likes parties"}, ben...)
		if got := texts(h, "surprise party", ben...); slices.Contains(got, "Ann plans a surprise party") {
			t.Errorf("Ben found %v", got)
		}
		for _, tool := range []string{"memory_delete", "memory_restore", "memory_unmerge"} {
			if res := call(h, tool, kit.Object{"note_id": id}, ben...); res.Code != reeve.NotFound {
				t.Errorf("%s: %+v", tool, res)
			}
		}
		args := kit.Object{"note_id": id, "content": "x"}
		if res := call(h, "memory_update", args, ben...); res.Code != reeve.NotFound {
			t.Errorf("memory_update: %+v", res)
		}
		for method, path := range map[string]string{"GET": "", "DELETE": "", "POST": "/forget"} {
			if r := h.Do(method, "/api/notes/"+id+path, nil, ben...); r.Status != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, path, r.Status)
			}
		}
		if got := texts(h, "surprise party", ann...); len(got) == 0 {
			t.Error("Ann's note is gone")
		}
		h.Want(http.StatusForbidden, nil, "GET", "/api/notes?user=ann", nil, ben...)
		h.Want(http.StatusOK, nil, "GET", "/api/notes?user=ben", nil, ben...)
		// An owner reads, deletes and forgets notes of others, but puts no words into their mouths.
		h.Want(http.StatusOK, nil, "GET", "/api/notes/"+id, nil)
		h.Want(http.StatusForbidden, nil, "PATCH", "/api/notes/"+id, kit.Object{"content": "Ann hates parties"})
	})
}

// A merge replaces notes; its undo restores every one of them.
func TestN07_UndoOfAMergeRestoresEveryNote(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		a := write(h, "memory_save", kit.Object{"content": "Lives in Riga"}).NoteID
		b := write(h, "memory_save", kit.Object{"content": "Moved to Tallinn, lives there now"}).NoteID
		merge := call(h, "memory_merge", kit.Object{"note_ids": []string{a, b}, "content": "Moved from Riga to Tallinn",
			"evidence": "the second contradicts the first"})
		merged := kit.DecodeResult[written](t, merge).NoteID
		if got := kit.ListNotes(h, ""); !slices.Equal(got, []string{"Moved from Riga to Tallinn"}) {
			t.Errorf("after the merge: %v", got)
		}
		var history api.NoteHistory
		h.Want(http.StatusOK, &history, "GET", "/api/notes/"+a+"/history", nil)
		if len(history.ReplacedBy) != 1 || history.ReplacedBy[0].ID != merged {
			t.Errorf("got %+v", history)
		}
		undo(h, merge)
		got := kit.ListNotes(h, "")
		slices.Sort(got)
		if !slices.Equal(got, []string{"Lives in Riga", "Moved to Tallinn, lives there now"}) {
			t.Errorf("after the undo: %v", got)
		}
	})
}

// The history of a note names its writers and operations, and no argument of a tool sets them.
func TestN02_HistoryNamesOriginAndOperation(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		var n reeve.Note
		h.Want(http.StatusCreated, &n, "POST", "/api/notes", kit.Object{"content": "Flies with hand luggage only"})
		res := call(h, "memory_update", kit.Object{"note_id": n.ID, "content": "Flies with a suitcase"})
		var history api.NoteHistory
		h.Want(http.StatusOK, &history, "GET", "/api/notes/"+n.ID+"/history", nil)
		if len(history.Versions) != 1 || history.Versions[0].Origin != reeve.NoteByPerson ||
			history.Note.Origin != reeve.NoteByAgent || history.Note.OperationID != res.OperationID {
			t.Errorf("got %+v", history)
		}
		for _, field := range []string{"origin", "operation_id", "valid_from", "superseded_by", "user_id"} {
			if res := call(h, "memory_save", kit.Object{"content": "x y z", field: "person"}); res.Code != reeve.Validation {
				t.Errorf("%s was accepted: %+v", field, res)
			}
		}
	})
}

// A note says since when it is true. Tags change nothing about that, new words do, and the undo brings it back.
func TestN02_ValidityFollowsTheText(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		since := time.Date(2024, 3, 5, 0, 0, 0, 0, time.UTC)
		h.Want(http.StatusOK, nil, "POST", "/api/notes/import", kit.Object{"notes": []kit.Object{
			{"content": "Ann works in Riga", "valid_from": since.Format(time.RFC3339), "source": "import:a"}}})
		var list api.NoteList
		h.Want(http.StatusOK, &list, "GET", "/api/notes", nil)
		id := list.Notes[0].ID
		validFrom := func() time.Time {
			t.Helper()
			var n reeve.Note
			h.Want(http.StatusOK, &n, "GET", "/api/notes/"+id, nil)
			return n.ValidFrom.UTC()
		}
		h.Want(http.StatusOK, nil, "PATCH", "/api/notes/"+id, kit.Object{"tags": []string{"work"}})
		kit.Equal(t, validFrom(), since, "after a change of tags")
		res := call(h, "memory_update", kit.Object{"note_id": id, "content": "Ann works in Tallinn"})
		if got := validFrom(); time.Since(got) > time.Hour {
			t.Errorf("the new text is valid from %s", got)
		}
		var history api.NoteHistory
		h.Want(http.StatusOK, &history, "GET", "/api/notes/"+id+"/history", nil)
		if last := history.Versions[len(history.Versions)-1]; last.ValidFrom == nil || !last.ValidFrom.Equal(since) {
			t.Errorf("the earlier version: %+v", last)
		}
		undo(h, res)
		kit.Equal(t, validFrom(), since, "after the undo")
	})
}

// Forgetting erases the text from notes, calls, messages and outputs, and leaves a tombstone.
func TestN09_ForgettingErasesEveryQuote(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		const secret = `My "therapist" is Dr. Ozols, on Mondays`
		id := write(h, "memory_save", kit.Object{"content": secret}).NoteID
		search(h, kit.Object{"query": "therapist"})
		call(h, "memory_update", kit.Object{"note_id": id, "content": "I see nobody on Mondays"})
		var home reeve.Category
		h.Want(http.StatusCreated, &home, "POST", "/api/journal/categories", kit.Object{"name": "Home"})
		for _, q := range []kit.Object{{"title": "He said: " + secret}, {"title": "Call", "description": secret},
			{"title": "Buy milk", "description": "two bottles"}} {
			q["category_id"] = home.ID
			h.Want(http.StatusCreated, nil, "POST", "/api/journal/tasks", q)
		}
		var e reeve.NoteErasure
		h.Want(http.StatusOK, &e, "POST", "/api/notes/"+id+"/forget", kit.Object{})
		if e.Erased["calls"] < 3 || e.Erased["changes"] != 2 || len(e.NotReached) == 0 {
			t.Errorf("got %+v", e)
		}
		if text := string(h.Do("GET", "/api/changes", nil).Body); strings.Contains(text, "therapist") ||
			!strings.Contains(text, "[forgotten]") || !strings.Contains(text, "two bottles") {
			t.Errorf("changes: %s", text)
		}
		for _, path := range []string{"/api/notes?history=true", "/api/operations?limit=100"} {
			r := h.Do("GET", path, nil)
			if body := string(r.Body); strings.Contains(body, "Ozols") || strings.Contains(body, "nobody on Mondays") {
				t.Errorf("%s still has the text: %s", path, body)
			}
		}
		for _, m := range kit.ListThread(h, "bot", "") {
			if text := fmt.Sprintf("%s %s", m.Content, m.Metadata); strings.Contains(text, "Ozols") {
				t.Errorf("a message still has the text: %s", text)
			}
		}
		if r := h.Do("GET", "/api/notes/"+id, nil); r.Status != http.StatusNotFound {
			t.Errorf("the note is still there: %d", r.Status)
		}
	})
}

// A change that names the version it is based on replaces no newer text. A pin is no new version.
func TestO09_AChangeReplacesNoNewerText(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		n := newNote(h, "The gate code is 4711")
		path := "/api/notes/" + n.ID
		h.Want(http.StatusOK, nil, "PATCH", path, kit.Object{"pinned": true})
		h.Want(http.StatusOK, &n, "PATCH", path, kit.Object{"content": "The gate code is 4712", "base_version": 1})
		r := h.Do("PATCH", path, kit.Object{"content": "The gate code is 4713", "base_version": 1})
		if r.Status != http.StatusConflict || !strings.Contains(string(r.Body), "has version 2") {
			t.Errorf("a change based on an old version: %d %s", r.Status, r.Body)
		}
		kit.Equal(t, kit.ListNotes(h, "")[0], "The gate code is 4712", "the newer text")
		h.Want(http.StatusOK, nil, "PATCH", path, kit.Object{"content": "The gate code is 4713", "base_version": n.Version})
	})
}
