package files

import (
	"context"
	"strings"

	"reeve"
)

// Projects are repositories on which agents work, each conversation on a branch and in a folder of its own, which is
// its /project.
type Projects interface {
	// Of gives the project that an agent's commands work on; empty means none.
	Of(ctx context.Context, workspace, agent string) (string, error)
	// Check tells whether a project could be worked on now.
	Check(ctx context.Context, workspace, project string) error
	// ReadFolder returns the folder of the branch that a call works on, to read. If it is not there, it is made first,
	// but only if it may be.
	ReadFolder(ctx context.Context, inv *reeve.Invocation, project string, create bool) (dir string, err error)
	// OpenWork gives the same to write, to this call alone until it leaves.
	OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (WorkingTree, error)
}

// WorkingTree is a call's place on its branch.
type WorkingTree struct {
	Dir   string
	Save  func(ctx context.Context, title string) (branch, commit, note string) // commits what was changed
	Leave func()
}

// projectConfig is what an agent's attachment of a file tool may say.
type projectConfig struct {
	Project string `json:"project,omitempty" maxLength:"128" doc:"The project whose branch is /project; the one that shell_exec works on unless given"`
}

// saved is where a change to a project went.
type saved struct {
	Branch string `json:"branch,omitempty" doc:"The git branch that /project is"`
	Commit string `json:"commit,omitempty" doc:"The commit that holds the change; left out when nothing changed"`
	Note   string `json:"note,omitempty" doc:"What is worth knowing besides"`
}

// ground is what the roots of one call are: its workspace's folders, and its branch's.
type ground struct {
	workspace string
	project   string // the folder that is /project; empty means that there is none
}

// project is what a call's agent works on, or on whose behalf that is asked; empty means nothing.
func (p *Pack) project(ctx context.Context, inv *reeve.Invocation) (string, error) {
	if p.cfg.Projects == nil {
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
	return p.cfg.Projects.Of(ctx, inv.Workspace, agent)
}

// checkSettings refuses a project that there is not.
func (p *Pack) checkSettings(ctx context.Context, inv *reeve.Invocation) error {
	var c projectConfig
	if err := reeve.DecodeSettings("this tool", inv.Config, &c); err != nil || c.Project == "" ||
		p.cfg.Projects == nil {
		return err
	}
	if reeve.CodeOf(p.cfg.Projects.Check(ctx, inv.Workspace, c.Project)) == reeve.NotFound {
		return reeve.InvalidField("/config/project", "is the name of no project",
			"a project of this workspace; reeve projects lists them")
	}
	return nil // whether it can be worked on just now is another matter
}

// named is project for a path that lies in one.
func (p *Pack) named(ctx context.Context, inv *reeve.Invocation) (string, error) {
	project, err := p.project(ctx, inv)
	if err == nil && project == "" {
		err = reeve.Errorf(reeve.Denied, "there is no root /%s: the agent works on no project", projectRoot).
			Hintf("use a path under /shared or /tmp; a person sets project in the agent's settings for shell_exec or " +
				"this tool")
	}
	return project, err
}

// reaches tells whether the agent's settings let it name a path.
func (p *Pack) reaches(ctx context.Context, inv *reeve.Invocation, v vpath) error {
	if v.root != projectRoot {
		return nil
	}
	project, err := p.named(ctx, inv)
	if err != nil {
		return err
	}
	return p.cfg.Projects.Check(ctx, inv.Workspace, project)
}

// checks makes a tool's policy of how its arguments name a path.
func checks[In any](p *Pack, path func(In) (vpath, error)) func(context.Context, *reeve.Invocation) error {
	return func(ctx context.Context, inv *reeve.Invocation) error {
		in, err := reeve.Args[In](inv)
		if err != nil {
			return err
		}
		v, err := path(in)
		if err != nil {
			return err
		}
		return p.reaches(ctx, inv, v)
	}
}

// ground gives what a call reads from.
func (p *Pack) ground(ctx context.Context, inv *reeve.Invocation, v vpath) (ground, error) {
	return p.groundAs(ctx, inv, v, true)
}

// groundAs is ground, for calls that may not make a branch too.
func (p *Pack) groundAs(ctx context.Context, inv *reeve.Invocation, v vpath, create bool) (g ground, err error) {
	g.workspace = inv.Workspace
	if v.root != projectRoot {
		return g, nil
	}
	project, err := p.named(ctx, inv)
	if err == nil {
		g.project, err = p.cfg.Projects.ReadFolder(ctx, inv, project, create)
	}
	return g, err
}

// roots gives the roots that an agent may look into, and what they are. A project that cannot be looked into is not one
// of them: closed says why.
func (p *Pack) roots(ctx context.Context, inv *reeve.Invocation) (list []vpath, g ground, closed, err error) {
	list = []vpath{{root: sharedRoot}, {root: tmpRoot}}
	g.workspace = inv.Workspace
	project, err := p.project(ctx, inv)
	if err != nil || project == "" {
		return list, g, nil, err
	}
	at := vpath{root: projectRoot}
	on, closed := p.ground(ctx, inv, at)
	if closed != nil {
		return list, g, closed, ctx.Err()
	}
	return append(list, at), on, nil, nil
}

// working gives what a call changes something in. Leave must be called in any case; with true it commits what was
// changed in a project.
func (p *Pack) working(ctx context.Context, inv *reeve.Invocation, v vpath,
	tool string) (g ground, leave func(changed bool) saved, err error) {
	g.workspace, leave = inv.Workspace, func(bool) saved { return saved{} }
	if v.root != projectRoot {
		return g, leave, nil
	}
	project, err := p.named(ctx, inv)
	if err != nil {
		return g, leave, err
	}
	w, err := p.cfg.Projects.OpenWork(ctx, inv, project)
	if err != nil {
		return g, leave, err
	}
	g.project = w.Dir
	return g, func(changed bool) (s saved) {
		defer w.Leave()
		if changed {
			// The change is made: that its time is over is no reason to leave it out.
			s.Branch, s.Commit, s.Note = w.Save(context.WithoutCancel(ctx), tool+" "+strings.Join(v.names, "/"))
		}
		return s
	}, nil
}

// isGit tells whether a name is that of git's own folder, which is not part of a project.
func isGit(name string) bool { return strings.EqualFold(name, ".git") }
