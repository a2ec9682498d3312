package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// List lists the workspaces that the token is valid in.
func (s WorkspaceService) List(ctx context.Context) (api.WorkspaceList, error) {
	return get[api.WorkspaceList](ctx, s.conn, path("workspaces"), nil)
}

// Create makes a workspace.
func (s WorkspaceService) Create(ctx context.Context, w api.WorkspaceRequest) (reeve.Workspace, error) {
	return post[reeve.Workspace](ctx, s.conn, path("workspaces"), w)
}

// Stop turns on the kill switch for one agent or the whole workspace.
func (s ControlService) Stop(ctx context.Context, r api.StopRequest) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("stop"), body: r}, nil)
}

// Hold lists the work that a held server would continue.
func (s ControlService) Hold(ctx context.Context) (api.HoldReport, error) {
	return get[api.HoldReport](ctx, s.conn, path("hold"), nil)
}

// Resume releases a held server. If the server is not held, it turns off the kill switch.
func (s ControlService) Resume(ctx context.Context, r api.ResumeRequest) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("resume"), body: r}, nil)
}
