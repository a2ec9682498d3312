package client

import (
	"context"
	"net/url"

	"reeve"
)

// Tools lists the catalogue, or one category of it.
func (c *Client) Tools(ctx context.Context, category string) (reeve.ToolList, error) {
	return get[reeve.ToolList](ctx, c, path("tools"), url.Values{"category": {category}})
}

// Tool gives one tool.
func (c *Client) Tool(ctx context.Context, id string) (reeve.ToolView, error) {
	return get[reeve.ToolView](ctx, c, path("tools", id), nil)
}

// CreateTool adds a user-defined tool.
func (c *Client) CreateTool(ctx context.Context, t reeve.ToolRequest) (reeve.ToolView, error) {
	return post[reeve.ToolView](ctx, c, path("tools"), t)
}

// UpdateTool replaces a user-defined tool.
func (c *Client) UpdateTool(ctx context.Context, id string, t reeve.ToolRequest) (reeve.ToolView, error) {
	return put[reeve.ToolView](ctx, c, path("tools", id), t)
}

// DeleteTool removes a user-defined tool, from its agents too.
func (c *Client) DeleteTool(ctx context.Context, id string) error {
	return c.remove(ctx, path("tools", id))
}
