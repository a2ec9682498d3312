package memory_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An exact duplicate is not stored twice.
func TestN06_DuplicatesAreNotStored(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		first := write(h, "memory_save", kit.Object{"content": "The gate code is on the fridge"})
		second := write(h, "memory_save", kit.Object{"content": " The gate code is on the fridge "})
		if first.Duplicate || !second.Duplicate || second.NoteID != first.NoteID {
			t.Errorf("got %+v and %+v", first, second)
		}
	})
}

// Concurrent requests that save or import equal notes store each once.
func TestN06_N13_ConcurrentDuplicatesAreStoredOnce(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		var imported []kit.Object
		for i := range 20 {
			imported = append(imported, kit.Object{"content": fmt.Sprintf("imported fact %d", i), "source": "a.md"})
		}
		requests := []func() int{
			func() int {
				return h.Do("POST", "/api/notes", kit.Object{"content": "a fact"}).Status
			},
			func() int {
				return h.Do("POST", "/api/agents/bot/calls", kit.Object{"tool": "memory_save",
					"args": kit.Object{"content": "a fact"}}).Status
			},
			func() int {
				return h.Do("POST", "/api/notes/import", kit.Object{"notes": imported}).Status
			},
		}
		start := make(chan struct{})
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				<-start
				if status := requests[i%len(requests)](); status != http.StatusOK && status != http.StatusCreated {
					t.Errorf("request %d: status %d", i%len(requests), status)
				}
			})
		}
		close(start)
		all.Wait()
		got := kit.ListNotes(h, "?limit=100")
		slices.Sort(got)
		if len(got) != 21 || len(slices.Compact(slices.Clone(got))) != 21 {
			t.Errorf("got %d notes: %q", len(got), got)
		}
	})
}

// A note cannot become equal to another one by an update or a restore, over REST or by a tool. The error names the
// other note.
func TestN06_UpdatesAndRestoresMakeNoDuplicates(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		tea, coffee := newNote(h, "I drink tea"), newNote(h, "I drink coffee")
		refused := func(what string, other reeve.Note, status int, text string) {
			t.Helper()
			if status != http.StatusConflict || !strings.Contains(text, "note "+other.ID+" already has this text") {
				t.Errorf("%s: %d %s", what, status, text)
			}
		}
		request := func(what string, other reeve.Note, method, path string, body any) {
			t.Helper()
			r := h.Do(method, path, body)
			refused(what, other, r.Status, string(r.Body))
		}
		called := func(what string, other reeve.Note, tool string, args kit.Object) {
			t.Helper()
			status := http.StatusOK
			res := call(h, tool, args)
			if res.Code == reeve.Conflict {
				status = http.StatusConflict
			}
			refused(what, other, status, res.Message)
		}
		request("an update", tea, "PATCH", "/api/notes/"+coffee.ID, kit.Object{"content": " I drink tea"})
		called("memory_update", tea, "memory_update", kit.Object{"note_id": coffee.ID, "content": "I drink tea"})
		h.Want(http.StatusOK, nil, "PATCH", "/api/notes/"+coffee.ID, kit.Object{"content": "I drink coffee"})
		h.Want(http.StatusOK, nil, "PATCH", "/api/notes/"+coffee.ID, kit.Object{"content": "I drink tea",
			"tags": []string{"work"}}) // other tags
		request("an update of tags", tea, "PATCH", "/api/notes/"+coffee.ID, kit.Object{"tags": []string{}})

		h.Want(http.StatusNoContent, nil, "DELETE", "/api/notes/"+tea.ID, nil)
		again := newNote(h, "I drink tea")
		request("a restore", again, "POST", "/api/notes/"+tea.ID+"/restore", kit.Object{})
		called("memory_restore", again, "memory_restore", kit.Object{"note_id": tea.ID})
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/notes/"+again.ID, nil)
		h.Want(http.StatusOK, nil, "POST", "/api/notes/"+tea.ID+"/restore", kit.Object{})

		merged := write(h, "memory_merge", kit.Object{"note_ids": []string{tea.ID, coffee.ID}, "content": "I drink both"})
		again = newNote(h, "I drink tea")
		called("memory_unmerge", again, "memory_unmerge", kit.Object{"note_id": merged.NoteID})
		write(h, "memory_delete", kit.Object{"note_id": again.ID})
		write(h, "memory_update", kit.Object{"note_id": merged.NoteID, "content": "I drink tea"})
		write(h, "memory_unmerge", kit.Object{"note_id": merged.NoteID})
		got := kit.ListNotes(h, "")
		if slices.Sort(got); !slices.Equal(got, []string{"I drink tea", "I drink tea"}) { // with other tags
			t.Errorf("got %q", got)
		}
	})
}
