package memory

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"reeve"
	"reeve/internal/embed"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// A search by meaning finds what another server has added since the last search, and what has moved to the slot of a
// deleted note.
func TestN05_KeptCodesFollowChanges(t *testing.T) {
	t.Parallel()
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), e, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const workspace, user = "ws", "ann"
	update := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Update(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *store.Tx) error {
		_, err := tx.Agents().InsertWorkspace(t.Context(), workspace, "Test")
		return err
	})
	config := NotesConfig{DB: db, Encoder: embed.NewLocal()}
	notes, other := NewNotes(config), NewNotes(config)
	add := func(content string) (id string) {
		t.Helper()
		update(func(tx *store.Tx) error {
			id = tx.NewID(reeve.PrefixNote)
			_, err := tx.Notes().InsertNote(t.Context(), workspace, reeve.Note{ID: id, UserID: user,
				Origin: reeve.NoteByPerson, Content: content})
			return err
		})
		if _, err := other.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return id
	}
	found := func(text, id string) bool {
		t.Helper()
		r, err := notes.Recall(t.Context(), reeve.NoteQuery{WorkspaceID: workspace, UserID: user, Text: text, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(r.Hits, func(h reeve.NoteHit) bool {
			return h.ID == id && slices.Equal(h.Matched, []string{"meaning"})
		})
	}
	first := add("The quarterly tax report is due in April")
	if found("what pets live with us?", first) {
		t.Error("an unrelated note was found")
	}
	pets := add("We have a cat and two dogs at home")
	for range 2 { // from the database, then from memory
		if !found("which animals do I own?", pets) {
			t.Error("a note that another server added was not found")
		}
	}
	update(func(tx *store.Tx) error { return tx.Notes().DeleteNote(t.Context(), first) })
	if !found("which animals do I own?", pets) {
		t.Error("a note that got another slot was not found")
	}
}

// What is kept is bounded in bytes and users. The user who searched last stays.
func TestN05_KeptCodesAreBounded(t *testing.T) {
	t.Parallel()
	var c codeCache
	block := make([]byte, maxKeptCodes/4)
	for i := range 6 {
		c.keep(keptCodes{user: fmt.Sprint(i), blocks: [][]byte{block}})
		if _, ok := c.find("", "0", ""); !ok {
			t.Fatalf("user 0 was dropped after %d others", i)
		}
	}
	if _, ok := c.find("", "1", ""); ok || len(c.kept) != 4 {
		t.Errorf("%d users are kept", len(c.kept))
	}
	for i := range 2 * maxKeptUsers {
		c.keep(keptCodes{user: fmt.Sprint("small ", i)})
	}
	if len(c.kept) != maxKeptUsers {
		t.Errorf("%d users are kept", len(c.kept))
	}
	c.keep(keptCodes{user: "large", blocks: [][]byte{block, block, block, block, block}})
	if _, ok := c.find("", "large", ""); ok || len(c.kept) != maxKeptUsers {
		t.Errorf("%d users are kept beside one with too many notes", len(c.kept))
	}
}
