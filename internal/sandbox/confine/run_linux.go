//go:build amd64 || arm64

package confine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/confine/cell"
)

// childName is what a child is called, which is how it knows what to be.
const childName = "reeve-confined"

// nobody is who commands are when the server is root: root's own files, and the kernel's switches, are not theirs.
const nobody = 65534

// job is a command on its way.
type job struct {
	Command
	Limits
	Tasks   int    // tasks that the user has outside, which the kernel counts too
	TempDir string // its folder for temporary files, where it has no /tmp of its own

	started func(pid int) error // notes which process it is; nil means that nobody need know
}

// tell is what the child is told.
func (j job) tell(trees int) cell.Job {
	return cell.Job{Args: j.Args, Env: j.Env, Root: j.Root, At: j.At, Dir: j.Dir, ReadOnly: j.ReadOnly,
		Network: j.Network, Namespaces: j.Mode == Namespaces, Trees: trees, Kept: j.Keep != nil,
		TempDir: j.TempDir, Seconds: int64((j.CPU + time.Second - 1) / time.Second), Memory: j.Memory,
		FileSize: j.FileSize, Temp: j.Temp, Processes: j.Processes + j.Tasks}
}

func run(ctx context.Context, c Command, l Limits) (Result, error) {
	var files closers
	defer files.close()
	j := job{Command: c, Limits: l}
	undo, err := j.prepare(ctx)
	defer undo()
	if err != nil {
		return Result{}, err
	}
	stdin := c.From
	if stdin == nil {
		if stdin, err = files.memory("stdin", c.Stdin); err != nil {
			return Result{}, broken("stdin", err)
		}
	}
	out, outWrite, err := files.pipe()
	if err != nil {
		return Result{}, broken("pipe", err)
	}
	stdout := outWrite
	if c.To != nil {
		stdout = c.To
	}
	errs, errsWrite, err := files.pipe()
	if err != nil {
		return Result{}, broken("pipe", err)
	}
	status, statusWrite, err := files.pipe()
	if err != nil {
		return Result{}, broken("pipe", err)
	}
	trees := files.trees(c)
	b, err := json.Marshal(j.tell(len(trees)))
	if err != nil {
		return Result{}, broken("job", err)
	}
	if c.Keep != nil {
		trees = append(trees, c.Keep)
	}
	told, err := files.memory("job", b)
	if err != nil {
		return Result{}, broken("job", err)
	}
	sys, err := attributes(c)
	if err != nil {
		return Result{}, broken("workspace", err)
	}
	runtime.LockOSThread() // the child is killed when the thread that made it ends, so this one must not
	defer runtime.UnlockOSThread()
	start := reeve.Monotonic()
	doing := begin(c.Root)
	defer doing.end()
	given := append([]*os.File{stdin, stdout, errsWrite, told, statusWrite}, trees...)
	path, started, err := child.ProgramPath(program(), given)
	if err != nil {
		return Result{}, broken("start", err)
	}
	p, err := os.StartProcess(path, []string{childName},
		&os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=off"}, Files: given, Sys: sys})
	started()
	if err != nil {
		return Result{}, broken("start", err)
	}
	for _, f := range []*os.File{outWrite, errsWrite, statusWrite} {
		_ = f.Close()
	}
	if j.started != nil {
		if err := j.started(p.Pid); err != nil {
			killAll(p.Pid)
			_, _ = p.Wait()
			return Result{}, broken("temporary folder", err)
		}
	}
	r, state, err := attend(ctx, p, j, out, errs)
	r.Duration = reeve.Since(start)
	if r.DiskFull {
		r.Removed, r.RemovedBytes = doing.remove(start)
	}
	if err != nil {
		return Result{}, err
	}
	if said, _ := io.ReadAll(io.LimitReader(status, 4096)); len(said) > 0 && !r.TimedOut {
		return Result{}, complaint(string(said))
	}
	r.ExitCode = state.ExitStatus()
	if state.Signaled() {
		r.ExitCode = 128 + int(state.Signal())
	}
	return r, nil
}

func broken(what string, err error) error {
	return reeve.Errorf(reeve.Unavailable, "the command could not be started (%s): %v", what, err)
}

// complaint is what a child said that did not come to be the command.
func complaint(said string) error {
	kind, text, _ := strings.Cut(said, ":")
	switch kind {
	case "dir":
		return reeve.Errorf(reeve.ToolFailed, "the directory cannot be entered:%s", text).
			Hintf("it must be a folder of the workspace")
	case "command":
		return reeve.Errorf(reeve.ToolFailed, "the command cannot be run:%s", text)
	}
	return reeve.Errorf(reeve.Unavailable, "the sandbox could not be set up: %s", said).
		Hintf("reeve doctor says what this machine can do")
}

// attributes say which namespaces the child begins in, and who it is there.
func attributes(c Command) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if c.Owner {
		a.Pdeathsig = 0 // what it does to somebody's files is brought to an end
	}
	uid, gid, err := user(c)
	if err != nil {
		return nil, err
	}
	if c.Mode == Landlock {
		if os.Getuid() == 0 {
			a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
		return a, nil
	}
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
	if !c.Network {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: cell.Inside, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: cell.Inside, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // over its own namespaces, until they are set up
	a.Credential = &syscall.Credential{Uid: cell.Inside, Gid: cell.Inside}
	if os.Getuid() == 0 {
		a.GidMappingsEnableSetgroups = true // so that the groups of root are dropped; only root may do that
	} else {
		a.Credential.NoSetGroups = true
	}
	return a, nil
}

// attend waits for the command and kills it when it must not go on. When it returns, all of the command is gone.
func attend(ctx context.Context, p *os.Process, j job,
	out, errs *os.File) (r Result, state syscall.WaitStatus, err error) {
	stdout, stderr := &capped{most: j.Output}, &capped{most: j.Output}
	var readers, watcher sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(stdout, out) })
	readers.Go(func() { _, _ = io.Copy(stderr, errs) })
	done := make(chan struct{})
	free, files, known := disk(j)
	watcher.Go(func() {
		late, look := time.NewTimer(j.Time), time.NewTimer(nextLook(j.Disk, j.Files))
		defer late.Stop()
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
			case <-late.C:
				r.TimedOut = true
			case <-look.C:
				f, n, ok := disk(j)
				left, rest := j.Disk-(free-f), j.Files-(n-files)
				if !ok || !known || left >= 0 && rest >= 0 {
					if !ok || !known {
						left, rest = j.Disk, j.Files
					}
					look.Reset(nextLook(left, rest))
					continue
				}
				r.DiskFull = true
			}
			killAll(p.Pid)
			return
		}
	})
	awaitEnd(p.Pid)
	close(done)
	watcher.Wait()
	killAll(p.Pid) // before it is reaped, so that its number still means its group
	s, err := p.Wait()
	readers.Wait()
	if err == nil {
		state, _ = s.Sys().(syscall.WaitStatus)
		err = ctx.Err()
		if err != nil && state.Exited() {
			err = nil // it ended by itself, just before
		}
	}
	if now, _, ok := disk(j); ok && known {
		r.Taken = max(0, free-now)
	}
	r.Stdout, r.Stderr, r.StdoutSize, r.StderrSize = stdout.kept, stderr.kept, stdout.size, stderr.size
	r.Truncated = stdout.size > int64(len(stdout.kept)) || stderr.size > int64(len(stderr.kept))
	return r, state, err
}

// awaitEnd returns when the process has ended, and does not reap it. With namespaces, all that it started has ended
// then, too.
func awaitEnd(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// killAll kills the process and its group. With namespaces the first process takes all others with it; without, the
// filter lets nobody leave the group.
func killAll(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL) // not yet in its group
}

// disk is how much room there is where the command can write, and how many files there are. File systems that do not
// count files give none. False means that it cannot be told just now, as when the folder is gone, or a disk over the
// network is: that is no full disk.
func disk(j job) (free, files int64, ok bool) {
	var first unix.Fsid
	for i, dir := range []string{j.Root, j.TempDir} {
		if dir == "" {
			continue
		}
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) != nil {
			return 0, 0, false
		}
		if i == 0 {
			first = s.Fsid
		} else if s.Fsid == first {
			continue // one disk is counted once
		}
		free += int64(s.Bavail) * s.Bsize
		files += int64(s.Files - s.Ffree)
	}
	return free, files, true
}

// capped keeps the beginning of what is written to it, and counts the rest.
type capped struct {
	kept []byte
	most int
	size int64
}

func (c *capped) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	c.kept = append(c.kept, b[:min(len(b), c.most-len(c.kept))]...)
	return len(b), nil
}
