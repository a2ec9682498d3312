package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"reeve"
)

const noteColumns = `o.id, o.user_id, o.agent_id, o.conversation_id, o.turn_id, o.content, o.created_at`

func scanNote(r scanner) (n reeve.Note, err error) { return n, scanNoteInto(r, &n) }

func scanNoteInto(r scanner, n *reeve.Note, more ...any) (err error) {
	defer wrapCorrupt("notes", &n.ID, &err)
	var created int64
	err = r.Scan(append([]any{&n.ID, &n.UserID, &n.AgentID, &n.ConversationID, &n.TurnID, &n.Content, &created},
		more...)...)
	n.CreatedAt = reeve.FromMillis(created)
	return err
}

// noteOwner returns one search word that identifies the notes of an agent about a user.
func noteOwner(workspace, agent, user string) string {
	return strings.ReplaceAll(reeve.DeriveID("o", workspace, agent, user), "_", "")
}

// ExtractedNoteID returns the id of a note that is extracted from a turn. Equal content has the same id, so that a note
// is stored only once.
func ExtractedNoteID(workspace, agent, user, content string) string {
	return reeve.DeriveID(reeve.PrefixNote, workspace, agent, user, content)
}

// InsertNote inserts a note. It does nothing if a note with the id exists.
func (t NotesTx) InsertNote(ctx context.Context, workspace string, n reeve.Note) error {
	return t.tx.exec(ctx, `INSERT INTO notes (id, workspace_id, owner, user_id, agent_id, conversation_id, turn_id,
		content, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`,
		n.ID, workspace, noteOwner(workspace, n.AgentID, n.UserID), n.UserID, n.AgentID, n.ConversationID, n.TurnID,
		reeve.SanitizeText(n.Content), reeve.Millis(t.now))
}

// DeleteNote deletes a note of a workspace. If user is not empty, the note must belong to the user.
func (t NotesTx) DeleteNote(ctx context.Context, workspace, user, id string) error {
	n, err := t.tx.execCount(ctx, `DELETE FROM notes WHERE id = $2 AND workspace_id = $1 AND ($3 = '' OR user_id = $3)`,
		workspace, id, user)
	if err == nil && n == 0 {
		err = notFound("note", id)
	}
	return err
}

// NoteFilter restricts a list of notes. Empty fields do not restrict it.
type NoteFilter struct {
	User   string
	Agent  string // an agent's id
	Before int64  // the next value of the previous page
	Limit  int
}

// ListNotes returns a page of notes, newest first, and the position of the next page. The position stays valid when a
// note is deleted.
func (s Notes) ListNotes(ctx context.Context, workspace string,
	f NoteFilter) (notes []reeve.Note, next int64, err error) {
	type positioned struct {
		reeve.Note
		n int64
	}
	list, err := queryAll(ctx, s.Snap, func(r scanner) (v positioned, err error) {
		return v, scanNoteInto(r, &v.Note,
			&v.n)
	},
		`SELECT `+noteColumns+`, o.n FROM notes o WHERE o.workspace_id = $1 AND ($2 = '' OR o.user_id = $2) AND ($3 = ''
			OR o.agent_id = $3) AND o.n < $4 ORDER BY o.n DESC LIMIT $5`,
		workspace, f.User, f.Agent, cmp.Or(f.Before, math.MaxInt64), f.Limit)
	notes = make([]reeve.Note, len(list))
	for i, v := range list {
		notes[i], next = v.Note, v.n
	}
	return notes, next, err
}

// maxSearchTerms bounds the number of words by which notes are searched.
const maxSearchTerms = 32

// RecallNotes returns an agent's notes about a user: up to fit notes that share words with text, best first, then up to
// latest of the newest notes.
func (s Notes) RecallNotes(ctx context.Context, workspace, agent, user, text string,
	fit, latest int) ([]reeve.Note, error) {
	owner := noteOwner(workspace, agent, user)
	var found []reeve.Note
	if words := searchTerms(text); len(words) > 0 {
		var err error
		if s.db.Engine() == "postgres" {
			for i, w := range words {
				words[i] = "'" + stripMarks(w) + "'"
			}
			found, err = queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o, to_tsquery('reeve_mail',
				$2) q WHERE o.owner = $1 AND o.words @@ q
				ORDER BY ts_rank(o.words, q) DESC, o.n DESC LIMIT $3`, owner, strings.Join(words, " | "), fit)
		} else {
			for i, w := range words {
				words[i] = `"` + w + `"`
			}
			found, err = queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes_words JOIN notes o
				ON o.n = notes_words.rowid WHERE notes_words MATCH $1
				ORDER BY bm25(notes_words, 0.0, 1.0), o.n DESC LIMIT $2`, `owner : "`+owner+`"
				AND content : (`+strings.Join(words, " OR ")+`)`, fit)
		}
		if err != nil {
			return nil, err
		}
	}
	last, err := queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+
		` FROM notes o WHERE o.owner = $1 ORDER BY o.n DESC LIMIT $2`, owner, latest)
	for _, n := range last {
		if !slices.ContainsFunc(found, func(f reeve.Note) bool { return f.ID == n.ID }) {
			found = append(found, n)
		}
	}
	return found, err
}

// searchTerms returns the distinct words of a text that have 3 to 64 bytes, in lower case.
func searchTerms(text string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		if w = strings.ToLower(w); len(w) < 3 || len(w) > 64 || slices.Contains(out, w) {
			continue
		}
		if out = append(out, w); len(out) == maxSearchTerms {
			break
		}
	}
	return out
}
