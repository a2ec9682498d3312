package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// List lists the workspaces the token is valid in.
func (s WorkspaceService) List(ctx context.Context) (api.WorkspaceList, error) {
	return get[api.WorkspaceList](ctx, s.conn, path("workspaces"), nil)
}

// Create makes a workspace.
func (s WorkspaceService) Create(ctx context.Context, w api.WorkspaceRequest) (reeve.Workspace, error) {
	return post[reeve.Workspace](ctx, s.conn, path("workspaces"), w)
}

// Stop turns the kill switch on, for one agent or for everything in the workspace.
func (s ControlService) Stop(ctx context.Context, r api.StopRequest) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("stop"), body: r}, nil)
}

// Hold lists what a held server would go on with.
func (s ControlService) Hold(ctx context.Context) (api.HoldReport, error) {
	return get[api.HoldReport](ctx, s.conn, path("hold"), nil)
}

// Resume lets a held server go on; of one that is not held it turns the kill switch off again.
func (s ControlService) Resume(ctx context.Context, r api.ResumeRequest) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("resume"), body: r}, nil)
}
