package files

import (
	"context"
	"strings"

	"reeve"
)

// Projects gives access to the git repositories that agents work on. Each conversation works on its own branch, in a
// folder that is its /project.
type Projects interface {
	// GetProject returns the project that an agent works on, or an empty string.
	GetProject(ctx context.Context, workspace, agent string) (string, error)
	// Check returns an error if an agent cannot work on a project now, with code NotFound if there is no such project.
	Check(ctx context.Context, workspace, project string) error
	// ReadFolder returns the folder of the branch that a call works on, for reading. If the folder is missing,
	// ReadFolder creates it if create is set, and otherwise fails.
	ReadFolder(ctx context.Context, inv *reeve.Invocation, project string, create bool) (dir string, err error)
	// OpenWork returns the same folder for writing. The branch is locked for this call until WorkingTree.Leave.
	OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (WorkingTree, error)
}

// WorkingTree is the folder of a branch, opened for one call.
type WorkingTree struct {
	Dir   string
	Save  func(ctx context.Context, title string) (branch, commit, note string) // commits the changes
	Leave func()                                                                // unlocks the branch
}

// projectConfig is the configuration of a file tool for one agent.
type projectConfig struct {
	Project string `json:"project,omitempty" maxLength:"128" doc:"Project behind /project. Default: that of shell_exec"`
}

// commitInfo describes the commit of a change to a project. It is empty for changes elsewhere.
type commitInfo struct {
	Branch string `json:"branch,omitempty" doc:"Git branch of /project"`
	Commit string `json:"commit,omitempty" doc:"Commit with the change; absent if nothing changed"`
	Note   string `json:"note,omitempty" doc:"Further information about the commit"`
}

// rootSet identifies the folders behind the roots of one call.
type rootSet struct {
	workspace string
	project   string // the folder behind /project; empty if the call has no project
}

// projectAccess finds the project that an agent works on, and opens its folder.
type projectAccess struct {
	projects Projects // nil: there are no projects
}

// getProject returns the project that the agent of a call works on, or an empty string. In a check on behalf of another
// agent (inv.CheckFor), it returns that agent's project.
func (p *projectAccess) getProject(ctx context.Context, inv *reeve.Invocation) (string, error) {
	if p.projects == nil {
		return "", nil
	}
	var c projectConfig
	if err := reeve.DecodeSettings("this tool", inv.Config, &c); err != nil {
		return "", err
	}
	if c.Project != "" {
		return c.Project, nil
	}
	agent := inv.CheckFor
	if agent == "" {
		agent = inv.Agent
	}
	return p.projects.GetProject(ctx, inv.Workspace, agent)
}

// checkSettings checks that the configured project exists.
func (p *projectAccess) checkSettings(ctx context.Context, inv *reeve.Invocation) error {
	var c projectConfig
	if err := reeve.DecodeSettings("this tool", inv.Config, &c); err != nil || c.Project == "" ||
		p.projects == nil {
		return err
	}
	if reeve.CodeOf(p.projects.Check(ctx, inv.Workspace, c.Project)) == reeve.NotFound {
		return reeve.InvalidField("/config/project", "names a project that does not exist",
			"a project of this workspace; reeve projects lists them")
	}
	return nil // other errors may be temporary
}

// requireProject is like getProject but fails with Denied if the agent has no project.
func (p *projectAccess) requireProject(ctx context.Context, inv *reeve.Invocation) (string, error) {
	project, err := p.getProject(ctx, inv)
	if err == nil && project == "" {
		err = reeve.Errorf(reeve.Denied, "there is no root /%s: the agent works on no project", projectRoot).
			Hintf("use a path under /shared or /tmp, or ask a person to set project in the agent's settings for " +
				"shell_exec or this tool")
	}
	return project, err
}

// checkAccess checks that the agent's settings permit a path.
func (p *projectAccess) checkAccess(ctx context.Context, inv *reeve.Invocation, v vpath) error {
	if v.root != projectRoot {
		return nil
	}
	project, err := p.requireProject(ctx, inv)
	if err != nil {
		return err
	}
	return p.projects.Check(ctx, inv.Workspace, project)
}

// newPathCheck returns a [reeve.Tool] Check that parses the path in the arguments and checks access to it.
func newPathCheck[In any](p *projectAccess, path func(In) (vpath, error)) func(context.Context,
	*reeve.Invocation) error {
	return func(ctx context.Context, inv *reeve.Invocation) error {
		in, err := reeve.Args[In](inv)
		if err != nil {
			return err
		}
		v, err := path(in)
		if err != nil {
			return err
		}
		return p.checkAccess(ctx, inv, v)
	}
}

// resolveRoots returns the roots for a call that reads v. It creates the folder of the branch if v is in /project and
// the folder is missing.
func (p *projectAccess) resolveRoots(ctx context.Context, inv *reeve.Invocation, v vpath) (rootSet, error) {
	return p.resolveRootsWith(ctx, inv, v, true)
}

// resolveRootsWith is like resolveRoots but creates the folder of the branch only if create is set.
func (p *projectAccess) resolveRootsWith(ctx context.Context, inv *reeve.Invocation, v vpath,
	create bool) (roots rootSet, err error) {
	roots.workspace = inv.Workspace
	if v.root != projectRoot {
		return roots, nil
	}
	project, err := p.requireProject(ctx, inv)
	if err == nil {
		roots.project, err = p.projects.ReadFolder(ctx, inv, project, create)
	}
	return roots, err
}

// listReadableRoots returns the paths of the roots that an agent may read, and the folders behind them. If /project
// cannot be opened, it is not among the paths, and unavailable is the reason.
func (p *projectAccess) listReadableRoots(ctx context.Context,
	inv *reeve.Invocation) (paths []vpath, roots rootSet, unavailable, err error) {
	paths = []vpath{{root: sharedRoot}, {root: tmpRoot}}
	roots.workspace = inv.Workspace
	project, err := p.getProject(ctx, inv)
	if err != nil || project == "" {
		return paths, roots, nil, err
	}
	projectPath := vpath{root: projectRoot}
	withProject, unavailable := p.resolveRoots(ctx, inv, projectPath)
	if unavailable != nil {
		return paths, roots, unavailable, ctx.Err()
	}
	return append(paths, projectPath), withProject, nil, nil
}

// openForWriting returns the roots for a call that changes v. If v is in /project, it locks the branch. If err is nil,
// the caller must call finish, which unlocks the branch. finish(true) commits the changes first.
func (p *projectAccess) openForWriting(ctx context.Context, inv *reeve.Invocation, v vpath,
	tool string) (roots rootSet, finish func(changed bool) commitInfo, err error) {
	roots.workspace, finish = inv.Workspace, func(bool) commitInfo { return commitInfo{} }
	if v.root != projectRoot {
		return roots, finish, nil
	}
	project, err := p.requireProject(ctx, inv)
	if err != nil {
		return roots, finish, err
	}
	w, err := p.projects.OpenWork(ctx, inv, project)
	if err != nil {
		return roots, finish, err
	}
	roots.project = w.Dir
	return roots, func(changed bool) (s commitInfo) {
		defer w.Leave()
		if changed {
			// The change is on disk, so it is committed even if the call has timed out.
			s.Branch, s.Commit, s.Note = w.Save(context.WithoutCancel(ctx), tool+" "+strings.Join(v.names, "/"))
		}
		return s
	}, nil
}

// isGitDir reports whether a name is that of the .git folder, which the file tools hide.
func isGitDir(name string) bool { return strings.EqualFold(name, ".git") }
