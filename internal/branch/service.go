package branch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reeve"
	"reeve/internal/keylock"
	"reeve/internal/store"
)

// Service creates branches, opens them for calls, and merges or discards them at the request of a person.
type Service struct {
	DB  *store.DB
	Dir string // contains the folder of each branch. Required

	locks        keylock.Map // by branch or project id; the holder works there
	exclusiveOps sync.Map    // by branch id: the operation of a person that holds the lock, such as "merged"
}

// Open returns a service. It creates dir and removes temporary files of servers that were killed. It keeps files
// younger than an hour, which another server may be using.
func Open(db *store.DB, dir string) (*Service, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, newWriteError(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, newWriteError(err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), reeve.PrefixBranch+"_") && !strings.HasSuffix(e.Name(), ".new") ||
			reeve.Now().Sub(info.ModTime()) < time.Hour {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return nil, newWriteError(err)
		}
	}
	return &Service{DB: db, Dir: dir}, nil
}

// WorkingTree is the folder of a branch, opened for one call. The branch is locked until Leave is called.
type WorkingTree struct {
	Root     string   // the folder to work in
	ReadOnly []string // other paths that git reads
	Env      []string // variables for git: the author of commits, and permission to fetch from the repository
	Leave    func()

	service *Service
	folder  folder
	author  []string
	message string
}

// Check fails if commands cannot work on a project now.
func (d *Service) Check(ctx context.Context, workspace, project string) error {
	_, err := d.getRepository(ctx, workspace, project)
	return err
}

// getRepository returns the repository of a project.
func (d *Service) getRepository(ctx context.Context, workspace, project string) (r repository, err error) {
	err = d.DB.View(ctx, func(s *store.Snap) error {
		p, err := s.Agents().GetProject(ctx, workspace, project)
		r.Project = p
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return r, reeve.Errorf(reeve.NotFound, "project %q does not exist", project).
			Hintf("an owner can create it with: reeve projects create %s PATH; or remove it from the agent's "+
				"settings for shell_exec", project)
	}
	if err != nil {
		return r, err
	}
	return openRepository(r.Project)
}

// OpenWork opens the branch that a call works on. It creates the branch and its folder if they do not exist, and waits
// until other commands on the branch have finished.
func (d *Service) OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (*WorkingTree, error) {
	r, err := d.getRepository(ctx, inv.Workspace, project)
	if err != nil {
		return nil, err
	}
	b, agent, err := d.openBranch(ctx, inv, r.Project)
	if err != nil {
		return nil, err
	}
	unlock, err := d.locks.Wait(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	f := folder{path: filepath.Join(d.Dir, b.ID), repository: r}
	if f.branch, err = d.prepareBranch(ctx, r, b.ID); err == nil && !f.isIntact() {
		err = f.repair(ctx, d)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' {
			return -1
		}
		return r
	}, agent.Name)
	author := authorEnv(name, agent.ID)
	// Git is told that it may fetch from the repository although another user owns it.
	env := append(slices.Clone(author), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	return &WorkingTree{Root: f.path, ReadOnly: f.listReadablePaths(), Env: env, author: author, Leave: unlock,
		service: d, folder: f,
		message: renderTrailers(inv, f.branch)}, nil
}

// ReadFolder returns the folder of the branch that a call works on, for reading. If the folder is missing or broken,
// ReadFolder creates it if create is set, and otherwise fails with Conflict. It does not wait for commands on the
// branch, so the content may change at any time.
func (d *Service) ReadFolder(ctx context.Context, inv *reeve.Invocation, project string, create bool) (string, error) {
	r, err := d.getRepository(ctx, inv.Workspace, project)
	if err != nil {
		return "", err
	}
	var b reeve.Branch
	var exists bool
	err = d.DB.View(ctx, func(s *store.Snap) error {
		agent, err := s.Agents().GetAgent(ctx, inv.Workspace, inv.Agent)
		if err != nil {
			return err
		}
		kind, subject, err := findBranchOwner(ctx, s, inv, agent.ID)
		if err == nil {
			b, exists, err = s.Agents().FindBranch(ctx, r.ID, kind, subject)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if f := (folder{path: filepath.Join(d.Dir, b.ID), repository: r, branch: b}); exists &&
		b.State == reeve.BranchReady && f.isIntact() {
		return f.path, nil
	}
	if !create {
		return "", reeve.Errorf(reeve.Conflict, "/project is empty").
			Hintf("the first command or file tool that uses /project fills it")
	}
	w, err := d.OpenWork(ctx, inv, project)
	if err != nil {
		return "", err
	}
	w.Leave()
	return w.Root, nil
}

// openBranch returns the branch that a call works on, and inserts it if it does not exist.
func (d *Service) openBranch(ctx context.Context, inv *reeve.Invocation,
	p reeve.Project) (b reeve.Branch, agent reeve.Agent, err error) {
	err = d.DB.Update(ctx, func(tx *store.Tx) error {
		if agent, err = tx.Agents().GetAgent(ctx, inv.Workspace, inv.Agent); err != nil {
			return err
		}
		b = reeve.Branch{ID: tx.NewID(reeve.PrefixBranch), WorkspaceID: inv.Workspace, ProjectID: p.ID}
		if b.Kind, b.Subject, err = findBranchOwner(ctx, &tx.Snap, inv, agent.ID); err != nil {
			return err
		}
		b.Name = renderBranchName(b.Kind, b.Subject)
		b, err = tx.Agents().GetOrInsertBranch(ctx, b)
		return err
	})
	return b, agent, err
}

// findBranchOwner returns the owner of the branch that a call works on: an automation, a conversation or an agent. A
// delegated call works on the branch of the agent that started the chain of delegation.
func findBranchOwner(ctx context.Context, s *store.Snap, inv *reeve.Invocation,
	agent string) (reeve.BranchKind, string, error) {
	session, ok := strings.CutPrefix(inv.Thread, reeve.SessionThread(inv.Agent, ""))
	if !ok {
		session = ""
	}
	rootRun := inv.Run
	if len(inv.Ancestors) > 1 {
		agent, rootRun, session = inv.Ancestors[0].AgentID, inv.Ancestors[0].RunID, ""
	}
	if rootRun != "" { // all agents of a conversation work on its branch
		run, err := s.Runs().GetRun(ctx, inv.Workspace, rootRun)
		if err != nil && reeve.CodeOf(err) != reeve.NotFound { // the test of a script has no run
			return "", "", err
		}
		session = run.SessionID
	}
	if isAutomation, err := s.Automations().IsAutomation(ctx, agent); err != nil || isAutomation {
		return reeve.AutomationBranch, agent, err
	}
	if session != "" {
		c, err := s.Chat().GetConversation(ctx, inv.Workspace, "", session)
		if err == nil || reeve.CodeOf(err) != reeve.NotFound {
			return reeve.ConversationBranch, c.ID, err
		}
	}
	return reeve.AgentBranch, agent, nil
}

// renderBranchName returns the git name of a branch.
func renderBranchName(kind reeve.BranchKind, subject string) string {
	_, id, found := strings.Cut(subject, "_")
	if !found || id == "" || strings.Trim(id,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		id = reeve.Hash([]byte(subject))[:26]
	}
	switch kind {
	case reeve.ConversationBranch:
		return "reeve/conv-" + id
	case reeve.AutomationBranch:
		return "reeve/auto-" + id
	case reeve.AgentBranch:
	}
	return "reeve/agent-" + id
}

// prepareBranch creates the reference and the folder of a branch if necessary, and returns the branch in state ready.
// It first completes steps that a crash has interrupted.
func (d *Service) prepareBranch(ctx context.Context, r repository, id string) (b reeve.Branch, err error) {
	b, err = d.getBranch(ctx, r.WorkspaceID, id)
	if err != nil || b.State == reeve.BranchReady {
		return b, err
	}
	if b.State == reeve.BranchDiscarding {
		if b, err = d.finishDiscard(ctx, r, b); err != nil {
			return b, err
		}
	}
	if b.State == reeve.BranchDiscarded {
		b.Base, b.Head, b.State = "", "", reeve.BranchCreating
	}
	state, err := r.readState(ctx, b.Name)
	if err != nil {
		return b, err
	}
	if b.Base == "" { // stored before the reference is created, so that a later attempt recognizes the reference
		if b.Base, err = r.getStartCommit(state); err != nil {
			return b, err
		}
		if state.branch != "" {
			return b, r.createBranch(ctx, state, b.Name, "") // fails: the branch is not ours
		}
		b.Head = b.Base
		if b, err = d.updateBranch(ctx, b); err != nil {
			return b, err
		}
	}
	if err := r.createBranch(ctx, state, b.Name, b.Base); err != nil {
		return b, err
	}
	if err := (folder{filepath.Join(d.Dir, b.ID), r, b}).create(ctx); err != nil {
		return b, err
	}
	b.State = reeve.BranchReady
	return d.updateBranch(ctx, b)
}

func (d *Service) getBranch(ctx context.Context, workspace, id string) (b reeve.Branch, err error) {
	err = d.DB.View(ctx, func(s *store.Snap) error {
		b, err = s.Agents().GetBranch(ctx, workspace, "", id)
		return err
	})
	return b, err
}

func (d *Service) updateBranch(ctx context.Context, b reeve.Branch) (reeve.Branch, error) {
	return b, d.DB.Update(ctx, func(tx *store.Tx) error { return tx.Agents().UpdateBranch(ctx, b) })
}

// repair creates a folder again that is missing or broken. The files of a broken folder stay.
func (f *folder) repair(ctx context.Context, d *Service) error {
	if info, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return f.create(ctx)
	}
	s, err := f.save(ctx, "Save files after repairing .git", authorEnv("Reeve", "reeve"))
	if err != nil {
		return err
	}
	f.branch.Head = s.tip
	f.branch, err = d.updateBranch(ctx, f.branch)
	return err
}

// renderTrailers returns the commit trailers that name the conversation, run, agent, user and operation of a call.
func renderTrailers(inv *reeve.Invocation, b reeve.Branch) string {
	var out strings.Builder
	for _, t := range [][2]string{{"Reeve-Conversation", getConversationID(b)}, {"Reeve-Run", inv.Run},
		{"Reeve-Agent", inv.Agent}, {"Reeve-User", inv.User}, {"Reeve-Operation", inv.Operation}} {
		if t[1] != "" {
			out.WriteString("\n" + t[0] + ": " + strings.Map(replaceControl, t[1]))
		}
	}
	return out.String()
}

func getConversationID(b reeve.Branch) string {
	if b.Kind == reeve.ConversationBranch {
		return b.Subject
	}
	return ""
}

func replaceControl(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// SaveResult is the result of WorkingTree.Save.
type SaveResult struct {
	Branch string
	Commit string // the new commit; empty if there were no changes
	Note   string // a message for the agent, such as why nothing was saved
}

// Save commits the changes of a call under a title and imports the commit into the repository. It does not fail,
// because the call has already made its changes. If it cannot save them, it says so in the note, and they stay in the
// folder for the next Save.
func (w *WorkingTree) Save(ctx context.Context, title string) SaveResult {
	out := SaveResult{Branch: w.folder.branch.Name}
	s, err := w.folder.save(ctx, renderSubject(title)+"\n"+w.message, w.author)
	if err != nil {
		out.Note = reeve.AsError(err).Message
		return out
	}
	if out.Note = s.note; s.tip == w.folder.branch.Head {
		return out
	}
	w.folder.branch.Head, out.Commit = s.tip, s.tip
	if w.folder.branch, err = w.service.updateBranch(ctx, w.folder.branch); err != nil {
		out.Note = "the commit is in the repository, but could not be recorded: " + reeve.AsError(err).Message
	}
	return out
}

// renderSubject returns the first line of a commit message: the title, cut to 72 characters.
func renderSubject(title string) string {
	line, _, isCut := strings.Cut(strings.TrimSpace(title), "\n")
	line = strings.Map(replaceControl, line)
	if r := []rune(line); len(r) > 72 {
		line, isCut = string(r[:72]), true
	}
	if isCut {
		line += " ..."
	}
	return line + "\n"
}
