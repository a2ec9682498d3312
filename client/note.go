package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// NoteFilter selects notes.
type NoteFilter struct {
	Agent string // of one agent. Default: of all
	Page
}

// List lists the notes of the calling user, newest first. Owners get those of all users.
func (s NoteService) List(ctx context.Context, f NoteFilter) (api.NoteList, error) {
	q := f.query()
	if f.Agent != "" {
		q.Set("agent", f.Agent)
	}
	return get[api.NoteList](ctx, s.conn, path("notes"), q)
}

// Create adds a note about the calling user.
func (s NoteService) Create(ctx context.Context, r api.NoteRequest) (n reeve.Note, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes"), body: r}, &n)
	return n, err
}

// Delete deletes a note.
func (s NoteService) Delete(ctx context.Context, id string) error {
	return s.conn.do(ctx, &request{method: http.MethodDelete, path: path("notes", id)}, nil)
}
