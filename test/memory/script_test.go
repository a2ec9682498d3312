package memory_test

import (
	"net/http"
	"slices"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A script saves, finds, updates and deletes the notes that REST and the CLI show.
func TestN01_ScriptsUseTheSameNotes(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		tea := newNote(h, "I drink black tea", "food")
		newNote(h, "The old gate code is 4711")
		h.Want(http.StatusCreated, nil, "POST", "/api/automations", kit.Object{"name": "keeper",
			"tools": []string{"memory_save", "memory_search", "memory_update", "memory_delete"}, "source": `
			await Items.withItem('a', 'A', async () => {
				const saved = await Memory.save({ content: 'Parcels go to the neighbour', tags: ['home'] })
				const tea = await Memory.search({ query: 'black tea', tags: ['food'] })
				await Memory.update({ note_id: tea.results[0].note_id, content: 'I drink green tea' })
				const gate = await Memory.search({ query: 'gate code' })
				await Memory.delete({ note_id: gate.results.find(r => r.text.includes('gate')).note_id })
				console.log(saved.note_id)
			})`})
		a := &kit.Automation{Host: h, T: t, Name: "keeper"}
		a.MustComplete()
		var list api.NoteList
		h.Want(http.StatusOK, &list, "GET", "/api/notes", nil)
		if got := sortedNotes(h); got != "I drink green tea | Parcels go to the neighbour" {
			t.Fatalf("got %s", got)
		}
		for _, n := range list.Notes {
			if n.Origin != reeve.NoteByAgent || n.OperationID == "" || n.UserID != tea.UserID {
				t.Errorf("got %+v", n)
			}
		}
		i := slices.IndexFunc(list.Notes, func(n reeve.Note) bool { return n.ID == tea.ID })
		if i < 0 || list.Notes[i].Version != 2 || !slices.Equal(list.Notes[i].Tags, []string{"food"}) {
			t.Errorf("got %+v", list.Notes)
		}
	})
}
