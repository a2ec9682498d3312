package client

import (
	"context"
	"net/http"

	"reeve"
)

// Workspaces lists the workspaces the token is valid in.
func (c *Client) Workspaces(ctx context.Context) (reeve.WorkspaceList, error) {
	return get[reeve.WorkspaceList](ctx, c, path("workspaces"), nil)
}

// CreateWorkspace makes a workspace.
func (c *Client) CreateWorkspace(ctx context.Context, w reeve.WorkspaceRequest) (reeve.Workspace, error) {
	return post[reeve.Workspace](ctx, c, path("workspaces"), w)
}

// Stop turns the kill switch on, for one agent or for everything in the workspace.
func (c *Client) Stop(ctx context.Context, s reeve.StopRequest) error {
	return c.do(ctx, &request{method: http.MethodPost, path: path("stop"), body: s}, nil)
}

// Hold lists what a held server would go on with.
func (c *Client) Hold(ctx context.Context) (reeve.HoldReport, error) {
	return get[reeve.HoldReport](ctx, c, path("hold"), nil)
}

// Resume lets a held server go on; of one that is not held it turns the kill switch off again.
func (c *Client) Resume(ctx context.Context, s reeve.ResumeRequest) error {
	return c.do(ctx, &request{method: http.MethodPost, path: path("resume"), body: s}, nil)
}
