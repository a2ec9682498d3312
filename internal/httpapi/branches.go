package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// Branches is the room of branches, as the API needs it.
type Branches interface {
	NewProject(ctx context.Context, who reeve.Principal, q reeve.ProjectRequest) (reeve.Project, error)
	Diff(ctx context.Context, b reeve.Branch) (reeve.BranchDiff, error)
	Log(ctx context.Context, b reeve.Branch) (reeve.BranchLog, error)
	Merge(ctx context.Context, who reeve.Principal, b reeve.Branch, message string) (reeve.MergeResult, error)
	Discard(ctx context.Context, b reeve.Branch) (reeve.Branch, error)
}

func (s *server) branchRoutes(api huma.API) {
	const (
		get, post, del        = http.MethodGet, http.MethodPost, http.MethodDelete
		viewer, member, owner = reeve.Viewer, reeve.Member, reeve.Owner
		made, gone            = http.StatusCreated, http.StatusNoContent
		tag, at, branch       = "branches", "/api/projects", "/api/branches/{id}"
	)
	handle(api, route{get, at, "listProjects", "List projects", tag, viewer, 0}, s.listProjects)
	handle(api, route{post, at, "createProject", "Let agents work on a repository; takes a token that is valid in every workspace", tag, owner, made}, s.createProject)
	handle(api, route{get, at + "/{id}", "getProject", "Get a project", tag, viewer, 0}, s.getProject)
	handle(api, route{del, at + "/{id}", "deleteProject", "Remove a project; its repository stays", tag, owner, gone}, s.deleteProject)
	handle(api, route{get, "/api/branches", "listBranches", "List branches", tag, viewer, 0}, s.listBranches)
	handle(api, route{get, branch, "getBranch", "Get a branch, by its id or its conversation's", tag, viewer, 0}, s.getBranch)
	handle(api, route{get, branch + "/diff", "diffBranch", "What a branch would change", tag, viewer, 0}, s.diffBranch)
	handle(api, route{get, branch + "/log", "logBranch", "What was committed on a branch", tag, viewer, 0}, s.logBranch)
	handle(api, route{post, branch + "/merge", "mergeBranch", "Merge a branch into the default branch", tag, member, 0}, s.mergeBranch)
	handle(api, route{post, branch + "/discard", "discardBranch", "Delete a branch and its files", tag, member, 0}, s.discardBranch)
}

// shown is a project as somebody may see it: where it is on the server's disk is the owners' business.
func shown(who reeve.Principal, p reeve.Project) reeve.Project {
	if !who.Role.Allows(reeve.Owner) {
		p.Path = ""
	}
	return p
}

func (s *server) listProjects(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.ProjectList], error) {
	out := &body[reeve.ProjectList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Projects, err = snap.ListProjects(ctx, who.Workspace)
		for i, p := range out.Body.Projects {
			out.Body.Projects[i] = shown(who, p)
		}
		return err
	})
}

func (s *server) createProject(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ProjectRequest
}) (*body[reeve.Project], error) {
	// A path of the server's disk is no single tenant's business: what is there may be another's.
	if err := s.DB.View(ctx, func(snap *store.Snap) error { return serverWide(ctx, snap, who) }); err != nil {
		return nil, err
	}
	if err := reeve.CheckName(in.Body.Name); err != nil {
		return nil, err
	}
	p, err := s.Branches.NewProject(ctx, who, in.Body)
	if err != nil {
		return nil, err
	}
	out := &body[reeve.Project]{}
	return out, s.DB.Update(ctx, func(tx *store.Tx) error {
		p.ID, p.CreatedAt = tx.NewID(reeve.PrefixProject), tx.Now()
		out.Body = p
		if err := tx.InsertProject(ctx, p); err != nil {
			return err
		}
		return tx.Answer(ctx, out.Body)
	})
}

func (s *server) getProject(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Project], error) {
	out := &body[reeve.Project]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		p, err := snap.GetProject(ctx, who.Workspace, in.ID)
		out.Body = shown(who, p)
		return err
	})
}

func (s *server) deleteProject(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, s.DB.Update(ctx, func(tx *store.Tx) error {
		p, err := tx.GetProject(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		return tx.DeleteProject(ctx, p)
	})
}

func (s *server) listBranches(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Project string `query:"project" maxLength:"128" doc:"Id or name"`
	State   string `query:"state" enum:"making,ready,discarding,discarded"`
}) (*body[reeve.BranchList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[reeve.BranchList]{}
	err := s.DB.View(ctx, func(snap *store.Snap) (err error) {
		f := store.BranchFilter{User: chat.Sees(who), State: in.State, Before: in.Cursor, Limit: in.Limit}
		if in.Project != "" {
			p, err := snap.GetProject(ctx, who.Workspace, in.Project)
			if err != nil {
				return err
			}
			f.Project = p.ID
		}
		out.Body.Branches, err = snap.ListBranches(ctx, who.Workspace, f)
		return err
	})
	if n := len(out.Body.Branches); n == in.Limit {
		out.Body.Next = out.Body.Branches[n-1].ID
	}
	return out, err
}

// branchFor reads a branch that somebody may see.
func (s *server) branchFor(ctx context.Context, who reeve.Principal, id string) (b reeve.Branch, err error) {
	err = s.DB.View(ctx, func(snap *store.Snap) error {
		b, err = snap.GetBranch(ctx, who.Workspace, chat.Sees(who), id)
		return err
	})
	return b, err
}

func (s *server) getBranch(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Branch], error) {
	b, err := s.branchFor(ctx, who, in.ID)
	return &body[reeve.Branch]{b}, err
}

func (s *server) diffBranch(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.BranchDiff], error) {
	b, err := s.branchFor(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	d, err := s.Branches.Diff(ctx, b)
	if err != nil {
		return nil, err
	}
	shown, err := s.shown(ctx, who)
	if err != nil {
		return nil, err
	}
	texts := []string{d.Patch}
	for _, f := range d.Files {
		texts = append(texts, f.Path)
	}
	change := shown.Change(texts...)
	d.Patch = change.Patch(d.Patch, d.Truncated)
	for i, f := range d.Files {
		d.Files[i].Path = change.Text(f.Path)
	}
	return &body[reeve.BranchDiff]{d}, nil
}

// shown gives what takes the workspace's secrets out.
func (s *server) shown(ctx context.Context, who reeve.Principal) (v gate.Shown, err error) {
	return v, s.DB.View(ctx, func(snap *store.Snap) error {
		v, err = s.Gate.Shown(ctx, snap, who.Workspace)
		return err
	})
}

func (s *server) logBranch(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.BranchLog], error) {
	b, err := s.branchFor(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	l, err := s.Branches.Log(ctx, b)
	if err != nil {
		return nil, err
	}
	shown, err := s.shown(ctx, who)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, c := range l.Commits {
		texts = append(texts, c.Author, c.Message)
	}
	change := shown.Change(texts...)
	for i, c := range l.Commits {
		l.Commits[i].Author, l.Commits[i].Message = change.Text(c.Author), change.Text(c.Message)
	}
	return &body[reeve.BranchLog]{l}, nil
}

func (s *server) mergeBranch(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.MergeRequest
}) (*body[reeve.MergeResult], error) {
	b, err := s.branchFor(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	m, err := s.Branches.Merge(ctx, who, b, in.Body.Message)
	return &body[reeve.MergeResult]{m}, err
}

func (s *server) discardBranch(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Branch], error) {
	b, err := s.branchFor(ctx, who, in.ID)
	if err != nil {
		return nil, err
	}
	if b.State == reeve.BranchDiscarded && takenOver(ctx) { // by the attempt that was cut off, or by the server after it
		return &body[reeve.Branch]{b}, nil
	}
	b, err = s.Branches.Discard(ctx, b)
	return &body[reeve.Branch]{b}, err
}
