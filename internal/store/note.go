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

// noteOwner is whose notes an agent's notes of a user are, in one word.
func noteOwner(workspace, agent, user string) string {
	return strings.ReplaceAll(reeve.Key("o", workspace, agent, user), "_", "")
}

// ExtractedNoteID is the id of a note that was taken of a turn: what an agent remembers already is not taken again.
func ExtractedNoteID(workspace, agent, user, content string) string {
	return reeve.Key(reeve.PrefixNote, workspace, agent, user, content)
}

// InsertNote writes a note. One whose id is there stays as it is.
func (t NotesTx) InsertNote(ctx context.Context, workspace string, n reeve.Note) error {
	return t.tx.exec(ctx, `INSERT INTO notes (id, workspace_id, owner, user_id, agent_id, conversation_id, turn_id, content, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`,
		n.ID, workspace, noteOwner(workspace, n.AgentID, n.UserID), n.UserID, n.AgentID, n.ConversationID, n.TurnID,
		reeve.SanitizeText(n.Content), reeve.Millis(t.now))
}

// DeleteNote removes a note of a workspace, of a user if one is named.
func (t NotesTx) DeleteNote(ctx context.Context, workspace, user, id string) error {
	n, err := t.tx.affect(ctx, `DELETE FROM notes WHERE id = $2 AND workspace_id = $1 AND ($3 = '' OR user_id = $3)`,
		workspace, id, user)
	if err == nil && n == 0 {
		err = notFound("note", id)
	}
	return err
}

// NoteFilter narrows a list of notes. Empty fields do not.
type NoteFilter struct {
	User   string
	Agent  string // its id
	Before int64  // what the page before gave
	Limit  int
}

// ListNotes reads a page of notes, newest first, and where the next one begins: a place that is still there when the
// note is not.
func (s Notes) ListNotes(ctx context.Context, workspace string,
	f NoteFilter) (notes []reeve.Note, next int64, err error) {
	type placed struct {
		reeve.Note
		n int64
	}
	list, err := all(ctx, s.Snap, func(r scanner) (v placed, err error) { return v, scanNoteInto(r, &v.Note, &v.n) },
		`SELECT `+noteColumns+`, o.n FROM notes o WHERE o.workspace_id = $1 AND ($2 = '' OR o.user_id = $2) AND ($3 = '' OR o.agent_id = $3) AND o.n < $4 ORDER BY o.n DESC LIMIT $5`,
		workspace, f.User, f.Agent, cmp.Or(f.Before, math.MaxInt64), f.Limit)
	notes = make([]reeve.Note, len(list))
	for i, v := range list {
		notes[i], next = v.Note, v.n
	}
	return notes, next, err
}

// mostTerms bounds how many words of a text notes are searched by.
const mostTerms = 32

// RecallNotes finds what an agent remembers of a user: the notes that share words with a text, the best first, then the
// latest ones. At most so many of each.
func (s Notes) RecallNotes(ctx context.Context, workspace, agent, user, text string,
	fit, latest int) ([]reeve.Note, error) {
	owner := noteOwner(workspace, agent, user)
	var found []reeve.Note
	if words := terms(text); len(words) > 0 {
		var err error
		if s.db.Engine() == "postgres" {
			for i, w := range words {
				words[i] = "'" + unmarked(w) + "'"
			}
			found, err = all(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o, to_tsquery('reeve_mail', $2) q WHERE o.owner = $1 AND o.words @@ q
				ORDER BY ts_rank(o.words, q) DESC, o.n DESC LIMIT $3`, owner, strings.Join(words, " | "), fit)
		} else {
			for i, w := range words {
				words[i] = `"` + w + `"`
			}
			found, err = all(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes_words JOIN notes o ON o.n = notes_words.rowid WHERE notes_words MATCH $1
				ORDER BY bm25(notes_words, 0.0, 1.0), o.n DESC LIMIT $2`, `owner : "`+owner+`" AND content : (`+strings.Join(words, " OR ")+`)`, fit)
		}
		if err != nil {
			return nil, err
		}
	}
	last, err := all(ctx, s.Snap, scanNote, `SELECT `+noteColumns+
		` FROM notes o WHERE o.owner = $1 ORDER BY o.n DESC LIMIT $2`, owner, latest)
	for _, n := range last {
		if !slices.ContainsFunc(found, func(f reeve.Note) bool { return f.ID == n.ID }) {
			found = append(found, n)
		}
	}
	return found, err
}

// terms are the words of a text that are worth looking for, each once.
func terms(text string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		if w = strings.ToLower(w); len(w) < 3 || len(w) > 64 || slices.Contains(out, w) {
			continue
		}
		if out = append(out, w); len(out) == mostTerms {
			break
		}
	}
	return out
}
