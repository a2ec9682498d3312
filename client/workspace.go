package client

import (
	"context"
	"net/http"

	"reeve"
)

// List lists the workspaces the token is valid in.
func (s WorkspaceService) List(ctx context.Context) (reeve.WorkspaceList, error) {
	return get[reeve.WorkspaceList](ctx, s.conn, path("workspaces"), nil)
}

// Create makes a workspace.
func (s WorkspaceService) Create(ctx context.Context, w reeve.WorkspaceRequest) (reeve.Workspace, error) {
	return post[reeve.Workspace](ctx, s.conn, path("workspaces"), w)
}

// Stop turns the kill switch on, for one agent or for everything in the workspace.
func (s ControlService) Stop(ctx context.Context, r reeve.StopRequest) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("stop"), body: r}, nil)
}

// Hold lists what a held server would go on with.
func (s ControlService) Hold(ctx context.Context) (reeve.HoldReport, error) {
	return get[reeve.HoldReport](ctx, s.conn, path("hold"), nil)
}

// Resume lets a held server go on; of one that is not held it turns the kill switch off again.
func (s ControlService) Resume(ctx context.Context, r reeve.ResumeRequest) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("resume"), body: r}, nil)
}
