package store

import (
	"context"
	"time"

	"reeve"
)

// isUncompared is the condition that consolidation has not compared the current text of a note.
const isUncompared = `o.compared < o.version AND ` + isCurrentNote

// ListUncompared returns the user's current notes that consolidation has not compared with the others, oldest first.
func (s Notes) ListUncompared(ctx context.Context, workspace, user string, limit int) ([]reeve.Note, error) {
	return queryAll(ctx, s.Snap, scanNote, `SELECT `+noteColumns+` FROM notes o WHERE o.owner = $1 AND `+isUncompared+
		` ORDER BY o.n LIMIT $2`, noteOwner(workspace, user), limit)
}

// MarkCompared records that consolidation has compared these versions of notes.
func (t NotesTx) MarkCompared(ctx context.Context, notes []reeve.Note) error {
	for _, n := range notes {
		if err := t.tx.exec(ctx, `UPDATE notes SET compared = $2 WHERE id = $1 AND compared < $2`, n.ID,
			n.Version); err != nil {
			return err
		}
	}
	return nil
}

// NoteSuggestion is a change of notes that consolidation found. It is a call that is yet to pass the gate.
type NoteSuggestion struct {
	ID          string // operation id of the call
	WorkspaceID string
	UserID      string
	Tool        string
	Args        string
	Reason      string
}

const suggestionColumns = `id, workspace_id, user_id, tool, args, reason`

func scanSuggestion(r scanner) (v NoteSuggestion, err error) {
	defer wrapCorrupt("note_suggestions", &v.ID, &err)
	return v, r.Scan(&v.ID, &v.WorkspaceID, &v.UserID, &v.Tool, &v.Args, &v.Reason)
}

// InsertSuggestion inserts a suggestion, unless it exists.
func (t NotesTx) InsertSuggestion(ctx context.Context, v NoteSuggestion) error {
	return t.tx.exec(ctx, `INSERT INTO note_suggestions (`+suggestionColumns+`, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`, v.ID, v.WorkspaceID, v.UserID,
		v.Tool, reeve.SanitizeText(v.Args), reeve.SanitizeText(v.Reason), reeve.Millis(t.now))
}

// ListSuggestions returns the oldest suggestions for a user.
func (s Notes) ListSuggestions(ctx context.Context, workspace, user string, limit int) ([]NoteSuggestion, error) {
	return queryAll(ctx, s.Snap, scanSuggestion, `SELECT `+suggestionColumns+` FROM note_suggestions
		WHERE workspace_id = $1 AND user_id = $2 ORDER BY created_at, id LIMIT $3`, workspace, user, limit)
}

// DeleteSuggestion deletes a suggestion whose call the gate has recorded or refused.
func (t NotesTx) DeleteSuggestion(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `DELETE FROM note_suggestions WHERE id = $1`, id)
}

// NoteOwner is a user with notes.
type NoteOwner struct {
	Workspace string
	User      string
	owner     string
}

// NextUncomparedOwner returns the first user after another one who has notes that consolidation has not compared. Start
// with the zero value.
func (s Notes) NextUncomparedOwner(ctx context.Context, after NoteOwner) (NoteOwner, bool, error) {
	return queryOne(ctx, s.Snap, func(r scanner) (v NoteOwner, err error) {
		return v, r.Scan(&v.Workspace, &v.User, &v.owner)
	}, `SELECT o.workspace_id, o.user_id, o.owner FROM notes o WHERE o.owner > $1 AND `+isUncompared+
		` ORDER BY o.owner LIMIT 1`, after.owner)
}

// ClaimConsolidation claims the scheduled consolidation of a user's notes. It returns false if one began within every.
func (t NotesTx) ClaimConsolidation(ctx context.Context, o NoteOwner, every time.Duration) (bool, error) {
	n, err := t.tx.execCount(ctx, `INSERT INTO note_consolidations (owner, workspace_id, user_id, started_at)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner) DO UPDATE SET started_at = $4 WHERE note_consolidations.started_at <= $5`,
		noteOwner(o.Workspace, o.User), o.Workspace, o.User, reeve.Millis(t.now), reeve.Millis(t.now.Add(-every)))
	return n > 0, err
}
