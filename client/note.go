package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"reeve"
	"reeve/api"
)

// NoteFilter selects notes. Empty fields do not restrict the list.
type NoteFilter struct {
	Agent   string // name or id of the agent that wrote the note
	Tag     string
	User    string // owners only
	Pinned  bool   // only pinned notes
	History bool   // also deleted and replaced notes
	Page
}

// List returns a page of your notes, newest first. An owner gets the notes of all users.
func (s NoteService) List(ctx context.Context, f NoteFilter) (api.NoteList, error) {
	q := f.query()
	for name, v := range map[string]string{"agent": f.Agent, "tag": f.Tag, "user": f.User} {
		if v != "" {
			q.Set(name, v)
		}
	}
	for name, v := range map[string]bool{"pinned": f.Pinned, "history": f.History} {
		if v {
			q.Set(name, "true")
		}
	}
	return get[api.NoteList](ctx, s.conn, path("notes"), q)
}

// Search searches your notes by words and by meaning. The notes must have all tags. A limit of 0 means the default.
func (s NoteService) Search(ctx context.Context, text string, tags []string, limit int) (api.NoteSearch, error) {
	q := url.Values{"q": {text}, "tag": tags}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.NoteSearch](ctx, s.conn, path("notes", "search"), q)
}

// Get returns a note, deleted and replaced ones too.
func (s NoteService) Get(ctx context.Context, id string) (reeve.Note, error) {
	return get[reeve.Note](ctx, s.conn, path("notes", id), nil)
}

// History returns where a note comes from: its earlier versions and the notes that it replaces.
func (s NoteService) History(ctx context.Context, id string) (api.NoteHistory, error) {
	return get[api.NoteHistory](ctx, s.conn, path("notes", id, "history"), nil)
}

// Create saves a note about you.
func (s NoteService) Create(ctx context.Context, r api.NoteRequest) (n reeve.Note, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes"), body: r}, &n)
	return n, err
}

// Update changes a note.
func (s NoteService) Update(ctx context.Context, id string, c reeve.NoteChange) (n reeve.Note, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPatch, path: path("notes", id), body: c}, &n)
	return n, err
}

// Delete deletes a note. Restore brings it back.
func (s NoteService) Delete(ctx context.Context, id string) error {
	return s.conn.do(ctx, &request{method: http.MethodDelete, path: path("notes", id)}, nil)
}

// Restore makes a deleted or replaced note current again.
func (s NoteService) Restore(ctx context.Context, id string) (n reeve.Note, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes", id, "restore")}, &n)
	return n, err
}

// Import imports up to 500 notes. A repeated import adds nothing.
func (s NoteService) Import(ctx context.Context, r api.NoteImportRequest) (out api.NoteImport, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes", "import"), body: r}, &out)
	return out, err
}

// Export returns a page of all your notes with their history, oldest first.
func (s NoteService) Export(ctx context.Context, p Page) (api.NoteExport, error) {
	return get[api.NoteExport](ctx, s.conn, path("notes", "export"), p.query())
}

// Consolidate compares your new notes with the others and proposes merges. It compares some hundred notes; repeat it
// while More is true and Compared is not 0.
func (s NoteService) Consolidate(ctx context.Context) (c reeve.NoteConsolidation, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes", "consolidate")}, &c)
	return c, err
}

// Forget erases a note and every quote of it. It cannot be undone.
func (s NoteService) Forget(ctx context.Context, id string) (e reeve.NoteErasure, err error) {
	err = s.conn.do(ctx, &request{method: http.MethodPost, path: path("notes", id, "forget")}, &e)
	return e, err
}
