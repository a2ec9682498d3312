package store

import (
	"context"
	"slices"

	"reeve"
)

// NoteWriter is the person or agent that writes a note.
type NoteWriter struct {
	Workspace    string
	User         string // the user to whom the note belongs
	Agent        string // empty for a person
	Conversation string
	Run          string
	Operation    string
	Origin       reeve.NoteOrigin
}

// SaveNote checks and inserts a note. If the user has a current note with the same content and tags, it returns that
// one and false, and pins it if n is pinned. An agent's note that says the same as an untrusted one, even a deleted
// one, is untrusted.
func (t NotesTx) SaveNote(ctx context.Context, w NoteWriter, n reeve.Note) (saved reeve.Note, isNew bool, err error) {
	if n.Content, err = reeve.CheckNote(n.Content); err != nil {
		return n, false, err
	}
	if n.Tags, err = reeve.CheckTags(n.Tags); err != nil {
		return n, false, err
	}
	if err := t.lockOwner(ctx, w.Workspace, w.User); err != nil {
		return n, false, err
	}
	if same, ok, err := t.FindEqualNote(ctx, w.Workspace, w.User, n.Content, n.Tags); err != nil || ok {
		if err == nil && n.Pinned && !same.Pinned {
			same.Pinned = true
			err = t.PinNote(ctx, same.ID, true)
		}
		return same, false, err
	}
	if n.ID == "" {
		n.ID = t.tx.NewID(reeve.PrefixNote)
	}
	w.sign(&n)
	n.UserID = w.User
	if n.Origin == reeve.NoteByAgent {
		_, again, err := t.findNote(ctx, w.Workspace, w.User, n.Content, n.Tags, `o.origin = 'untrusted'`)
		if err != nil {
			return n, false, err
		}
		if again { // a deleted or replaced note
			n.Origin = reeve.NoteUntrusted
		}
	}
	saved, err = t.InsertNote(ctx, w.Workspace, n)
	return saved, true, err
}

// sign records the writer in a note.
func (w NoteWriter) sign(n *reeve.Note) {
	n.Origin, n.AgentID, n.ConversationID, n.TurnID, n.OperationID = w.Origin, w.Agent, w.Conversation, w.Run,
		w.Operation
}

// ChangeNote checks and applies a change to a current note of the writer's user. It returns the note before and after.
// It fails with Conflict if the note would equal another one.
func (t NotesTx) ChangeNote(ctx context.Context, w NoteWriter, id string,
	c reeve.NoteChange) (before, after reeve.Note, err error) {
	if err := t.lockOwner(ctx, w.Workspace, w.User); err != nil {
		return before, after, err
	}
	if before, err = t.GetCurrentNote(ctx, w.Workspace, w.User, id); err != nil {
		return before, after, err
	}
	if c.BaseVersion != 0 && c.BaseVersion != before.Version {
		return before, after, reeve.Errorf(reeve.Stale,
			"the change is based on version %d of note %s, which has version %d", c.BaseVersion, id, before.Version).
			Hintf("read the note, then change it with base_version %d", before.Version)
	}
	after = before
	if c.Content != nil {
		if after.Content, err = reeve.CheckNote(*c.Content); err != nil {
			return before, after, err
		}
		after.Content = reeve.SanitizeText(after.Content)
	}
	if c.Tags != nil {
		if after.Tags, err = reeve.CheckTags(*c.Tags); err != nil {
			return before, after, err
		}
	}
	if after.Content != before.Content {
		after.ValidFrom = t.tx.Now()
		if err := t.signRewrite(ctx, w, before, &after); err != nil {
			return before, after, err
		}
	}
	if after.Content != before.Content || !slices.Equal(after.Tags, before.Tags) {
		if err := t.checkIsDistinct(ctx, w.Workspace, after); err != nil {
			return before, after, err
		}
		if after, err = t.UpdateNote(ctx, w.Workspace, after); err != nil {
			return before, after, err
		}
	}
	if c.Pinned != nil && *c.Pinned != before.Pinned {
		after.Pinned = *c.Pinned
		err = t.PinNote(ctx, id, after.Pinned)
	}
	return before, after, err
}

// signRewrite records the writer of new content. A person becomes the origin. An agent does not make an untrusted note
// trusted. If it writes what an earlier version said, as an undo does, the note has the origin of that version. It is
// true since then again.
func (s Notes) signRewrite(ctx context.Context, w NoteWriter, before reeve.Note, after *reeve.Note) error {
	w.sign(after)
	if w.Origin != reeve.NoteByPerson && before.IsUntrusted() {
		after.Origin = reeve.NoteUntrusted
	}
	versions, err := s.ListNoteVersions(ctx, before.ID)
	for _, v := range versions {
		if v.Content != after.Content {
			continue
		}
		if v.ValidFrom != nil {
			after.ValidFrom = *v.ValidFrom
		}
		if w.Origin != reeve.NoteByPerson {
			after.Origin, after.AgentID = v.Origin, v.AgentID
		}
	}
	return err
}

// GetCurrentNote is GetNote for a note that is neither deleted nor superseded.
func (s Notes) GetCurrentNote(ctx context.Context, workspace, user, id string) (reeve.Note, error) {
	n, err := s.GetNote(ctx, workspace, user, id)
	switch {
	case err != nil:
	case n.DeletedAt != nil:
		err = reeve.Errorf(reeve.NotFound, "note %s was deleted", id).Hintf("restore it first, or save a new note")
	case n.SupersededBy != "":
		err = reeve.Errorf(reeve.NotFound, "note %s was replaced by %s", id, n.SupersededBy).
			Hintf("use %s instead", n.SupersededBy)
	}
	return n, err
}

// MergeNotes saves a note that replaces others of the same user. It returns the note and whether it is new.
func (t NotesTx) MergeNotes(ctx context.Context, w NoteWriter, n reeve.Note, ids []string) (reeve.Note, bool, error) {
	if err := t.lockOwner(ctx, w.Workspace, w.User); err != nil {
		return n, false, err
	}
	for _, id := range ids {
		old, err := t.GetCurrentNote(ctx, w.Workspace, w.User, id)
		if err != nil {
			return n, false, err
		}
		n.Pinned = n.Pinned || old.Pinned
		if old.Origin == reeve.NoteUntrusted {
			w.Origin = reeve.NoteUntrusted
		}
	}
	merged, isNew, err := t.SaveNote(ctx, w, n)
	if err != nil {
		return n, false, err
	}
	for _, id := range ids {
		if id == merged.ID { // the merged text equals one of the notes
			continue
		}
		if err := t.SupersedeNote(ctx, id, merged.ID); err != nil {
			return n, false, err
		}
	}
	return merged, isNew, nil
}

// RecentTurns returns the user's ended turns among an agent's latest runs, newest first. Only ID, Input, Output and
// FinishedAt are set.
func (s Notes) RecentTurns(ctx context.Context, agent, user string, runs int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v reeve.Run, err error) {
		defer wrapCorrupt("runs", &v.ID, &err)
		var finished int64
		err = r.Scan(&v.ID, &v.Input, &v.Output, &finished)
		v.FinishedAt = timeOrNil(finished)
		return v, err
	}, `SELECT id, input, output, finished_at FROM (SELECT id, user_id, reason, input, output, finished_at FROM runs
			WHERE agent_id = $1 ORDER BY id DESC LIMIT $3) r
		WHERE user_id = $2 AND reason = 'user_initiated' AND finished_at > 0 ORDER BY id DESC`, agent, user, runs)
}
