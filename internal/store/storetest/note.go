package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// notes tests notes: writing, history, search by words, and the index of vectors.
var notes = map[string]func(*testing.T, *store.DB){
	"write, update, delete and restore": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		ann := store.NoteWriter{Workspace: ws, User: "ann", Origin: reeve.NoteByPerson}
		n := saveNote(t, db, ann, "Ann drinks tea", " Food ", "DRINK", "food")
		equal(t, strings.Join(n.Tags, ","), "drink,food", "tags")
		again := saveNote(t, db, ann, "Ann drinks tea", "drink", "food")
		equal(t, again.ID, n.ID, "the id of an equal note")
		update(t, db, func(tx *store.Tx) error {
			_, _, err := tx.Notes().SaveNote(t.Context(), ann,
				reeve.Note{Content: "Ann drinks tea", Tags: n.Tags, Pinned: true})
			return err
		})
		again = view(t, db, func(s *store.Snap) (reeve.Note, error) {
			return s.Notes().GetNote(t.Context(), ws, "ann", n.ID)
		})
		equal(t, again.Pinned, true, "pinned by saving it again")
		other := saveNote(t, db, store.NoteWriter{Workspace: ws, User: "ben", Origin: reeve.NoteByPerson},
			"Ann drinks tea",
			"drink", "food")
		if other.ID == n.ID {
			t.Error("two users share a note")
		}
		var after reeve.Note
		update(t, db, func(tx *store.Tx) (err error) {
			_, after, err = tx.Notes().ChangeNote(t.Context(), store.NoteWriter{Workspace: ws, User: "ann",
				Agent:     "agt_1",
				Operation: "op_1", Origin: reeve.NoteByAgent}, n.ID,
				reeve.NoteChange{Content: new("Ann drinks coffee")})
			return err
		})
		equal(t, after.CreatedAt, n.CreatedAt, "created at")
		equal(t, fmt.Sprintf("%d %s %s %s", after.Version, after.Origin, after.OperationID, after.Tags),
			"2 agent op_1 [drink food]",
			"note")
		versions := view(t, db, func(s *store.Snap) ([]reeve.NoteVersion, error) {
			return s.Notes().ListNoteVersions(t.Context(), n.ID)
		})
		equal(t, len(versions), 1, "versions")
		equal(t, versions[0].Content+" "+string(versions[0].Origin), "Ann drinks tea person", "the first version")
		stale := n
		stale.Content = "late"
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Notes().UpdateNote(t.Context(), ws, stale)
			return err
		}); reeve.CodeOf(err) != reeve.Conflict {
			t.Errorf("an update of an old version: %v", err)
		}
		matches := func(text string, tags ...string) string {
			list := view(t, db, func(s *store.Snap) ([]store.NoteWords, error) {
				return s.Notes().MatchNotes(t.Context(), store.NoteSearch{Workspace: ws, User: "ann", Text: text,
					Tags:  tags,
					Limit: 10})
			})
			return joinIDs(list, func(m store.NoteWords) string { return m.ID })
		}
		equal(t, matches("tea"), "", "the old text")
		equal(t, matches("coffee", "food", "drink"), n.ID, "the new text")
		equal(t, matches("coffee", "food", "work"), "", "a tag that the note does not have")
		update(t, db, func(tx *store.Tx) error { return tx.Notes().DeleteNote(t.Context(), n.ID) })
		equal(t, matches("coffee"), "", "a deleted note")
		update(t, db, func(tx *store.Tx) error {
			deleted, err := tx.Notes().GetNote(t.Context(), ws, "ann", n.ID)
			return errors.Join(err, tx.Notes().RestoreNotes(t.Context(), ws, "ann", deleted))
		})
		equal(t, matches("coffee"), n.ID, "a restored note")
		var merged reeve.Note
		update(t, db, func(tx *store.Tx) (err error) {
			merged, _, err = tx.Notes().MergeNotes(t.Context(), ann, reeve.Note{Content: "Ann likes hot coffee"},
				[]string{n.ID})
			return err
		})
		equal(t, matches("coffee"), merged.ID, "after a merge")
		update(t, db, func(tx *store.Tx) error { return tx.Notes().EraseNote(t.Context(), ws, "op_2", merged) })
		equal(t, matches("coffee"), "", "after it was erased")
	},
	// The slots of an owner have no gaps, whatever is deleted, and blocks and rows agree.
	"vectors stay dense": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		r := rand.New(rand.NewPCG(1, 2))
		codes := map[string][]byte{} // by note
		w := store.NoteWriter{Workspace: ws, User: "ann", Origin: reeve.NoteByPerson}
		put := func(model string, list ...reeve.Note) {
			var vectors []store.NoteVector
			for _, n := range list {
				code := []byte{byte(r.Uint32()), byte(r.Uint32())}
				codes[n.ID] = code
				vectors = append(vectors, store.NoteVector{NoteID: n.ID, Version: n.Version, Code: code, Vector: code})
			}
			update(t, db, func(tx *store.Tx) error { return tx.Notes().PutVectors(t.Context(), model, vectors) })
		}
		check := func(model string, want []string) {
			t.Helper()
			blocks := view(t, db, func(s *store.Snap) ([][]byte, error) {
				return s.Notes().VectorCodes(t.Context(), ws, "ann", model)
			})
			all := bytes.Join(blocks, nil)
			equal(t, len(all), 2*len(want), "bytes of codes")
			var slots []int64
			for i := range want {
				slots = append(slots, int64(i))
			}
			stored := view(t, db, func(s *store.Snap) ([]store.StoredVector, error) {
				return s.Notes().VectorsAt(t.Context(), store.NoteSearch{Workspace: ws, User: "ann"}, model, slots)
			})
			equal(t, len(stored), len(want), "stored vectors")
			seen := map[string]int{}
			for _, v := range stored {
				if !bytes.Equal(v.Vector, codes[v.NoteID]) || !slices.Contains(want, v.NoteID) {
					t.Errorf("note %s has the vector %v", v.NoteID, v.Vector)
				}
				seen[string(v.Vector)]++
			}
			for i := 0; i < len(all); i += 2 {
				seen[string(all[i:i+2])]--
			}
			for code, n := range seen {
				if n != 0 {
					t.Errorf("code %x: rows and blocks differ by %d", code, n)
				}
			}
		}
		var list []reeve.Note
		for i := range 600 {
			list = append(list, saveNote(t, db, w, fmt.Sprint("note ", i)))
		}
		put("m1", list[:100]...)
		put("m1", list[100:600]...)
		var left []string
		for i, n := range list {
			if r.IntN(3) == 0 {
				update(t, db, func(tx *store.Tx) error { return tx.Notes().DeleteNote(t.Context(), n.ID) })
			} else {
				left = append(left, list[i].ID)
			}
		}
		check("m1", left)
		missing := view(t, db, func(s *store.Snap) ([]store.NoteText, error) {
			return s.Notes().NotesWithoutVector(t.Context(), "m1", 10)
		})
		equal(t, len(missing), 0, "notes without a vector")
		// another model: every vector is computed again, and the old ones go
		for {
			missing = view(t, db, func(s *store.Snap) ([]store.NoteText, error) {
				return s.Notes().NotesWithoutVector(t.Context(), "m0", 100)
			})
			if len(missing) == 0 {
				break
			}
			var again []reeve.Note
			for _, m := range missing {
				again = append(again, reeve.Note{ID: m.ID, Version: m.Version})
			}
			put("m0", again...)
		}
		check("m0", left)
		check("m1", nil)
	},
	"comparison and suggestions": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		w := store.NoteWriter{Workspace: ws, User: "ann", Origin: reeve.NoteByPerson}
		a, b := saveNote(t, db, w, "one"), saveNote(t, db, w, "two")
		uncompared := func() string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Note, error) {
				return s.Notes().ListUncompared(t.Context(), ws, "ann", 10)
			}), func(n reeve.Note) string { return n.ID })
		}
		equal(t, uncompared(), joinIDs([]reeve.Note{a, b}, func(n reeve.Note) string { return n.ID }), "new notes")
		var first, next store.NoteOwner
		for _, o := range []*store.NoteOwner{&first, &next} {
			*o = view(t, db, func(s *store.Snap) (store.NoteOwner, error) {
				o, _, err := s.Notes().NextUncomparedOwner(t.Context(), first)
				return o, err
			})
		}
		equal(t, first.User+next.User, "ann", "owners with uncompared notes")
		for i, want := range []bool{true, false} {
			update(t, db, func(tx *store.Tx) error {
				ok, err := tx.Notes().ClaimConsolidation(t.Context(), first, time.Hour)
				equal(t, ok, want, "claim %d", i)
				return err
			})
		}
		update(t, db, func(tx *store.Tx) error { return tx.Notes().MarkCompared(t.Context(), []reeve.Note{a, b}) })
		equal(t, uncompared(), "", "compared notes")
		update(t, db, func(tx *store.Tx) error {
			_, _, err := tx.Notes().ChangeNote(t.Context(), w, a.ID, reeve.NoteChange{Content: new("three")})
			return err
		})
		update(t, db, func(tx *store.Tx) error { return tx.Notes().MarkCompared(t.Context(), []reeve.Note{a}) })
		equal(t, uncompared(), a.ID, "a note that was written after it was read")
		suggestion := store.NoteSuggestion{ID: "op_1", WorkspaceID: ws, UserID: "ann", Tool: "memory_delete", Args: `{}`,
			Reason: "why"}
		for range 2 {
			update(t, db, func(tx *store.Tx) error { return tx.Notes().InsertSuggestion(t.Context(), suggestion) })
		}
		list := func() []store.NoteSuggestion {
			return view(t, db, func(s *store.Snap) ([]store.NoteSuggestion, error) {
				return s.Notes().ListSuggestions(t.Context(), ws, "ann", 10)
			})
		}
		if got := list(); len(got) != 1 || got[0] != suggestion {
			t.Errorf("got %+v", got)
		}
		update(t, db, func(tx *store.Tx) error { return tx.Notes().DeleteSuggestion(t.Context(), "op_1") })
		equal(t, len(list()), 0, "suggestions")
	},
	"import and export": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		w := store.NoteWriter{Workspace: ws, User: "ann", Origin: reeve.NoteByPerson}
		at := reeve.FromMillis(1_700_000_000_000)
		records := []reeve.NoteRecord{
			{ID: "note_1", Content: "old", Tags: []string{}, Origin: reeve.NoteByAgent, Version: 1, AgentID: "agt_1",
				OperationID: "op_1", SupersededBy: "note_2", SupersededAt: &at, ValidFrom: &at, CreatedAt: &at,
				UpdatedAt: &at},
			{ID: "note_2", Content: "new", Tags: []string{"a"}, Origin: reeve.NoteByPerson, Version: 2, Pinned: true,
				Source: "import:x", ValidFrom: &at, CreatedAt: &at, UpdatedAt: &at, Versions: []reeve.NoteVersion{{
					Version: 1, Content: "newer", Tags: []string{}, Origin: reeve.NoteUntrusted, WrittenAt: at}}},
		}
		for i, want := range []reeve.ImportOutcome{reeve.NoteCreated, reeve.NoteExists} {
			for _, r := range records {
				update(t, db, func(tx *store.Tx) error {
					got, err := tx.Notes().ImportNote(t.Context(), w, r)
					equal(t, got.Outcome, want, "import %d", i)
					return err
				})
			}
		}
		for _, limit := range []int{1, 10} {
			var got []reeve.NoteRecord
			for after := int64(0); ; {
				page := view(t, db, func(s *store.Snap) (page []reeve.NoteRecord, err error) {
					page, after, err = s.Notes().ExportNotes(t.Context(), ws, "ann", after, limit)
					return page, err
				})
				if got = append(got, page...); len(page) < limit {
					break
				}
			}
			if !reflect.DeepEqual(got, records) {
				t.Errorf("got %+v, want %+v", got, records)
			}
		}
	},
}

func saveNote(t *testing.T, db *store.DB, w store.NoteWriter, content string, tags ...string) (n reeve.Note) {
	t.Helper()
	update(t, db, func(tx *store.Tx) (err error) {
		n, _, err = tx.Notes().SaveNote(t.Context(), w, reeve.Note{Content: content, Tags: tags})
		return err
	})
	return n
}
