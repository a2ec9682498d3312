package client

import (
	"context"
	"net/url"

	"reeve/api"
)

// List lists the tools of the catalogue, or of one category.
func (s ToolService) List(ctx context.Context, category string) (api.ToolList, error) {
	return get[api.ToolList](ctx, s.conn, path("tools"), url.Values{"category": {category}})
}

// Get returns one tool.
func (s ToolService) Get(ctx context.Context, id string) (api.ToolView, error) {
	return get[api.ToolView](ctx, s.conn, path("tools", id), nil)
}

// Export returns tools in the format of another program: those of an agent, or all.
func (s ToolService) Export(ctx context.Context, format, agent string) (api.ToolExport, error) {
	return get[api.ToolExport](ctx, s.conn, path("tools", "export"), url.Values{"format": {format}, "agent": {agent}})
}

// Create adds a user-defined tool.
func (s ToolService) Create(ctx context.Context, t api.ToolRequest) (api.ToolView, error) {
	return post[api.ToolView](ctx, s.conn, path("tools"), t)
}

// Update replaces a user-defined tool.
func (s ToolService) Update(ctx context.Context, id string, t api.ToolRequest) (api.ToolView, error) {
	return put[api.ToolView](ctx, s.conn, path("tools", id), t)
}

// Delete deletes a user-defined tool and detaches it from its agents.
func (s ToolService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("tools", id))
}
