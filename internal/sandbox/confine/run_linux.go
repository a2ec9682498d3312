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

// childName is the name under which a sandbox process is started, and by which Serve recognizes it.
const childName = "reeve-confined"

// nobody is the user and group id of commands if the server is root. Commands then have no access to root's files and
// kernel settings.
const nobody = 65534

// job is a command with its limits and what prepare adds for the run.
type job struct {
	Command
	Limits
	Tasks   int    // processes and threads that the user already has, which count against the process limit
	TempDir string // folder for temporary files, if the command has no /tmp of its own

	recordStart func(pid int) error // stores the process id of the command; may be nil
}

// cellJob returns the job as the sandbox process receives it, with the number of trees opened for it.
func (j job) cellJob(trees int) cell.Job {
	return cell.Job{Args: j.Args, Env: j.Env, Root: j.Root, At: j.At, Dir: j.Dir, ReadOnly: j.ReadOnly,
		Network: j.Network, Namespaces: j.Mode == Namespaces, Trees: trees, Kept: j.Keep != nil,
		TempDir: j.TempDir, Seconds: int64((j.CPU + time.Second - 1) / time.Second), Memory: j.Memory,
		FileSize: j.FileSize, Temp: j.Temp, Processes: j.Processes + j.Tasks}
}

// run starts the sandbox process and supervises it. The command has been checked.
func run(ctx context.Context, c Command, l Limits) (Result, error) {
	var files openFiles
	defer files.close()
	j := job{Command: c, Limits: l}
	undo, err := j.prepare(ctx)
	defer undo()
	if err != nil {
		return Result{}, err
	}
	stdin := c.From
	if stdin == nil {
		if stdin, err = files.memoryFile("stdin", c.Stdin); err != nil {
			return Result{}, startError("stdin", err)
		}
	}
	out, outWrite, err := files.pipe()
	if err != nil {
		return Result{}, startError("pipe", err)
	}
	stdout := outWrite
	if c.To != nil {
		stdout = c.To
	}
	errs, errsWrite, err := files.pipe()
	if err != nil {
		return Result{}, startError("pipe", err)
	}
	status, statusWrite, err := files.pipe()
	if err != nil {
		return Result{}, startError("pipe", err)
	}
	trees := files.openTrees(c)
	b, err := json.Marshal(j.cellJob(len(trees)))
	if err != nil {
		return Result{}, startError("job", err)
	}
	if c.Keep != nil {
		trees = append(trees, c.Keep)
	}
	jobFile, err := files.memoryFile("job", b)
	if err != nil {
		return Result{}, startError("job", err)
	}
	sys, err := processAttributes(c)
	if err != nil {
		return Result{}, startError("workspace", err)
	}
	runtime.LockOSThread() // Pdeathsig kills the child when the thread that started it ends
	defer runtime.UnlockOSThread()
	start := reeve.Monotonic()
	current := beginActivity(c.Root)
	defer current.end()
	inherited := append([]*os.File{stdin, stdout, errsWrite, jobFile, statusWrite}, trees...)
	path, started, err := child.ProgramPath(sandboxProgram(), inherited)
	if err != nil {
		return Result{}, startError("start", err)
	}
	p, err := os.StartProcess(path, []string{childName},
		&os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=off"}, Files: inherited, Sys: sys})
	started()
	if err != nil {
		return Result{}, startError("start", err)
	}
	for _, f := range []*os.File{outWrite, errsWrite, statusWrite} {
		_ = f.Close()
	}
	if j.recordStart != nil {
		if err := j.recordStart(p.Pid); err != nil {
			killGroup(p.Pid)
			_, _ = p.Wait()
			return Result{}, startError("temporary folder", err)
		}
	}
	r, state, err := supervise(ctx, p, j, out, errs)
	r.Duration = reeve.Since(start)
	if r.DiskFull {
		r.Removed, r.RemovedBytes = current.removeNewFiles(start)
	}
	if err != nil {
		return Result{}, err
	}
	if message, _ := io.ReadAll(io.LimitReader(status, 4096)); len(message) > 0 && !r.TimedOut {
		return Result{}, setupError(string(message))
	}
	r.ExitCode = state.ExitStatus()
	if state.Signaled() {
		r.ExitCode = 128 + int(state.Signal())
	}
	return r, nil
}

func startError(what string, err error) error {
	return reeve.Errorf(reeve.Unavailable, "cannot start the command (%s): %v", what, err)
}

// setupError converts the message of a sandbox process that did not execute its command.
func setupError(message string) error {
	kind, text, _ := strings.Cut(message, ":")
	switch kind {
	case "dir":
		return reeve.Errorf(reeve.ToolFailed, "cannot change to the working directory:%s", text).
			Hintf("use a folder of the workspace")
	case "command":
		return reeve.Errorf(reeve.ToolFailed, "cannot run the command:%s", text)
	}
	return reeve.Errorf(reeve.Unavailable, "cannot set up the sandbox: %s", message).
		Hintf("run reeve doctor to see what this machine supports")
}

// processAttributes returns the namespaces, user and group in which the sandbox process starts.
func processAttributes(c Command) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if c.Owner {
		a.Pdeathsig = 0 // the command must finish its changes even if the server ends
	}
	uid, gid, err := commandUser(c)
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
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: cell.InsideID, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: cell.InsideID, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // to set up its own namespaces; dropped after that
	a.Credential = &syscall.Credential{Uid: cell.InsideID, Gid: cell.InsideID}
	if os.Getuid() == 0 {
		a.GidMappingsEnableSetgroups = true // drops the groups of root; only root may do that
	} else {
		a.Credential.NoSetGroups = true
	}
	return a, nil
}

// supervise waits for the command, and kills it when ctx ends or a time or disk limit is exceeded. When it returns, all
// processes of the command have ended.
func supervise(ctx context.Context, p *os.Process, j job,
	out, errs *os.File) (r Result, state syscall.WaitStatus, err error) {
	stdout, stderr := &cappedBuffer{limit: j.Output}, &cappedBuffer{limit: j.Output}
	var readers, watcher sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(stdout, out) })
	readers.Go(func() { _, _ = io.Copy(stderr, errs) })
	done := make(chan struct{})
	free, files, known := measureDisk(j)
	watcher.Go(func() {
		deadline, check := time.NewTimer(j.Time), time.NewTimer(nextCheck(j.Disk, j.Files))
		defer deadline.Stop()
		defer check.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
			case <-deadline.C:
				r.TimedOut = true
			case <-check.C:
				f, n, ok := measureDisk(j)
				bytesLeft, filesLeft := j.Disk-(free-f), j.Files-(n-files)
				if !ok || !known || bytesLeft >= 0 && filesLeft >= 0 {
					if !ok || !known {
						bytesLeft, filesLeft = j.Disk, j.Files
					}
					check.Reset(nextCheck(bytesLeft, filesLeft))
					continue
				}
				r.DiskFull = true
			}
			killGroup(p.Pid)
			return
		}
	})
	waitForExit(p.Pid)
	close(done)
	watcher.Wait()
	killGroup(p.Pid) // before the process is reaped, while its id still belongs to its group
	s, err := p.Wait()
	readers.Wait()
	if err == nil {
		state, _ = s.Sys().(syscall.WaitStatus)
		err = ctx.Err()
		if err != nil && state.Exited() {
			err = nil // the command ended by itself before it was killed
		}
	}
	if now, _, ok := measureDisk(j); ok && known {
		r.Taken = max(0, free-now)
	}
	r.Stdout, r.Stderr, r.StdoutSize, r.StderrSize = stdout.data, stderr.data, stdout.size, stderr.size
	r.Truncated = stdout.size > int64(len(stdout.data)) || stderr.size > int64(len(stderr.data))
	return r, state, err
}

// waitForExit waits until the process has ended, without reaping it. With namespaces, all processes that it started
// have then ended too.
func waitForExit(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// killGroup kills the process and its group. With namespaces, the kernel kills all other processes with the first one.
// Without them, the system call filter prevents processes from leaving the group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL) // in case the process has not created its group yet
}

// measureDisk returns the free bytes and the number of files on the disks that the command can write. File systems that
// do not count files report 0. It returns false if a disk cannot be measured now, for example because the folder was
// removed or a network disk is gone. That does not count as a full disk.
func measureDisk(j job) (free, files int64, ok bool) {
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
			continue // both folders are on the same disk
		}
		free += int64(s.Bavail) * s.Bsize
		files += int64(s.Files - s.Ffree)
	}
	return free, files, true
}

// cappedBuffer keeps the first limit bytes written to it, and counts all of them.
type cappedBuffer struct {
	data  []byte
	limit int
	size  int64
}

func (c *cappedBuffer) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	c.data = append(c.data, b[:min(len(b), c.limit-len(c.data))]...)
	return len(b), nil
}
