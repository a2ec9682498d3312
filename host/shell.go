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

// newShellPack is the pack of commands: in the workspace's /shared, or on a project's branch.
func (h *Host) newShellPack(roots *files.Pack) *shell.Pack {
	return &shell.Pack{Root: roots.Shared, Env: h.shellEnv, Backend: h.cfg.Shell, Projects: shellProjects{h.services.branches},
		Shells: shellStore{h.db}, Total: int64(h.cfg.ShellDiskMB) << 20}
}

// shellEnv gives a variable that the operator lets commands have.
func (h *Host) shellEnv(name string) (string, bool) {
	if !slices.Contains(h.cfg.ShellEnv, name) {
		return "", false
	}
	return os.LookupEnv(name)
}

// shellProjects lets commands work on branches.
type shellProjects struct{ *branch.Service }

// OpenWork gives a call its place.
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

// fileProjects shows branches to the file tools.
type fileProjects struct{ *branch.Service }

// Of gives the project that an agent's commands work on.
func (w fileProjects) Of(ctx context.Context, workspace, agent string) (project string, err error) {
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

// OpenWork gives a call its place.
func (w fileProjects) OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (files.WorkingTree, error) {
	at, err := w.Service.OpenWork(ctx, inv, project)
	if err != nil {
		return files.WorkingTree{}, err
	}
	return files.WorkingTree{Dir: at.Root, Leave: at.Leave, Save: func(ctx context.Context, title string) (branch,
		commit, note string) {
		s := at.Save(ctx, title)
		return s.Branch, s.Commit, s.Note
	}}, nil
}

// shellStore keeps shells in the store.
type shellStore struct{ db *store.DB }

// Load reads one.
func (s shellStore) Load(ctx context.Context, workspace, thread string) (state []byte, err error) {
	err = s.db.View(ctx, func(snap *store.Snap) error {
		state, err = snap.Chat().GetShell(ctx, workspace, thread)
		return err
	})
	return state, err
}

// Save writes one.
func (s shellStore) Save(ctx context.Context, workspace, thread string, state []byte) error {
	return s.db.Update(ctx, func(tx *store.Tx) error { return tx.Chat().PutShell(ctx, workspace, thread, state) })
}
