package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
)

// gitIn runs git in a repository as its owner would.
func gitIn(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com"},
		args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// repository is where the project of a world is, made on first use.
func (w world) repository() (string, error) {
	dir := w.dir + "-repository"
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return dir, err
	}
	for i := range 50 { // enough that laying it out takes a moment
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.txt", i)),
			[]byte(strings.Repeat(fmt.Sprintln(i), 1000)), 0o644); err != nil {
			return dir, err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		if _, err := gitIn(dir, args...); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// branchEngine makes a world with an engineer, and gives the conversation it works in. Without confinement there is
// none, and it says why.
func (r *rig) branchEngine(t *testing.T) (e *engine, conversation string) {
	t.Helper()
	e = sqliteEngine(t)
	var off string
	var err error
	e.template, err = r.furnish(t.Context(), e, func(c caller) error {
		ctx := t.Context()
		var up api.DoctorReport
		if err := c.do(ctx, "GET", "/api/doctor", nil, &up); err != nil {
			return err
		}
		for _, p := range up.Checks {
			if p.Name == "sandbox" && !p.OK {
				off = p.Detail
			}
		}
		if err := c.do(ctx, "POST", "/api/agents", thing{"name": "dev", "kind": "engineer",
			"policy": thing{"tools": thing{"shell_exec": "allow"}}}, nil); err != nil {
			return err
		}
		if err := c.do(ctx, "PUT", "/api/profiles/engineer", thing{"capabilities": []string{"shell", "files.write"}},
			nil); err != nil {
			return err
		}
		if err := attach(ctx, c, "dev", "file_write"); err != nil {
			return err
		}
		var talk reeve.Conversation
		err := c.do(ctx, "POST", "/api/conversations", thing{"agent": "dev"}, &talk)
		conversation = talk.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if off != "" {
		t.Log("no confinement here: ", off)
		return e, ""
	}
	return e, conversation
}

// driveBranch is an agent that works, and the person who merges and discards what it did. Both begin again after a
// crash.
func (r *rig) driveBranch(ctx context.Context, w world, p *process, conversation string) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	dir, err := w.repository()
	if err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/projects", thing{"name": "site", "path": dir}, nil); err != nil &&
		!refusedWith(err, 409) {
		return err
	}
	if err := c.do(ctx, "POST", "/api/agents/dev/tools",
		thing{"tool_id": "shell_exec", "config": thing{"project": "site"}}, nil); err != nil && !refusedWith(err, 409) {
		return err
	}
	work := func(command, want string) error {
		var res reeve.Result
		if err := c.do(ctx, "POST", "/api/agents/dev/calls", thing{"tool": "shell_exec", "session": conversation,
			"args": thing{"command": command}}, &res); err != nil {
			return err
		}
		if res.IsError || !strings.Contains(res.Content, `"exit_code":0`) || !strings.Contains(res.Content, want) {
			return fmt.Errorf("%s: %s", command, res.Content)
		}
		return nil
	}
	for _, name := range []string{"one", "two"} {
		if err := work("echo "+name+" > "+name+".txt; git rev-parse --abbrev-ref HEAD", "reeve/conv-"); err != nil {
			return err
		}
	}
	var res reeve.Result
	if err := c.do(ctx, "POST", "/api/agents/dev/calls", thing{"tool": "file_write", "session": conversation,
		"args": thing{"path": "/project/three.txt", "content": "three\n", "overwrite": true}}, &res); err != nil {
		return err
	}
	if res.IsError {
		return fmt.Errorf("file_write: %s", res.Content)
	}
	merge := func() error { return c.do(ctx, "POST", "/api/branches/"+conversation+"/merge", thing{}, nil) }
	err = merge()
	// A write that the crash cut off may be looked up again meanwhile, which holds the branch: the person tries again.
	for begun := reeve.Monotonic(); refusedWith(err, 409) && reeve.Since(begun) < 30*time.Second; err = merge() {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/branches/"+conversation+"/discard", nil, nil); err != nil &&
		!refusedWith(err, 409) {
		return err
	}
	return work("cat one.txt two.txt three.txt", `one\ntwo\nthree\n`)
}

// checkBranch looks at the repository as its owner does.
func (r *rig) checkBranch(_ context.Context, w world) error {
	dir, err := w.repository()
	if err != nil {
		return err
	}
	var wrong []error
	for _, is := range []struct {
		args []string
		want string
	}{
		{[]string{"show", "main:one.txt", "main:two.txt", "main:three.txt"}, "one\ntwo\nthree"},
		{[]string{"rev-list", "--merges", "--count", "main"}, "1"},
		{[]string{"status", "--porcelain"}, ""},
		{[]string{"fsck", "--strict", "--no-dangling", "--no-progress"}, ""},
		{[]string{"branch", "--list", "--format=x", "reeve/*"}, "x"},
	} {
		if got, err := gitIn(dir, is.args...); err != nil || got != is.want {
			wrong = append(wrong, fmt.Errorf("git %v gives %q, want %q (%w)", is.args, got, is.want, err))
		}
	}
	return errors.Join(wrong...)
}

// TestW15_KillAtEveryCommitOfABranch kills the real server before and after every commit of a branch's life: begun,
// worked on, merged, discarded, begun anew. Whatever dies where, the next server finishes it, and the repository is as
// if nothing had happened.
func TestW15_KillAtEveryCommitOfABranch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e, conversation := r.branchEngine(t)
	if conversation == "" {
		return
	}
	r.everyCommit(e, 20, func(ctx context.Context, w world, p *process) error {
		return r.driveBranch(ctx, w, p,
			conversation)
	}, r.checkBranch)
}

// TestW15_KillInTheMiddleOfGit kills the real server as soon as its folder is half laid out, or laid out, or the branch
// is in the repository, or work is on it: between commits, while git runs.
func TestW15_KillInTheMiddleOfGit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e, conversation := r.branchEngine(t)
	if conversation == "" {
		return
	}
	for what, there := range map[string]func(w world, dir string) bool{
		"half a folder": func(w world, _ string) bool { return found(w.dir + "/branches/br_*.new/.git/HEAD") },
		"some files":    func(w world, _ string) bool { return found(w.dir + "/branches/br_*.new/file*.txt") },
		"a folder":      func(w world, _ string) bool { return found(w.dir + "/branches/br_*/one.txt") },
		"a reference":   func(_ world, dir string) bool { return found(dir + "/.git/refs/heads/reeve/conv-*") },
		"a scratch":     func(w world, _ string) bool { return found(w.dir + "/branches/scratch-*/.git/HEAD") },
		"a file":        func(w world, _ string) bool { return found(w.dir + "/branches/br_*/three.txt") },
		"a merge":       func(_ world, dir string) bool { return found(dir + "/two.txt") },
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			w, err := e.fresh()
			if err != nil {
				t.Fatal(err)
			}
			dir, err := w.repository()
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.serve(w)
			if err != nil {
				t.Fatal(err)
			}
			defer p.kill()
			if err := p.await(ctx); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- r.driveBranch(ctx, w, p, conversation) }()
			for !there(w, dir) && len(ended) == 0 {
			}
			p.kill()
			if err := <-ended; err != nil && !errors.Is(err, errGone) {
				t.Fatal(err)
			}
			next, err := r.serve(w)
			if err != nil {
				t.Fatal(err)
			}
			defer next.kill()
			if err := next.await(ctx); err != nil {
				t.Fatal(err)
			}
			if err := r.driveBranch(ctx, w, next, conversation); err != nil {
				t.Fatalf("%v\n%s", err, &next.log)
			}
			if err := r.checkBranch(ctx, w); err != nil {
				t.Error(err)
			}
		})
	}
}

// found tells whether there is a file like this.
func found(pattern string) bool {
	list, _ := filepath.Glob(pattern)
	return len(list) > 0
}
