package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// List lists the workspace's projects.
func (s ProjectService) List(ctx context.Context) (api.ProjectList, error) {
	return get[api.ProjectList](ctx, s.conn, path("projects"), nil)
}

// Create registers a repository on the server's disk as a project.
func (s ProjectService) Create(ctx context.Context, r reeve.ProjectRequest) (reeve.Project, error) {
	return post[reeve.Project](ctx, s.conn, path("projects"), r)
}

// Get returns one project, by id or name.
func (s ProjectService) Get(ctx context.Context, id string) (reeve.Project, error) {
	return get[reeve.Project](ctx, s.conn, path("projects", id), nil)
}

// Delete deletes a project. Its repository stays.
func (s ProjectService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("projects", id))
}

// BranchFilter selects branches.
type BranchFilter struct {
	Project string // of one project. Default: of any
	State   string // in one state. Default: in any
	Page
}

// List lists branches, newest first.
func (s BranchService) List(ctx context.Context, f BranchFilter) (api.BranchList, error) {
	q := f.query()
	q.Set("project", f.Project)
	q.Set("state", f.State)
	return get[api.BranchList](ctx, s.conn, path("branches"), q)
}

// Get returns one branch, by its id or its conversation's.
func (s BranchService) Get(ctx context.Context, id string) (reeve.Branch, error) {
	return get[reeve.Branch](ctx, s.conn, path("branches", id), nil)
}

// Diff returns the changes of a branch.
func (s BranchService) Diff(ctx context.Context, id string) (reeve.BranchDiff, error) {
	return get[reeve.BranchDiff](ctx, s.conn, path("branches", id, "diff"), nil)
}

// Log returns the commits of a branch, newest first.
func (s BranchService) Log(ctx context.Context, id string) (reeve.BranchLog, error) {
	return get[reeve.BranchLog](ctx, s.conn, path("branches", id, "log"), nil)
}

// Merge merges a branch into its project's default branch.
func (s BranchService) Merge(ctx context.Context, id string, r api.MergeRequest) (reeve.MergeResult, error) {
	return post[reeve.MergeResult](ctx, s.conn, path("branches", id, "merge"), r)
}

// Discard deletes a branch and its files.
func (s BranchService) Discard(ctx context.Context, id string) (reeve.Branch, error) {
	return post[reeve.Branch](ctx, s.conn, path("branches", id, "discard"), nil)
}
