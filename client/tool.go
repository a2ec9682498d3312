package client

import (
	"context"
	"net/url"

	"reeve"
)

// List lists the catalogue, or one category of it.
func (s ToolService) List(ctx context.Context, category string) (reeve.ToolList, error) {
	return get[reeve.ToolList](ctx, s.conn, path("tools"), url.Values{"category": {category}})
}

// Get gives one tool.
func (s ToolService) Get(ctx context.Context, id string) (reeve.ToolView, error) {
	return get[reeve.ToolView](ctx, s.conn, path("tools", id), nil)
}

// Create adds a user-defined tool.
func (s ToolService) Create(ctx context.Context, t reeve.ToolRequest) (reeve.ToolView, error) {
	return post[reeve.ToolView](ctx, s.conn, path("tools"), t)
}

// Update replaces a user-defined tool.
func (s ToolService) Update(ctx context.Context, id string, t reeve.ToolRequest) (reeve.ToolView, error) {
	return put[reeve.ToolView](ctx, s.conn, path("tools", id), t)
}

// Delete removes a user-defined tool, from its agents too.
func (s ToolService) Delete(ctx context.Context, id string) error {
	return s.conn.remove(ctx, path("tools", id))
}
