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

// runGit runs git in a repository as its owner would.
func runGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com"},
		args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// repository returns the repository of a world's project, and creates it on first use.
func (w world) repository() (string, error) {
	dir := w.dir + "-repository"
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return dir, err
	}
	for i := range 50 { // enough files that a checkout takes a moment
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.txt", i)),
			[]byte(strings.Repeat(fmt.Sprintln(i), 1000)), 0o644); err != nil {
			return dir, err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		if _, err := runGit(dir, args...); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// prepareBranch creates a world with an engineer and returns the conversation in which it works. Without confinement it
// returns none and logs why.
func (r *rig) prepareBranch(t *testing.T) (e *engine, conversation string) {
	t.Helper()
	e = sqliteEngine(t)
	var off string
	var err error
	e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
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
		if err := c.do(ctx, "POST", "/api/agents", object{"name": "dev", "kind": "engineer",
			"policy": object{"tools": object{"shell_exec": "allow"}}}, nil); err != nil {
			return err
		}
		if err := c.do(ctx, "PUT", "/api/profiles/engineer", object{"capabilities": []string{"shell", "files.write"}},
			nil); err != nil {
			return err
		}
		if err := attachTools(ctx, c, "dev", "file_write"); err != nil {
			return err
		}
		var talk reeve.Conversation
		err := c.do(ctx, "POST", "/api/conversations", object{"agent": "dev"}, &talk)
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

// driveBranch plays the agent that works and the person who merges and discards. Both start over after a crash.
func (r *rig) driveBranch(ctx context.Context, w world, p *process, conversation string) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	dir, err := w.repository()
	if err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/projects", object{"name": "site", "path": dir}, nil); err != nil &&
		!hasStatus(err, 409) {
		return err
	}
	if err := c.do(ctx, "POST", "/api/agents/dev/tools",
		object{"tool_id": "shell_exec", "config": object{"project": "site"}}, nil); err != nil && !hasStatus(err, 409) {
		return err
	}
	work := func(command, want string) error {
		var res reeve.Result
		if err := c.do(ctx, "POST", "/api/agents/dev/calls", object{"tool": "shell_exec", "session": conversation,
			"args": object{"command": command}}, &res); err != nil {
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
	if err := c.do(ctx, "POST", "/api/agents/dev/calls", object{"tool": "file_write", "session": conversation,
		"args": object{"path": "/project/three.txt", "content": "three\n", "overwrite": true}}, &res); err != nil {
		return err
	}
	if res.IsError {
		return fmt.Errorf("file_write: %s", res.Content)
	}
	merge := func() error { return c.do(ctx, "POST", "/api/branches/"+conversation+"/merge", object{}, nil) }
	err = merge()
	// A write that the crash cut off may be looked up again meanwhile, which holds the branch: the person tries again.
	for begun := reeve.Monotonic(); hasStatus(err, 409) && reeve.Since(begun) < 30*time.Second; err = merge() {
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
		!hasStatus(err, 409) {
		return err
	}
	return work("cat one.txt two.txt three.txt", `one\ntwo\nthree\n`)
}

// checkBranch checks the repository from its owner's side.
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
		if got, err := runGit(dir, is.args...); err != nil || got != is.want {
			wrong = append(wrong, fmt.Errorf("git %v gives %q, want %q (%w)", is.args, got, is.want, err))
		}
	}
	return errors.Join(wrong...)
}

// TestW15_KillAtEveryCommitOfABranch kills the real server before and after every commit of a branch: begun, changed,
// merged, discarded, begun again. The next server finishes the work, and the repository is as without a crash.
func TestW15_KillAtEveryCommitOfABranch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e, conversation := r.prepareBranch(t)
	if conversation == "" {
		return
	}
	r.killAtEveryCommit(e, 20, func(ctx context.Context, w world, p *process) error {
		return r.driveBranch(ctx, w, p, conversation)
	}, r.checkBranch)
}

// TestW15_KillInTheMiddleOfGit kills the real server between commits, while git runs: when its folder is created in
// part or whole, when the branch exists, and when it has work.
func TestW15_KillInTheMiddleOfGit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e, conversation := r.prepareBranch(t)
	if conversation == "" {
		return
	}
	for what, there := range map[string]func(w world, dir string) bool{
		"half a folder": func(w world, _ string) bool { return fileExists(w.dir + "/branches/br_*.new/.git/HEAD") },
		"some files":    func(w world, _ string) bool { return fileExists(w.dir + "/branches/br_*.new/file*.txt") },
		"a folder":      func(w world, _ string) bool { return fileExists(w.dir + "/branches/br_*/one.txt") },
		"a reference":   func(_ world, dir string) bool { return fileExists(dir + "/.git/refs/heads/reeve/conv-*") },
		"a scratch":     func(w world, _ string) bool { return fileExists(w.dir + "/branches/scratch-*/.git/HEAD") },
		"a file":        func(w world, _ string) bool { return fileExists(w.dir + "/branches/br_*/three.txt") },
		"a merge":       func(_ world, dir string) bool { return fileExists(dir + "/two.txt") },
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			w, err := e.newPreparedWorld()
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
			if err := p.waitUntilReady(ctx); err != nil {
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
			if err := next.waitUntilReady(ctx); err != nil {
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

// fileExists reports whether a file matches a pattern.
func fileExists(pattern string) bool {
	list, _ := filepath.Glob(pattern)
	return len(list) > 0
}
