package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// ChangeFilter selects changes.
type ChangeFilter struct {
	Entity string // of one entity. Default: of all
	Page
}

// List lists the recorded changes of the workspace, newest first.
func (s ChangeService) List(ctx context.Context, f ChangeFilter) (api.ChangeList, error) {
	q := f.query()
	if f.Entity != "" {
		q.Set("entity", f.Entity)
	}
	return get[api.ChangeList](ctx, s.conn, path("changes"), q)
}

// Get returns one change: who made it, why, and the changed fields.
func (s ChangeService) Get(ctx context.Context, id string) (reeve.ChangeRecord, error) {
	return get[reeve.ChangeRecord](ctx, s.conn, path("changes", id), nil)
}
