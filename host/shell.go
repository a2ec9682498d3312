package host

import (
	"context"
	"os"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/branch"
	"reeve/internal/store"
	"reeve/toolbox/files"
	"reeve/toolbox/shell"
)

// newShellPack returns the pack of shell tools. Commands run in the workspace's /shared, or on the branch of a project.
func (h *Host) newShellPack(roots *files.Pack) *shell.Pack {
	return &shell.Pack{Root: roots.Shared, Env: h.shellEnv, Backend: h.cfg.Shell,
		Projects: shellProjects{h.services.branches},
		Shells:   shellStore{h.db}, Total: int64(h.cfg.ShellDiskMB) << 20}
}

// shellEnv returns an environment variable that the operator lets commands have.
func (h *Host) shellEnv(name string) (string, bool) {
	if !slices.Contains(h.cfg.ShellEnv, name) {
		return "", false
	}
	return os.LookupEnv(name)
}

// shellProjects adapts branches for the shell tools.
type shellProjects struct{ *branch.Service }

// OpenWork opens the working tree of a call.
func (p shellProjects) OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (shell.WorkingTree, error) {
	w, err := p.Service.OpenWork(ctx, inv, project)
	if err != nil {
		return shell.WorkingTree{}, err
	}
	return shell.WorkingTree{Root: w.Root, ReadOnly: w.ReadOnly, Env: w.Env, Leave: w.Leave,
		Save: func(ctx context.Context, command string) (branch, commit, note string) {
			s := w.Save(ctx, "$ "+strings.TrimSpace(command))
			return s.Branch, s.Commit, s.Note
		}}, nil
}

// ReadFolder returns the folder that a call would work in.
func (p shellProjects) ReadFolder(ctx context.Context, inv *reeve.Invocation, project string) (string, error) {
	return p.Service.ReadFolder(ctx, inv, project, false)
}

// fileProjects adapts branches for the file tools.
type fileProjects struct{ *branch.Service }

// GetProject returns the project that an agent works on.
func (w fileProjects) GetProject(ctx context.Context, workspace, agent string) (project string, err error) {
	err = w.DB.View(ctx, func(s *store.Snap) error {
		a, err := s.Agents().GetAgent(ctx, workspace, agent)
		if err != nil {
			return err
		}
		config, err := s.Agents().AttachedConfig(ctx, a.ID, shell.ToolID)
		if err == nil {
			project, err = shell.ProjectOf(config)
		}
		return err
	})
	return project, err
}

// OpenWork opens the working tree of a call.
func (w fileProjects) OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (files.WorkingTree, error) {
	tree, err := w.Service.OpenWork(ctx, inv, project)
	if err != nil {
		return files.WorkingTree{}, err
	}
	return files.WorkingTree{Dir: tree.Root, Leave: tree.Leave, Save: func(ctx context.Context, title string) (branch,
		commit, note string) {
		s := tree.Save(ctx, title)
		return s.Branch, s.Commit, s.Note
	}}, nil
}

// shellStore stores the state of shells.
type shellStore struct{ db *store.DB }

// Load returns the state of the shell of a thread.
func (s shellStore) Load(ctx context.Context, workspace, thread string) (state []byte, err error) {
	err = s.db.View(ctx, func(snap *store.Snap) error {
		state, err = snap.Chat().GetShell(ctx, workspace, thread)
		return err
	})
	return state, err
}

// Save stores the state of the shell of a thread.
func (s shellStore) Save(ctx context.Context, workspace, thread string, state []byte) error {
	return s.db.Update(ctx, func(tx *store.Tx) error { return tx.Chat().PutShell(ctx, workspace, thread, state) })
}
