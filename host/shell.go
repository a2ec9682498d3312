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

// shell is the pack of commands: in the workspace's /shared, or on a project's branch.
func (h *Host) shell(roots *files.Pack) *shell.Pack {
	return &shell.Pack{Root: roots.Shared, Env: h.shellEnv, Backend: h.cfg.Shell, Projects: projects{h.parts.branches},
		Shells: shells{h.db}, Total: int64(h.cfg.ShellDisk) << 20}
}

// shellEnv gives a variable that the operator lets commands have.
func (h *Host) shellEnv(name string) (string, bool) {
	if !slices.Contains(h.cfg.ShellEnv, name) {
		return "", false
	}
	return os.LookupEnv(name)
}

// projects lets commands work on branches.
type projects struct{ *branch.Desk }

// Enter gives a call its place.
func (p projects) Enter(ctx context.Context, inv *reeve.Invocation, project string) (shell.Place, error) {
	w, err := p.Desk.Enter(ctx, inv, project)
	if err != nil {
		return shell.Place{}, err
	}
	return shell.Place{Root: w.Root, ReadOnly: w.ReadOnly, Env: w.Env, Leave: w.Leave, Save: func(ctx context.Context, command string) (branch, commit, note string) {
		s := w.Save(ctx, "$ "+strings.TrimSpace(command))
		return s.Branch, s.Commit, s.Note
	}}, nil
}

// Look gives the folder that a call would work in.
func (p projects) Look(ctx context.Context, inv *reeve.Invocation, project string) (string, error) {
	return p.Desk.Look(ctx, inv, project, false)
}

// worktrees shows branches to the file tools.
type worktrees struct{ *branch.Desk }

// Of gives the project that an agent's commands work on.
func (w worktrees) Of(ctx context.Context, workspace, agent string) (project string, err error) {
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

// Enter gives a call its place.
func (w worktrees) Enter(ctx context.Context, inv *reeve.Invocation, project string) (files.Work, error) {
	at, err := w.Desk.Enter(ctx, inv, project)
	if err != nil {
		return files.Work{}, err
	}
	return files.Work{Dir: at.Root, Leave: at.Leave, Save: func(ctx context.Context, title string) (branch, commit, note string) {
		s := at.Save(ctx, title)
		return s.Branch, s.Commit, s.Note
	}}, nil
}

// shells keeps shells in the store.
type shells struct{ db *store.DB }

// Load reads one.
func (s shells) Load(ctx context.Context, workspace, thread string) (state []byte, err error) {
	err = s.db.View(ctx, func(snap *store.Snap) error {
		state, err = snap.Chat().GetShell(ctx, workspace, thread)
		return err
	})
	return state, err
}

// Save writes one.
func (s shells) Save(ctx context.Context, workspace, thread string, state []byte) error {
	return s.db.Update(ctx, func(tx *store.Tx) error { return tx.Chat().PutShell(ctx, workspace, thread, state) })
}
