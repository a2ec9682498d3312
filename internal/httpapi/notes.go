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

// noteHandlers serves the notes of a user.
type noteHandlers struct {
	db *store.DB
}

func (h *noteHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent string `query:"agent" maxLength:"128" doc:"Only notes of this agent, by id or name"`
}) (*body[api.NoteList], error) {
	before, err := parsePositionCursor(in.Cursor, 63)
	if err != nil {
		return nil, err
	}
	f := store.NoteFilter{User: chat.VisibleTo(who), Before: before, Limit: in.Limit}
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

// create adds a note about the caller for an agent.
func (h *noteHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.NoteRequest
}) (*body[reeve.Note], error) {
	out := &body[reeve.Note]{}
	if strings.TrimSpace(in.Body.Content) == "" || len(in.Body.Content) > reeve.MaxNote {
		return nil, reeve.InvalidField("/content", "is empty or too long", "1 to 2000 bytes")
	}
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Body.Agent)
		if err != nil {
			return err
		}
		out.Body = reeve.Note{ID: tx.NewID(reeve.PrefixNote), UserID: who.User, AgentID: a.ID, Content: in.Body.Content,
			CreatedAt: tx.Now()}
		if err := tx.Notes().InsertNote(ctx, who.Workspace, out.Body); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
	return out, err
}

func (h *noteHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Notes().DeleteNote(ctx, who.Workspace, chat.VisibleTo(who), in.ID)
	})
}
