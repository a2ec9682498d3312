package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// NoteFilter chooses notes.
type NoteFilter struct {
	Agent string // who remembers them
	Page
}

// List lists what agents remember of you, newest first; to owners, of everybody.
func (s NoteService) List(ctx context.Context, f NoteFilter) (api.NoteList, error) {
	q := f.query()
	if f.Agent != "" {
		q.Set("agent", f.Agent)
	}
	return get[api.NoteList](ctx, s.conn, path("notes"), q)
}

// Create has an agent remember something of you.
func (s NoteService) Create(ctx context.Context, r api.NoteRequest) (n reeve.Note, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes"), body: r}, &n)
	return n, err
}

// Delete has an agent forget something.
func (s NoteService) Delete(ctx context.Context, id string) error {
	return s.conn.do(ctx, &request{method: http.MethodDelete, path: path("notes", id)}, nil)
}
