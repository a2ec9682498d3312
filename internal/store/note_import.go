package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"reeve"
)

// ImportNote imports a note of the writer's user. A note of another program is imported once per source and text; a
// note of an export keeps its id, times, origin, writer and history. A note that is not valid is skipped with a reason.
func (t NotesTx) ImportNote(ctx context.Context, w NoteWriter, r reeve.NoteRecord) (reeve.ImportedNote, error) {
	n, versions, err := noteOf(w, r, t.now)
	if err != nil {
		if reeve.CodeOf(err) == reeve.Validation {
			return reeve.ImportedNote{Outcome: reeve.NoteSkipped, Reason: describeInvalid(err)}, nil
		}
		return reeve.ImportedNote{}, err
	}
	if err := t.lockOwner(ctx, w.Workspace, w.User); err != nil {
		return reeve.ImportedNote{}, err
	}
	owner, key := noteOwner(w.Workspace, w.User), importKey(r)
	if id, ok, err := t.findImport(ctx, owner, key); err != nil {
		return reeve.ImportedNote{}, err
	} else if ok {
		isForgotten, err := t.IsForgotten(ctx, w.Workspace, w.User, id)
		if isForgotten {
			return reeve.ImportedNote{Outcome: reeve.NoteExists, Reason: "it was imported before, and forgotten"}, err
		}
		return reeve.ImportedNote{Outcome: reeve.NoteExists, NoteID: id, Reason: "it was imported before"}, err
	}
	if n.ID != "" {
		if out, ok, err := t.findExported(ctx, w, &n); err != nil || ok {
			return out, err
		}
	}
	if n.IsCurrent() {
		if same, ok, err := t.FindEqualNote(ctx, w.Workspace, w.User, n.Content, n.Tags); err != nil {
			return reeve.ImportedNote{}, err
		} else if ok {
			return reeve.ImportedNote{Outcome: reeve.NoteExists, NoteID: same.ID, Reason: "you have an equal note"},
				firstError(t.putImport(ctx, w.Workspace, owner, key, same.ID),
					t.tx.exec(ctx, `UPDATE notes SET superseded_by = $3 WHERE owner = $1 AND superseded_by = $2
						AND superseded_by <> ''`, owner, cmp.Or(r.ID, "-"), same.ID))
		}
	}
	if n.ID == "" {
		n.ID = t.tx.NewID(reeve.PrefixNote)
		if err := t.putImport(ctx, w.Workspace, owner, key, n.ID); err != nil {
			return reeve.ImportedNote{}, err
		}
	}
	return reeve.ImportedNote{Outcome: reeve.NoteCreated, NoteID: n.ID}, t.insertImported(ctx, w.Workspace, owner, n,
		versions)
}

// noteOf returns the note and the earlier versions of a record.
func noteOf(w NoteWriter, r reeve.NoteRecord, now time.Time) (n reeve.Note, versions []reeve.NoteVersion, err error) {
	orNow := func(at *time.Time) time.Time {
		if at == nil {
			return now
		}
		return at.UTC().Truncate(time.Millisecond)
	}
	n = reeve.Note{ID: r.ID, UserID: w.User, Pinned: r.Pinned, Origin: w.Origin, Version: 1, Source: r.Source,
		ValidFrom: orNow(r.ValidFrom), CreatedAt: now, UpdatedAt: now}
	if n.Content, err = reeve.CheckNote(r.Content); err != nil {
		return n, nil, err
	}
	if n.Tags, err = reeve.CheckTags(r.Tags); err != nil {
		return n, nil, err
	}
	if err := reeve.CheckText("/source", r.Source); err != nil {
		return n, nil, err
	}
	if r.ID == "" {
		return n, nil, nil
	}
	if !strings.HasPrefix(r.ID, reeve.PrefixNote+"_") {
		return n, nil, reeve.InvalidField("/id", "is not the id of a note", "an id that an export wrote")
	}
	if r.SupersededBy == r.ID {
		return n, nil, reeve.InvalidField("/superseded_by", "is the note itself", "the id of another note")
	}
	if w.Origin != reeve.NoteUntrusted && r.Origin != "" {
		n.Origin = r.Origin
	}
	n.Version, n.AgentID, n.ConversationID, n.TurnID, n.OperationID = max(1, r.Version), r.AgentID, r.ConversationID,
		r.TurnID, r.OperationID
	n.SupersededBy, n.SupersededAt, n.DeletedAt = r.SupersededBy, r.SupersededAt, r.DeletedAt
	n.CreatedAt, n.UpdatedAt = orNow(r.CreatedAt), orNow(r.UpdatedAt)
	for _, text := range []string{r.ID, r.AgentID, r.ConversationID, r.TurnID, r.OperationID, r.SupersededBy} {
		if err := reeve.CheckText("/id", text); err != nil {
			return n, nil, err
		}
	}
	last := int64(0)
	for _, v := range r.Versions {
		if v.Version <= last || v.Version >= n.Version {
			return n, nil, reeve.InvalidField("/versions", "are not in order",
				"ascending versions below the note's own")
		}
		if last = v.Version; !slices.Contains(reeve.NoteOrigins(), v.Origin) {
			return n, nil, reeve.InvalidField("/versions", "have an unknown origin", "person, agent or untrusted")
		}
		if w.Origin == reeve.NoteUntrusted {
			v.Origin = w.Origin
		}
		if v.Content, err = reeve.CheckNote(v.Content); err != nil {
			return n, nil, err
		}
		if v.Tags, err = reeve.CheckTags(v.Tags); err != nil {
			return n, nil, err
		}
		versions = append(versions, v)
	}
	return n, versions, nil
}

// describeInvalid says why a record is not valid.
func describeInvalid(err error) string {
	e := reeve.AsError(err)
	if len(e.Fields) == 0 {
		return e.Message
	}
	f := e.Fields[0]
	text := strings.TrimPrefix(f.Path, "/") + " " + f.Message
	if f.Expected != "" {
		text += "; expected " + f.Expected
	}
	return text
}

// importKey identifies a record, so that it is imported once.
func importKey(r reeve.NoteRecord) string {
	if r.ID != "" {
		return r.ID
	}
	return reeve.Hash([]byte(encodeJSON([]string{r.Source, strings.TrimSpace(r.Content)})))
}

func (s Notes) findImport(ctx context.Context, owner, key string) (string, bool, error) {
	return queryOne(ctx, s.Snap, scanValue[string], `SELECT note_id FROM note_imports WHERE owner = $1 AND key = $2`,
		owner, key)
}

func (t NotesTx) putImport(ctx context.Context, workspace, owner, key, note string) error {
	return t.tx.exec(ctx, `INSERT INTO note_imports (owner, key, workspace_id, note_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, key) DO UPDATE SET note_id = $4`, owner, key, workspace, note)
}

// findExported returns the outcome for a note of an export that exists or was forgotten. If the id of n belongs to
// another user, it gives n another id, the same for each import by this user.
func (t NotesTx) findExported(ctx context.Context, w NoteWriter, n *reeve.Note) (out reeve.ImportedNote, ok bool,
	err error) {
	if n.ID, err = t.ownID(ctx, w, n.ID); err != nil {
		return out, false, err
	}
	if n.SupersededBy, err = t.ownID(ctx, w, n.SupersededBy); err != nil {
		return out, false, err
	}
	if isForgotten, err := t.IsForgotten(ctx, w.Workspace, w.User, n.ID); err != nil || isForgotten {
		return reeve.ImportedNote{Outcome: reeve.NoteExists, Reason: "it was forgotten"}, true, err
	}
	have, err := t.GetNote(ctx, w.Workspace, w.User, n.ID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return out, false, nil
	}
	out = reeve.ImportedNote{Outcome: reeve.NoteExists, NoteID: n.ID, Reason: "you have this note"}
	if err == nil && have.Content != n.Content {
		out.Reason = "you have this note with another text"
	}
	return out, true, err
}

// ownID returns the id that a note of an export has for the writer's user.
func (s Notes) ownID(ctx context.Context, w NoteWriter, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	owner := noteOwner(w.Workspace, w.User)
	if own, ok, err := s.findImport(ctx, owner, id); err != nil || ok {
		return own, err
	}
	other, ok, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT owner FROM notes WHERE id = $1
		UNION ALL SELECT 'forgotten' FROM note_tombstones WHERE id = $1 AND NOT (workspace_id = $2 AND user_id = $3)`, id,
		w.Workspace, w.User)
	if err != nil || !ok || other == owner {
		return id, err
	}
	return reeve.DeriveID(reeve.PrefixNote, owner, id), nil
}

// insertImported inserts a note as it is, with its earlier versions.
func (t NotesTx) insertImported(ctx context.Context, workspace, owner string, n reeve.Note,
	versions []reeve.NoteVersion) error {
	err := t.tx.exec(ctx, `INSERT INTO notes (id, workspace_id, owner, user_id, agent_id, conversation_id, turn_id,
		content, created_at, operation_id, origin, tags, pinned, version, valid_from, updated_at, superseded_by,
		superseded_at, deleted_at, hash, source)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
		n.ID, workspace, owner, n.UserID, n.AgentID, n.ConversationID, n.TurnID, n.Content, reeve.Millis(n.CreatedAt),
		n.OperationID, string(n.Origin), encodeJSON(n.Tags), boolToInt(n.Pinned), n.Version, reeve.Millis(n.ValidFrom),
		reeve.Millis(n.UpdatedAt), n.SupersededBy, millisOrZero(n.SupersededAt), millisOrZero(n.DeletedAt),
		noteHash(n.Content, n.Tags), n.Source)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if err := t.tx.exec(ctx, `INSERT INTO note_versions (note_id, version, content, tags, origin, agent_id,
			operation_id, created_at, valid_from) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, n.ID, v.Version,
			v.Content, encodeJSON(v.Tags), string(v.Origin), v.AgentID, v.OperationID, reeve.Millis(v.WrittenAt),
			millisOrZero(v.ValidFrom)); err != nil {
			return err
		}
	}
	return t.insertTags(ctx, owner, n.ID, n.Tags)
}

// ExportNotes returns notes of a user with their history, oldest first, and the position of the next page. after is the
// position of the previous page, or 0.
func (s Notes) ExportNotes(ctx context.Context, workspace, user string, after int64,
	limit int) (records []reeve.NoteRecord, next int64, err error) {
	var positions []int64
	notes, err := queryAll(ctx, s.Snap, func(r scanner) (n reeve.Note, err error) {
		err = scanNoteInto(r, &n, &next)
		positions = append(positions, next)
		return n, err
	}, `SELECT `+noteColumns+`, o.n FROM notes o WHERE o.owner = $1 AND o.n > $2 ORDER BY o.n LIMIT $3`,
		noteOwner(workspace, user), after, limit)
	if err != nil {
		return nil, 0, err
	}
	records = []reeve.NoteRecord{}
	for _, n := range notes {
		var versions []reeve.NoteVersion
		if n.Version > 1 {
			if versions, err = s.ListNoteVersions(ctx, n.ID); err != nil {
				return nil, 0, err
			}
		}
		records = append(records, reeve.NewNoteRecord(n, versions))
	}
	if len(positions) > 0 {
		next = positions[len(positions)-1]
	}
	return records, next, nil
}
