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

// Service makes branches, lets calls work on them, and merges or discards them on a person's word.
type Service struct {
	DB  *store.DB
	Dir string // holds the folder of each branch. No default

	locks keylock.Map // by branch or project: who has its turn works there
	exclusiveOps sync.Map    // by branch: what is being done with it on a person's word, such as "merged"
}

// Open makes a desk and its folder for branches, and removes what servers that died left in the folder. What is not old
// may be another server's.
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

// WorkingTree is a call's place on its branch, which is the call's alone until it leaves.
type WorkingTree struct {
	Root     string   // the folder to work in
	ReadOnly []string // what git reads besides
	Env      []string // for git: who commits, and where from it may fetch
	Leave    func()

	service    *Service
	folder  folder
	author  []string
	message string
}

// Check tells whether commands could work on a project now.
func (d *Service) Check(ctx context.Context, workspace, project string) error {
	_, err := d.getRepository(ctx, workspace, project)
	return err
}

func (d *Service) getRepository(ctx context.Context, workspace, project string) (r repository, err error) {
	err = d.DB.View(ctx, func(s *store.Snap) error {
		p, err := s.Agents().GetProject(ctx, workspace, project)
		r.Project = p
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return r, reeve.Errorf(reeve.NotFound, "there is no project %q, so there is no repository to work on", project).
			Hintf("an owner makes it with: reeve projects add %s PATH; or take it out of the agent's settings for "+
				"shell_exec", project)
	}
	if err != nil {
		return r, err
	}
	return openRepository(r.Project)
}

// OpenWork gives a call the branch that it works on, made if this is the first need of it.
func (d *Service) OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (*WorkingTree, error) {
	r, err := d.getRepository(ctx, inv.Workspace, project)
	if err != nil {
		return nil, err
	}
	b, agent, err := d.openBranch(ctx, inv, r.Project)
	if err != nil {
		return nil, err
	}
	leave, err := d.locks.Wait(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	f := folder{path: filepath.Join(d.Dir, b.ID), repository: r}
	if f.branch, err = d.prepareBranch(ctx, r, b.ID); err == nil && !f.isIntact() {
		err = f.repair(ctx, d)
	}
	if err != nil {
		leave()
		return nil, err
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' {
			return -1
		}
		return r
	}, agent.Name)
	who := authorEnv(name, agent.ID)
	// The repository is its owner's, whoever commands are: git is told that it may be fetched from.
	env := append(slices.Clone(who), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	return &WorkingTree{Root: f.path, ReadOnly: f.listReadablePaths(), Env: env, author: who, Leave: leave, service: d, folder: f,
		message: renderTrailers(inv, f.branch)}, nil
}

// ReadFolder gives the folder of the branch that a call works on, for those who only read. One that is not there yet,
// or is broken, is made if create is set. It waits for nobody: what it shows is what the branch's commands leave there
// at that moment.
func (d *Service) ReadFolder(ctx context.Context, inv *reeve.Invocation, project string, create bool) (string, error) {
	r, err := d.getRepository(ctx, inv.Workspace, project)
	if err != nil {
		return "", err
	}
	var b reeve.Branch
	var ready bool
	err = d.DB.View(ctx, func(s *store.Snap) error {
		agent, err := s.Agents().GetAgent(ctx, inv.Workspace, inv.Agent)
		if err != nil {
			return err
		}
		kind, subject, err := findBranchOwner(ctx, s, inv, agent.ID)
		if err == nil {
			b, ready, err = s.Agents().FindBranch(ctx, r.ID, kind, subject)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if f := (folder{path: filepath.Join(d.Dir, b.ID), repository: r, branch: b}); ready &&
		b.State == reeve.BranchReady && f.isIntact() {
		return f.path, nil
	}
	if !create {
		return "", reeve.Errorf(reeve.Conflict, "there is nothing in /project yet").
			Hintf("it is made by the first command or file tool that works there")
	}
	w, err := d.OpenWork(ctx, inv, project)
	if err != nil {
		return "", err
	}
	w.Leave()
	return w.Root, nil
}

// openBranch finds whose branch a call works on, and writes its row if there is none: an automation's, a conversation's, or
// the agent's own.
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
		b, err = tx.Agents().OpenBranch(ctx, b)
		return err
	})
	return b, agent, err
}

// findBranchOwner tells whose branch a call works on: that of whoever it all began with. An agent that another calls works where
// its caller does.
func findBranchOwner(ctx context.Context, s *store.Snap, inv *reeve.Invocation, agent string) (reeve.BranchKind, string, error) {
	session, ok := strings.CutPrefix(inv.Thread, reeve.SessionThread(inv.Agent, ""))
	if !ok {
		session = ""
	}
	began := inv.Run
	if len(inv.Ancestors) > 1 {
		agent, began, session = inv.Ancestors[0].AgentID, inv.Ancestors[0].RunID, ""
	}
	if began != "" { // whichever agent answers in a conversation, it is the conversation's
		run, err := s.Runs().GetRun(ctx, inv.Workspace, began)
		if err != nil && reeve.CodeOf(err) != reeve.NotFound { // a script that is only tried has no run
			return "", "", err
		}
		session = run.SessionID
	}
	if auto, err := s.Automations().IsAutomation(ctx, agent); err != nil || auto {
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

// renderBranchName is what git calls a branch.
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

// prepareBranch brings a branch's row and reference to where commands can work: what a crash left undone is finished first.
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
		b.Base, b.Head, b.State = "", "", reeve.BranchMaking
	}
	f, err := r.readState(ctx, b.Name)
	if err != nil {
		return b, err
	}
	if b.Base == "" { // it is noted where it begins before it is made, so that after a crash we know our own
		if b.Base, err = r.getStartCommit(f); err != nil {
			return b, err
		}
		if f.branch != "" {
			return b, r.createBranch(ctx, f, b.Name, "")
		}
		b.Head = b.Base
		if b, err = d.updateBranch(ctx, b); err != nil {
			return b, err
		}
	}
	if err := r.createBranch(ctx, f, b.Name, b.Base); err != nil {
		return b, err
	}
	if err := (folder{filepath.Join(d.Dir, b.ID), r, b}).create(ctx); err != nil {
		return b, err
	}
	b.State = reeve.BranchReady
	return d.updateBranch(ctx, b)
}

// getBranch gives a branch as it stands now.
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

// repair makes a folder again that is gone or broken. Of one that is broken the files stay.
func (f *folder) repair(ctx context.Context, d *Service) error {
	if info, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return f.create(ctx)
	}
	s, err := f.save(ctx, "What was there when .git was made anew", authorEnv("Reeve", "reeve"))
	if err != nil {
		return err
	}
	f.branch.Head = s.tip
	f.branch, err = d.updateBranch(ctx, f.branch)
	return err
}

// renderTrailers name what a commit belongs to.
func renderTrailers(inv *reeve.Invocation, b reeve.Branch) string {
	var out strings.Builder
	for _, l := range [][2]string{{"Reeve-Conversation", getConversationID(b)}, {"Reeve-Run", inv.Run},
		{"Reeve-Agent", inv.Agent}, {"Reeve-User", inv.User}, {"Reeve-Operation", inv.Operation}} {
		if l[1] != "" {
			out.WriteString("\n" + l[0] + ": " + strings.Map(replaceControl, l[1]))
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

// SaveResult is what became of what a command left behind.
type SaveResult struct {
	Branch string
	Commit string // the commit that holds it; empty when there was nothing new
	Note   string // what an agent should know
}

// Save commits what a call has changed, under a title, and brings it into the repository. The change is made by then:
// what cannot be saved is said in the note, and stays in the folder for the next time.
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
		out.Note = "the commit is in the repository, but could not be noted: " + reeve.AsError(err).Message
	}
	return out
}

// renderSubject is the first line of a commit: the title, cut.
func renderSubject(title string) string {
	line, _, more := strings.Cut(strings.TrimSpace(title), "\n")
	line = strings.Map(replaceControl, line)
	if r := []rune(line); len(r) > 72 {
		line, more = string(r[:72]), true
	}
	if more {
		line += " ..."
	}
	return line + "\n"
}
