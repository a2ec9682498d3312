package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"reeve"
)

const noteColumns = `o.id, o.user_id, o.agent_id, o.conversation_id, o.turn_id, o.content, o.created_at,
	o.operation_id, o.origin, o.tags, o.pinned, o.version, o.valid_from, o.updated_at, o.superseded_by, o.superseded_at,
	o.deleted_at, o.source`

func scanNote(r scanner) (n reeve.Note, err error) { return n, scanNoteInto(r, &n) }

func scanNoteInto(r scanner, n *reeve.Note, more ...any) (err error) {
	defer wrapCorrupt("notes", &n.ID, &err)
	var created, pinned, valid, updated, superseded, deleted int64
	var tags string
	if err = r.Scan(append([]any{&n.ID, &n.UserID, &n.AgentID, &n.ConversationID, &n.TurnID, &n.Content, &created,
		&n.OperationID, &n.Origin, &tags, &pinned, &n.Version, &valid, &updated, &n.SupersededBy, &superseded,
		&deleted, &n.Source}, more...)...); err != nil {
		return err
	}
	n.Pinned = pinned != 0
	n.CreatedAt, n.ValidFrom, n.UpdatedAt = reeve.FromMillis(created), reeve.FromMillis(valid),
		reeve.FromMillis(updated)
	n.SupersededAt, n.DeletedAt = timeOrNil(superseded), timeOrNil(deleted)
	n.Tags = []string{}
	return firstError(decodeJSON("tags", tags, &n.Tags),
		checkKnown("origin", slices.Contains(reeve.NoteOrigins(), n.Origin)))
}

// noteOwner returns one search word that identifies the notes of a user.
func noteOwner(workspace, user string) string {
	return "u" + hex.EncodeToString([]byte(workspace+"/"+user))
}

// noteHash identifies the content and the tags of a note.
func noteHash(content string, tags []string) string {
	return reeve.Hash([]byte(encodeJSON([]any{content, tags})))
}

// isCurrentNote is the condition that a note is neither deleted nor superseded.
const isCurrentNote = `o.superseded_by = '' AND o.deleted_at = 0`

// InsertNote inserts a note with version 1 and returns it. The store sets the times.
func (t NotesTx) InsertNote(ctx context.Context, workspace string, n reeve.Note) (reeve.Note, error) {
	t.tx.Announce(workspace, TopicNotes, "", "")
	n.Content, n.Version = reeve.SanitizeText(n.Content), 1
	n.CreatedAt, n.UpdatedAt = t.now, t.now
	if n.ValidFrom.IsZero() {
		n.ValidFrom = t.now
	}
	if n.Tags == nil {
		n.Tags = []string{}
	}
	owner := noteOwner(workspace, n.UserID)
	if err := t.tx.exec(ctx, `INSERT INTO notes (id, workspace_id, owner, user_id, agent_id, conversation_id, turn_id,
		content, created_at, operation_id, origin, tags, pinned, version, valid_from, updated_at, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14, $9, $15)`,
		n.ID, workspace, owner, n.UserID, n.AgentID, n.ConversationID, n.TurnID, n.Content, reeve.Millis(t.now),
		n.OperationID, string(n.Origin), encodeJSON(n.Tags), boolToInt(n.Pinned), reeve.Millis(n.ValidFrom),
		noteHash(n.Content, n.Tags)); err != nil {
		return n, err
	}
	return n, t.insertTags(ctx, owner, n.ID, n.Tags)
}

func (t NotesTx) insertTags(ctx context.Context, owner, id string, tags []string) error {
	for _, tag := range tags {
		if err := t.tx.exec(ctx, `INSERT INTO note_tags (owner, tag, note_id) VALUES ($1, $2, $3)`, owner, tag,
			id); err != nil {
			return err
		}
	}
	return nil
}

// FindEqualNote returns the user's current note with the same content and tags.
func (s Notes) FindEqualNote(ctx context.Context, workspace, user, content string, tags []string) (reeve.Note, bool,
	error) {
	return s.findNote(ctx, workspace, user, content, tags, isCurrentNote)
}

// findNote returns a note of the user with this content and these tags that meets a condition.
func (s Notes) findNote(ctx context.Context, workspace, user, content string, tags []string,
	condition string) (reeve.Note, bool, error) {
	return queryOne(ctx, s.Snap, scanNote, `SELECT `+noteColumns+
		` FROM notes o WHERE o.owner = $1 AND o.hash = $2 AND `+
		condition+` LIMIT 1`, noteOwner(workspace, user), noteHash(reeve.SanitizeText(content), tags))
}

// lockOwner makes other transactions that write notes of a user wait until this one ends. Otherwise two of them could
// each find no equal note and save one. SQLite has only one writer.
func (t NotesTx) lockOwner(ctx context.Context, workspace, user string) error {
	if t.db.Engine() != "postgres" {
		return nil
	}
	return t.tx.exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, noteOwner(workspace, user))
}

// checkIsDistinct returns Conflict if the user has another current note with the content and tags of n.
func (s Notes) checkIsDistinct(ctx context.Context, workspace string, n reeve.Note) error {
	same, ok, err := queryOne(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.owner = $1
		AND o.hash = $2 AND o.id <> $3 AND `+isCurrentNote+` LIMIT 1`, noteOwner(workspace, n.UserID),
		noteHash(n.Content, n.Tags), n.ID)
	if err == nil && ok {
		err = reeve.Errorf(reeve.Conflict, "note %s already has this text and these tags", same.ID).
			Hintf("use note %s, or delete it first", same.ID)
	}
	return err
}

// GetNote returns a note of a user, deleted and superseded ones too. If user is empty, it returns a note of any user.
func (s Notes) GetNote(ctx context.Context, workspace, user, id string) (reeve.Note, error) {
	n, ok, err := queryOne(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.id = $2
		AND o.workspace_id = $1 AND ($3 = '' OR o.user_id = $3)`, workspace, id, user)
	if err == nil && !ok {
		err = notFound("note", id)
	}
	return n, err
}

// UpdateNote writes the content, validity, tags, origin and writer of n and keeps the previous version. n is the note
// as it was read, with these fields changed; the update fails with Conflict if the note has been written since.
func (t NotesTx) UpdateNote(ctx context.Context, workspace string, n reeve.Note) (reeve.Note, error) {
	t.tx.Announce(workspace, TopicNotes, "", "")
	n.Content = reeve.SanitizeText(n.Content)
	n.UpdatedAt = t.now
	count, err := t.tx.execCount(ctx, `INSERT INTO note_versions (note_id, version, content, tags, origin, agent_id,
			operation_id, created_at, valid_from)
		SELECT id, version, content, tags, origin, agent_id, operation_id, updated_at, valid_from FROM notes
		WHERE id = $1 AND workspace_id = $2 AND version = $3`, n.ID, workspace, n.Version)
	if err == nil && count == 0 {
		err = reeve.Errorf(reeve.Conflict, "note %s has changed since it was read", n.ID).Hintf("read the note again")
	}
	if err != nil {
		return n, err
	}
	n.Version++
	owner := noteOwner(workspace, n.UserID)
	if err := firstError(
		t.tx.exec(ctx, `UPDATE notes SET content = $2, tags = $3, origin = $4, agent_id = $5, conversation_id = $6,
			turn_id = $7, operation_id = $8, version = $9, valid_from = $12, updated_at = $10, hash = $11,
			vector_model = '' WHERE id = $1`,
			n.ID, n.Content, encodeJSON(n.Tags), string(n.Origin), n.AgentID, n.ConversationID, n.TurnID, n.OperationID,
			n.Version, reeve.Millis(t.now), noteHash(n.Content, n.Tags), reeve.Millis(n.ValidFrom)),
		t.tx.exec(ctx, `DELETE FROM note_tags WHERE note_id = $1`, n.ID)); err != nil {
		return n, err
	}
	return n, firstError(t.insertTags(ctx, owner, n.ID, n.Tags), t.removeVector(ctx, n.ID))
}

// PinNote sets whether a note is pinned.
func (t NotesTx) PinNote(ctx context.Context, id string, pinned bool) error {
	t.tx.Announce("", TopicNotes, "", "")
	return t.tx.exec(ctx, `UPDATE notes SET pinned = $2 WHERE id = $1`, id, boolToInt(pinned))
}

// DeleteNote marks a note as deleted. It is no longer recalled, and RestoreNote brings it back.
func (t NotesTx) DeleteNote(ctx context.Context, id string) error {
	t.tx.Announce("", TopicNotes, "", "")
	return firstError(
		t.tx.exec(ctx, `UPDATE notes SET deleted_at = $2, vector_model = '' WHERE id = $1 AND deleted_at = 0`, id,
			reeve.Millis(t.now)),
		t.removeVector(ctx, id))
}

// SupersedeNote marks a note as replaced by another note of the same user. It is no longer recalled.
func (t NotesTx) SupersedeNote(ctx context.Context, id, by string) error {
	t.tx.Announce("", TopicNotes, "", "")
	return firstError(
		t.tx.exec(ctx, `UPDATE notes SET superseded_by = $2, superseded_at = $3, vector_model = '' WHERE id = $1
			AND superseded_by = ''`, id, by, reeve.Millis(t.now)),
		t.removeVector(ctx, id))
}

// RestoreNotes makes deleted or superseded notes of a user current again. It fails with Conflict if the user has a
// current note that equals one of them.
func (t NotesTx) RestoreNotes(ctx context.Context, workspace, user string, notes ...reeve.Note) error {
	t.tx.Announce("", TopicNotes, "", "")
	if err := t.lockOwner(ctx, workspace, user); err != nil {
		return err
	}
	for _, n := range notes {
		if n.IsCurrent() {
			continue
		}
		if err := t.checkIsDistinct(ctx, workspace, n); err != nil {
			return err
		}
	}
	for _, n := range notes {
		if err := t.tx.exec(ctx, `UPDATE notes SET deleted_at = 0, superseded_by = '', superseded_at = 0
			WHERE id = $1`, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// ListNoteVersions returns what a note said before its updates, oldest first.
func (s Notes) ListNoteVersions(ctx context.Context, id string) ([]reeve.NoteVersion, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v reeve.NoteVersion, err error) {
		defer wrapCorrupt("note_versions", &id, &err)
		var tags string
		var written, valid int64
		err = r.Scan(&v.Version, &v.Content, &tags, &v.Origin, &v.AgentID, &v.OperationID, &written, &valid)
		v.WrittenAt, v.ValidFrom, v.Tags = reeve.FromMillis(written), timeOrNil(valid), []string{}
		return v, firstError(err, decodeJSON("tags", tags, &v.Tags))
	}, `SELECT version, content, tags, origin, agent_id, operation_id, created_at, valid_from FROM note_versions
		WHERE note_id = $1 ORDER BY version`, id)
}

// ListSuperseded returns the notes that a note replaces.
func (s Notes) ListSuperseded(ctx context.Context, workspace, user, id string) ([]reeve.Note, error) {
	return queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.owner = $1
		AND o.superseded_by = $2 AND o.superseded_by <> '' ORDER BY o.n`, noteOwner(workspace, user), id)
}

// NoteFilter restricts a list of notes. Empty fields do not restrict it.
type NoteFilter struct {
	User    string
	Agent   string // the id of the agent that wrote the note
	Tag     string
	Pinned  bool  // only pinned notes
	History bool  // also deleted and superseded notes
	Before  int64 // the next value of the previous page
	Limit   int
}

// ListNotes returns a page of notes, newest first, and the position of the next page. The position stays valid when a
// note is deleted.
func (s Notes) ListNotes(ctx context.Context, workspace string,
	f NoteFilter) (notes []reeve.Note, next int64, err error) {
	type positioned struct {
		reeve.Note
		n int64
	}
	where := `o.workspace_id = $1 AND ($2 = '' OR o.user_id = $2) AND ($3 = '' OR o.agent_id = $3) AND o.n < $4
		AND ($6 = '' OR EXISTS (SELECT 1 FROM note_tags t WHERE t.owner = o.owner AND t.tag = $6 AND t.note_id = o.id))`
	if f.Pinned {
		where += ` AND o.pinned = 1`
	}
	if !f.History {
		where += ` AND ` + isCurrentNote
	}
	list, err := queryAll(ctx, s.Snap, func(r scanner) (v positioned, err error) {
		return v, scanNoteInto(r, &v.Note, &v.n)
	}, `SELECT `+noteColumns+`, o.n FROM notes o WHERE `+where+` ORDER BY o.n DESC LIMIT $5`,
		workspace, f.User, f.Agent, cmp.Or(f.Before, math.MaxInt64), f.Limit, f.Tag)
	notes = make([]reeve.Note, len(list))
	for i, v := range list {
		notes[i], next = v.Note, v.n
	}
	return notes, next, err
}

// LatestNotes returns the user's newest current notes, pinned ones first.
func (s Notes) LatestNotes(ctx context.Context, workspace, user string, limit int) ([]reeve.Note, error) {
	owner := noteOwner(workspace, user)
	pinned, err := queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.owner = $1
		AND o.pinned = 1 AND `+isCurrentNote+` ORDER BY o.n DESC LIMIT $2`, owner, limit)
	if err != nil || len(pinned) == limit {
		return pinned, err
	}
	latest, err := queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.owner = $1
		AND o.pinned = 0 AND `+isCurrentNote+` ORDER BY o.n DESC LIMIT $2`, owner, limit-len(pinned))
	return append(pinned, latest...), err
}

// NoteSearch selects the notes of a user for a search.
type NoteSearch struct {
	Workspace string
	User      string
	Text      string
	Tags      []string // notes must have all of them; normalized
	Limit     int
}

// tagCondition returns the condition that the note with an id has all tags, and its parameters from $first on. $1 is
// the owner.
func tagCondition(id string, first int, tags []string) (condition string, args []any) {
	for i, tag := range tags {
		condition += ` AND EXISTS (SELECT 1 FROM note_tags t WHERE t.owner = $1 AND t.tag = ` + "$" +
			strconv.Itoa(first+i) +
			` AND t.note_id = ` + id + `)`
		args = append(args, tag)
	}
	return condition, args
}

// GetNotes returns the user's current notes with these ids, in no order. It finds notes by id: an index on the owner
// would visit all notes of the user.
func (s Notes) GetNotes(ctx context.Context, workspace, user string, ids []string) ([]reeve.Note, error) {
	return queryIn(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.id IN (?)
		AND o.owner || '' = $1 AND `+isCurrentNote, ids, noteOwner(workspace, user))
}
