package client

import (
	"context"

	"reeve"
)

// Projects lists the workspace's projects.
func (c *Client) Projects(ctx context.Context) (reeve.ProjectList, error) {
	return get[reeve.ProjectList](ctx, c, path("projects"), nil)
}

// AddProject lets agents work on a repository on the server's disk.
func (c *Client) AddProject(ctx context.Context, r reeve.ProjectRequest) (reeve.Project, error) {
	return post[reeve.Project](ctx, c, path("projects"), r)
}

// Project gives one project, by id or name.
func (c *Client) Project(ctx context.Context, id string) (reeve.Project, error) {
	return get[reeve.Project](ctx, c, path("projects", id), nil)
}

// DeleteProject removes a project; its repository stays.
func (c *Client) DeleteProject(ctx context.Context, id string) error {
	return c.remove(ctx, path("projects", id))
}

// BranchFilter chooses branches.
type BranchFilter struct {
	Project string // of one project. Default: of any
	State   string // in one state. Default: in any
	Page
}

// Branches lists branches, newest first.
func (c *Client) Branches(ctx context.Context, f BranchFilter) (reeve.BranchList, error) {
	q := f.query()
	q.Set("project", f.Project)
	q.Set("state", f.State)
	return get[reeve.BranchList](ctx, c, path("branches"), q)
}

// Branch gives one branch, by its id or its conversation's.
func (c *Client) Branch(ctx context.Context, id string) (reeve.Branch, error) {
	return get[reeve.Branch](ctx, c, path("branches", id), nil)
}

// DiffBranch gives what a branch would change.
func (c *Client) DiffBranch(ctx context.Context, id string) (reeve.BranchDiff, error) {
	return get[reeve.BranchDiff](ctx, c, path("branches", id, "diff"), nil)
}

// LogBranch gives what was committed on a branch, newest first.
func (c *Client) LogBranch(ctx context.Context, id string) (reeve.BranchLog, error) {
	return get[reeve.BranchLog](ctx, c, path("branches", id, "log"), nil)
}

// MergeBranch merges a branch into its project's default branch.
func (c *Client) MergeBranch(ctx context.Context, id string, r reeve.MergeRequest) (reeve.MergeResult, error) {
	return post[reeve.MergeResult](ctx, c, path("branches", id, "merge"), r)
}

// DiscardBranch deletes a branch and its files.
func (c *Client) DiscardBranch(ctx context.Context, id string) (reeve.Branch, error) {
	return post[reeve.Branch](ctx, c, path("branches", id, "discard"), nil)
}
