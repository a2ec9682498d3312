package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"reeve"
	"reeve/api"
)

var wrongNotes = []rowCount{
	{"notes other than the four expected", `SELECT count(*) - 4 FROM notes`},
	{"notes with the same text", `SELECT count(*) - count(DISTINCT content) FROM notes WHERE superseded_by = ''`},
	{"notes with the old text", `SELECT count(*) FROM notes WHERE content = 'Standup is at nine'`},
	{"earlier versions other than the one expected",
		`SELECT count(*) - 1 FROM note_versions WHERE content = 'Standup is at nine'`},
	{"forgotten notes other than the one expected", `SELECT count(*) - 1 FROM note_tombstones`},
	{"quotes of the forgotten note", `SELECT count(*) FROM calls WHERE args LIKE '%therapist%'`},
	{"tags of notes that are gone", `SELECT count(*) FROM note_tags WHERE note_id NOT IN (SELECT id FROM notes)`},
	{"merged notes other than the one expected", `SELECT count(*) - 1 FROM notes WHERE superseded_by <> ''`},
	{"proposals other than the one expected", `SELECT count(*) - 1 FROM proposals`},
	{"suggestions that were not proposed", `SELECT count(*) FROM note_suggestions`},
	{"current notes that were not compared",
		`SELECT count(*) FROM notes WHERE compared < version AND superseded_by = '' AND deleted_at = 0`},
	{"vectors of notes that are not current", `SELECT count(*) FROM note_vectors v JOIN notes n ON n.id = v.note_id
		WHERE n.superseded_by <> '' OR n.deleted_at > 0 OR n.vector_model <> v.model`},
	{"vectors that no set counts",
		`SELECT count(*) - COALESCE((SELECT sum(vectors) FROM note_vector_sets), 0) FROM note_vectors`},
	{"current notes without a vector", `SELECT count(*) FROM notes WHERE superseded_by = '' AND deleted_at = 0
		AND id NOT IN (SELECT note_id FROM note_vectors)`},
}

// TestN07_KillAtEveryCommitOfNotes kills the real server before and after every commit of saving, updating, importing,
// forgetting and merging notes. Afterwards the ledger, the index and the vectors agree.
func TestN07_KillAtEveryCommitOfNotes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			err := c.do(ctx, "POST", "/api/agents", object{"name": "bot", "config": object{}}, nil)
			for _, tool := range []string{"memory_save", "memory_update"} {
				err = errors.Join(err, c.do(ctx, "POST", "/api/agents/bot/tools", object{"tool_id": tool}, nil))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 8, r.driveNotes, r.checkNotes)
	}
}

// driveNotes makes all changes, each under its own key, so that a repeated drive completes an interrupted one.
func (r *rig) driveNotes(ctx context.Context, w world, p *process) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	call := func(key, tool string, args object) (string, error) {
		var res reeve.Result
		err := c.do(ctx, "POST", "/api/agents/bot/calls", object{"tool": tool, "args": args}, &res, "Idempotency-Key",
			key)
		if err == nil && res.IsError {
			err = fmt.Errorf("%s: %s", tool, res.Message)
		}
		var out struct {
			NoteID string `json:"note_id"`
		}
		if err == nil {
			err = json.Unmarshal([]byte(res.Content), &out)
		}
		return out.NoteID, err
	}
	standup, err := call("save", "memory_save", object{"content": "Standup is at nine", "tags": []string{"work"}})
	if err != nil {
		return err
	}
	secret, err := call("secret", "memory_save", object{"content": "My therapist is Dr. Ozols"})
	if err != nil {
		return err
	}
	if _, err := call("update", "memory_update", object{"note_id": standup, "content": "Standup is at ten"}); err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/notes/import", object{"notes": []object{
		{"content": "Spare key is with Marta", "source": "import:a.md"},
		{"content": "The spare key is with Marta", "source": "import:a.md"},
		{"content": "Karlis fixes the heating", "source": "import:a.md"}}}, nil, "Idempotency-Key", "import"); err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/notes/"+secret+"/forget", object{}, nil, "Idempotency-Key", "forget"); err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/notes/consolidate", nil, nil, "Idempotency-Key", "consolidate"); err != nil {
		return err
	}
	var proposed api.ProposalList
	if err := c.do(ctx, "GET", "/api/proposals", nil, &proposed); err != nil {
		return err
	}
	for _, p := range proposed.Proposals {
		if err := c.do(ctx, "POST", "/api/proposals/"+p.ID+"/accept", object{}, nil); err != nil {
			return err
		}
	}
	if err := poll(ctx, "the proposals", func() (bool, error) {
		err := c.do(ctx, "GET", "/api/proposals", nil, &proposed)
		isOpen := func(p reeve.Proposal) bool { return p.State != reeve.ProposalApplied }
		return !slices.ContainsFunc(proposed.Proposals, isOpen), err
	}); err != nil {
		return err
	}
	return poll(ctx, "the vectors", func() (bool, error) {
		var got api.NoteSearch
		err := c.do(ctx, "GET", "/api/notes/search?q=standup&limit=10", nil, &got)
		db, opened := w.open()
		if err := errors.Join(err, opened); err != nil {
			return false, err
		}
		defer func() { _ = db.Close() }()
		var missing int
		err = db.QueryRowContext(ctx, wrongNotes[len(wrongNotes)-1].query).Scan(&missing)
		return missing == 0 && len(got.Notes) > 0, err
	})
}

// checkNotes checks that no forbidden rows exist, and on SQLite that the index of words agrees with the notes.
func (r *rig) checkNotes(ctx context.Context, w world) error {
	err := r.checkRows(ctx, w, slices.Concat(forbiddenRows, wrongNotes))
	if err != nil || w.database != "" {
		return err
	}
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "INSERT INTO notes_words (notes_words, rank) VALUES ('integrity-check', 1)")
	return err
}
