package httpapi

import (
	"context"
	"strconv"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// NoteSearcher searches and erases notes.
type NoteSearcher interface {
	Recall(ctx context.Context, q reeve.NoteQuery) (reeve.NoteResult, error)
	Forget(ctx context.Context, workspace, user, id, operation string) (reeve.NoteErasure, error)
	Wakeup() // notes have changed
}

// NoteConsolidator finds notes of a user that belong together, and proposes to merge them.
type NoteConsolidator interface {
	Consolidate(ctx context.Context, workspace, user string) (reeve.NoteConsolidation, error)
}

// noteHandlers serves the notes of users. A user sees his own notes, an owner those of all users.
type noteHandlers struct {
	db           *store.DB
	searcher     NoteSearcher
	consolidator NoteConsolidator
	announcer    changeAnnouncer
}

func (h *noteHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent   string `query:"agent" maxLength:"128" doc:"Only notes that this agent wrote, by id or name"`
	Tag     string `query:"tag" maxLength:"64" doc:"Only notes with this tag"`
	User    string `query:"user" maxLength:"128" doc:"Owners only: notes of this user"`
	Pinned  bool   `query:"pinned" doc:"Only pinned notes"`
	History bool   `query:"history" doc:"Include deleted and replaced notes"`
}) (*body[api.NoteList], error) {
	before, err := parsePositionCursor(in.Cursor, 63)
	if err != nil {
		return nil, err
	}
	if in.User != "" && in.User != who.User && chat.VisibleTo(who) != "" {
		return nil, reeve.Errorf(reeve.Forbidden, "only owners list notes of other users").
			Hintf("leave out the parameter user; it lists your own notes")
	}
	f := store.NoteFilter{User: chat.VisibleTo(who), Pinned: in.Pinned, History: in.History, Before: before,
		Limit: in.Limit}
	if f.User == "" {
		f.User = in.User
	}
	if in.Tag != "" {
		tags, err := checkTagQuery([]string{in.Tag})
		if err != nil {
			return nil, err
		}
		f.Tag = strings.Join(tags, "")
	}
	out := &body[api.NoteList]{}
	err = h.db.View(ctx, func(snap *store.Snap) error {
		var next int64
		var err error
		if f.Agent, err = resolveAgentFilter(ctx, snap, who.Workspace, in.Agent); err != nil {
			return err
		}
		out.Body.Notes, next, err = snap.Notes().ListNotes(ctx, who.Workspace, f)
		if len(out.Body.Notes) == in.Limit {
			out.Body.Next = positionCursor + strconv.FormatInt(next, 10)
		}
		return err
	})
	return out, err
}

func (h *noteHandlers) search(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Query string   `query:"q" required:"true" minLength:"1" maxLength:"2000" doc:"Words or a question"`
	Tags  []string `query:"tag,explode" maxItems:"100" doc:"Only notes with all of these tags"`
	Limit int      `query:"limit" minimum:"1" maximum:"100" default:"10"`
}) (*body[api.NoteSearch], error) {
	tags, err := checkTagQuery(in.Tags)
	if err != nil {
		return nil, err
	}
	got, err := h.searcher.Recall(ctx, reeve.NoteQuery{WorkspaceID: who.Workspace, UserID: who.User, Text: in.Query,
		Tags: tags, Limit: in.Limit})
	return &body[api.NoteSearch]{Body: api.NoteSearch{Notes: got.Hits, WordsOnly: got.WordsOnly}}, err
}

// checkTagQuery is reeve.CheckTags for the query parameter tag.
func checkTagQuery(tags []string) ([]string, error) {
	tags, err := reeve.CheckTags(tags)
	if err != nil {
		e := *reeve.AsError(err)
		e.Fields = []reeve.Field{{Path: "query/tag", Message: e.Fields[0].Message, Expected: e.Fields[0].Expected}}
		return nil, &e
	}
	return tags, nil
}

func (h *noteHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Note], error) {
	out := &body[reeve.Note]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = snap.Notes().GetNote(ctx, who.Workspace, chat.VisibleTo(who), in.ID)
		return err
	})
}

// maxReplacements bounds the chain of replaced notes that history follows.
const maxReplacements = 100

func (h *noteHandlers) history(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.NoteHistory], error) {
	out := &body[api.NoteHistory]{Body: api.NoteHistory{ReplacedBy: []reeve.Note{}}}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		n, err := snap.Notes().GetNote(ctx, who.Workspace, chat.VisibleTo(who), in.ID)
		if err != nil {
			return err
		}
		out.Body.Note = n
		if out.Body.Versions, err = snap.Notes().ListNoteVersions(ctx, n.ID); err != nil {
			return err
		}
		if out.Body.Replaces, err = snap.Notes().ListSuperseded(ctx, who.Workspace, n.UserID, n.ID); err != nil {
			return err
		}
		for n.SupersededBy != "" && len(out.Body.ReplacedBy) < maxReplacements {
			n, err = snap.Notes().GetNote(ctx, who.Workspace, n.UserID, n.SupersededBy)
			if reeve.CodeOf(err) == reeve.NotFound { // the note was forgotten or not imported
				return nil
			} else if err != nil {
				return err
			}
			out.Body.ReplacedBy = append(out.Body.ReplacedBy, n)
		}
		return nil
	})
	return out, err
}

// create saves a note about the caller.
func (h *noteHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.NoteRequest
}) (*body[reeve.Note], error) {
	return h.write(ctx, who, func(tx *store.Tx) (reeve.Note, error) {
		n, _, err := tx.Notes().SaveNote(ctx, personWriter(who, who.User),
			reeve.Note{Content: in.Body.Content, Tags: in.Body.Tags, Pinned: in.Body.Pinned})
		return n, err
	})
}

func (h *noteHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.NoteChange
}) (*body[reeve.Note], error) {
	return h.write(ctx, who, func(tx *store.Tx) (reeve.Note, error) {
		n, err := tx.Notes().GetNote(ctx, who.Workspace, chat.VisibleTo(who), in.ID)
		if err == nil && n.UserID != who.User {
			err = reeve.Errorf(reeve.Forbidden, "note %s belongs to %s, and only they change it", n.ID, n.UserID).
				Hintf("an owner may delete or forget it")
		}
		if err != nil {
			return n, err
		}
		_, n, err = tx.Notes().ChangeNote(ctx, personWriter(who, n.UserID), n.ID, in.Body)
		return n, err
	})
}

func (h *noteHandlers) restore(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Note], error) {
	return h.write(ctx, who, func(tx *store.Tx) (reeve.Note, error) {
		n, err := tx.Notes().GetNote(ctx, who.Workspace, chat.VisibleTo(who), in.ID)
		if err != nil {
			return n, err
		}
		err = tx.Notes().RestoreNotes(ctx, who.Workspace, n.UserID, n)
		n.DeletedAt, n.SupersededAt, n.SupersededBy = nil, nil, ""
		return n, err
	})
}

func (h *noteHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	_, err := h.write(ctx, who, func(tx *store.Tx) (reeve.Note, error) {
		n, err := tx.Notes().GetNote(ctx, who.Workspace, chat.VisibleTo(who), in.ID)
		if err == nil && n.DeletedAt != nil {
			err = newNotFound("note", in.ID)
		}
		if err != nil {
			return n, err
		}
		return n, tx.Notes().DeleteNote(ctx, n.ID)
	})
	return nil, err
}

// forget erases a note and its quotes, even if the client disconnects. A repeated request completes an interrupted one.
func (h *noteHandlers) forget(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.NoteErasure], error) {
	got, err := h.searcher.Forget(context.WithoutCancel(ctx), who.Workspace, chat.VisibleTo(who), in.ID, "")
	return &body[reeve.NoteErasure]{Body: got}, err
}

// consolidate compares the caller's notes that are new since the last time, and proposes merges.
func (h *noteHandlers) consolidate(ctx context.Context, who reeve.Principal,
	_ *Scoped) (*body[reeve.NoteConsolidation], error) {
	got, err := h.consolidator.Consolidate(ctx, who.Workspace, who.User)
	return &body[reeve.NoteConsolidation]{Body: got}, err
}

// write commits a change of a note, wakes the agents that subscribe to it, and has its vector computed.
func (h *noteHandlers) write(ctx context.Context, who reeve.Principal,
	f func(*store.Tx) (reeve.Note, error)) (*body[reeve.Note], error) {
	out := &body[reeve.Note]{}
	err := h.announcer.update(ctx, who, func(tx *store.Tx) (tokens []reeve.Token, err error) {
		if out.Body, err = f(tx); err != nil {
			return nil, err
		}
		return []reeve.Token{{Class: reeve.SemanticKey, Name: reeve.KeyNote},
				{Class: reeve.EntityID, Name: out.Body.ID}},
			tx.Ledger().SaveResponse(ctx, out.Body)
	})
	if err == nil {
		h.searcher.Wakeup()
	}
	return out, err
}

// personWriter returns a person as the writer of a note that belongs to user.
func personWriter(who reeve.Principal, user string) store.NoteWriter {
	return store.NoteWriter{Workspace: who.Workspace, User: user, Origin: reeve.NoteByPerson}
}
