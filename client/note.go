package client

import (
	"context"
	"net/http"

	"reeve"
)

// NoteFilter chooses notes.
type NoteFilter struct {
	Agent string // who remembers them
	Page
}

// Notes lists what agents remember of you, newest first; to owners, of everybody.
func (c *Client) Notes(ctx context.Context, f NoteFilter) (reeve.NoteList, error) {
	q := f.query()
	if f.Agent != "" {
		q.Set("agent", f.Agent)
	}
	return get[reeve.NoteList](ctx, c, path("notes"), q)
}

// AddNote has an agent remember something of you.
func (c *Client) AddNote(ctx context.Context, r reeve.NoteRequest) (n reeve.Note, err error) {
	err = c.do(ctx, &request{method: http.MethodPost, path: path("notes"), body: r}, &n)
	return n, err
}

// DeleteNote has an agent forget something.
func (c *Client) DeleteNote(ctx context.Context, id string) error {
	return c.do(ctx, &request{method: http.MethodDelete, path: path("notes", id)}, nil)
}
