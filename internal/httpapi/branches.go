package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// Branches works on projects and the git branches of conversations.
type Branches interface {
	NewProject(ctx context.Context, who reeve.Principal, q reeve.ProjectRequest) (reeve.Project, error)
	Diff(ctx context.Context, b reeve.Branch) (reeve.BranchDiff, error)
	Log(ctx context.Context, b reeve.Branch) (reeve.BranchLog, error)
	Merge(ctx context.Context, who reeve.Principal, b reeve.Branch, message string) (reeve.MergeResult, error)
	Discard(ctx context.Context, b reeve.Branch) (reeve.Branch, error)
}

// registerBranchRoutes registers the routes of projects and branches.
func registerBranchRoutes(router huma.API, s *services) {
	const (
		get, post, del        = http.MethodGet, http.MethodPost, http.MethodDelete
		viewer, member, owner = reeve.Viewer, reeve.Member, reeve.Owner
		created, noContent    = http.StatusCreated, http.StatusNoContent
		tag, at, branch       = "branches", "/api/projects", "/api/branches/{id}"
	)
	projects := &projectHandlers{db: s.DB, branches: s.Branches}
	branches := &branchHandlers{db: s.DB, gate: s.Gate, branches: s.Branches}
	handle(router, route{get, at, "listProjects", "List projects", tag, viewer, 0}, projects.list)
	handle(router, route{post, at, "createProject",
		"Create a project for a repository; needs a server token", tag, owner, created},
		projects.create)
	handle(router, route{get, at + "/{id}", "getProject", "Get a project", tag, viewer, 0}, projects.get)
	handle(router, route{del, at + "/{id}", "deleteProject", "Delete a project but not its repository", tag, owner,
		noContent}, projects.remove)
	handle(router, route{get, "/api/branches", "listBranches", "List branches", tag, viewer, 0}, branches.list)
	handle(router, route{get, branch, "getBranch", "Get a branch by its id or its conversation's id", tag, viewer, 0},
		branches.get)
	handle(router, route{get, branch + "/diff", "getBranchDiff", "Get the diff of a branch", tag, viewer, 0},
		branches.diff)
	handle(router, route{get, branch + "/log", "listBranchCommits", "List the commits of a branch", tag, viewer, 0},
		branches.log)
	handle(router, route{post, branch + "/merge", "mergeBranch", "Merge a branch into the default branch", tag, member,
		0}, branches.merge)
	handle(router, route{post, branch + "/discard", "discardBranch", "Delete a branch and its files", tag, member, 0},
		branches.discard)
}

// branchHandlers serves the git branches of conversations.
type branchHandlers struct {
	db       *store.DB
	gate     *gate.Gate
	branches Branches
}

func (h *branchHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Project string `query:"project" maxLength:"128" doc:"Project id or name"`
	State   string `query:"state" enum:"making,ready,discarding,discarded"`
}) (*body[api.BranchList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.BranchList]{}
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		f := store.BranchFilter{User: chat.VisibleTo(who), State: in.State, Before: in.Cursor, Limit: in.Limit}
		if in.Project != "" {
			p, err := snap.Agents().GetProject(ctx, who.Workspace, in.Project)
			if err != nil {
				return err
			}
			f.Project = p.ID
		}
		out.Body.Branches, err = snap.Agents().ListBranches(ctx, who.Workspace, f)
		return err
	})
	if n := len(out.Body.Branches); n == in.Limit {
		out.Body.Next = out.Body.Branches[n-1].ID
	}
	return out, err
}

// getBranch returns a branch. It fails with NOT_FOUND if the caller may not see it.
func (h *branchHandlers) getBranch(ctx context.Context, who reeve.Principal, id string) (b reeve.Branch, err error) {
	err = h.db.View(ctx, func(snap *store.Snap) error {
		b, err = snap.Agents().GetBranch(ctx, who.Workspace, chat.VisibleTo(who), id)
		return err
	})
	return b, err
}

func (h *branchHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Branch], error) {
	b, err := h.getBranch(ctx, who, in.ID)
	return &body[reeve.Branch]{b}, err
}

func (h *branchHandlers) diff(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.BranchDiff], error) {
	b, err := h.getBranch(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	d, err := h.branches.Diff(ctx, b)
	if err != nil {
		return nil, err
	}
	redaction, err := h.getRedaction(ctx, who)
	if err != nil {
		return nil, err
	}
	texts := []string{d.Patch}
	for _, f := range d.Files {
		texts = append(texts, f.Path)
	}
	change := redaction.Change(texts...)
	d.Patch = change.Patch(d.Patch, d.Truncated)
	for i, f := range d.Files {
		d.Files[i].Path = change.Text(f.Path)
	}
	return &body[reeve.BranchDiff]{d}, nil
}

// getRedaction returns the redaction of the workspace's secrets.
func (h *branchHandlers) getRedaction(ctx context.Context, who reeve.Principal) (v gate.Redaction, err error) {
	return v, h.db.View(ctx, func(snap *store.Snap) error {
		v, err = h.gate.Redaction(ctx, snap, who.Workspace)
		return err
	})
}

func (h *branchHandlers) log(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.BranchLog], error) {
	b, err := h.getBranch(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	l, err := h.branches.Log(ctx, b)
	if err != nil {
		return nil, err
	}
	redaction, err := h.getRedaction(ctx, who)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, c := range l.Commits {
		texts = append(texts, c.Author, c.Message)
	}
	change := redaction.Change(texts...)
	for i, c := range l.Commits {
		l.Commits[i].Author, l.Commits[i].Message = change.Text(c.Author), change.Text(c.Message)
	}
	return &body[reeve.BranchLog]{l}, nil
}

func (h *branchHandlers) merge(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.MergeRequest
}) (*body[reeve.MergeResult], error) {
	b, err := h.getBranch(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	m, err := h.branches.Merge(ctx, who, b, in.Body.Message)
	return &body[reeve.MergeResult]{m}, err
}

func (h *branchHandlers) discard(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Branch], error) {
	b, err := h.getBranch(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	// an interrupted attempt of the same request discarded the branch
	if b.State == reeve.BranchDiscarded && retriesInterrupted(ctx) {
		return &body[reeve.Branch]{b}, nil
	}
	b, err = h.branches.Discard(ctx, b)
	return &body[reeve.Branch]{b}, err
}
