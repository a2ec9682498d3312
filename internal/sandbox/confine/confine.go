package confine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"reeve"
)

// Mode is the set of kernel features that confine a command.
type Mode string

// The modes, strongest first.
const (
	Namespaces Mode = "namespaces" // namespaces, Landlock and seccomp
	// Landlock and seccomp only: the command can guess the ids of other processes and sees the machine's real paths
	Landlock Mode = "landlock"
	Off      Mode = "off" // nothing is run
)

// Command is a command to run and the resources that it may access.
type Command struct {
	// the program and its arguments; a name without a slash is looked up in the system's program folders
	Args     []string
	Root     string   // the one folder that the command may write
	At       string   // path of Root inside namespaces; default its real path
	Dir      string   // working directory, relative to Root; default Root
	ReadOnly []string // folders and files that it may read, besides the system's own
	Env      []string // variables as name=value, besides PATH, HOME, TMPDIR, LANG and PWD
	Stdin    []byte
	Network  bool // it may use the machine's network
	Mode     Mode // default the strongest that this machine supports

	// Owner runs the command as the owner of Root and does not change the owner of files. It is only for trusted
	// programs on files that no agent can write. It makes a difference if the server is root, because commands then run
	// as nobody otherwise. Such a command is not killed when the server ends.
	Owner bool

	From *os.File `json:"-"` // standard input instead of Stdin, from its current offset
	To   *os.File `json:"-"` // standard output, which is then not part of the result
	Keep *os.File `json:"-"` // a fourth open file, as descriptor 198 of the command
}

// Limits are the resource limits of a command. Zero means the default.
type Limits struct {
	Time      time.Duration // time until all processes are killed; default 30 s
	CPU       time.Duration // processor time of any one process; default Time
	Memory    int64         // bytes of private memory of any one process; default 1 GiB
	Processes int           // processes and threads at once; default 256
	FileSize  int64         // bytes of any one file; default 256 MiB
	Disk      int64         // bytes by which the free space of Root's disk may shrink during the run; default 2 GiB
	Files     int64         // new files and folders on Root's disk during the run; default 200,000
	Temp      int64         // bytes in the private /tmp; default 64 MiB
	Output    int           // bytes kept of stdout, and of stderr; default 1 MiB
}

// Result is the result of a command.
type Result struct {
	ExitCode       int // 128 plus the signal number if a signal ended the command
	Stdout, Stderr []byte
	StdoutSize     int64 // bytes written, including those not kept
	StderrSize     int64
	TimedOut       bool // killed at the time limit
	DiskFull       bool // killed because it exceeded Limits.Disk or Limits.Files
	Truncated      bool // some output was not kept
	Duration       time.Duration
	Taken          int64 // bytes by which the free space of the disk shrank during the run, from any cause
	Removed        int64 // files of the command that were removed because it exceeded a disk limit
	RemovedBytes   int64 // bytes of these files
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Time, 30*time.Second)
	setDefault(&l.CPU, l.Time)
	setDefault(&l.Memory, 1<<30)
	setDefault(&l.Processes, 256)
	setDefault(&l.FileSize, 256<<20)
	setDefault(&l.Disk, 2<<30)
	setDefault(&l.Files, 200_000)
	setDefault(&l.Temp, 64<<20)
	setDefault(&l.Output, 1<<20)
	return l
}

func setDefault[T ~int | ~int64](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// minMemory is the memory that the sandbox needs to start.
const minMemory = 64 << 20

func (l Limits) validate() error {
	if l.Time < 0 || l.CPU < 0 || l.Processes < 0 || l.FileSize < 0 || l.Disk < 0 || l.Files < 0 || l.Temp < 0 ||
		l.Output < 0 {
		return reeve.Errorf(reeve.Validation, "a command limit is negative")
	}
	if l.Memory < minMemory {
		return reeve.Errorf(reeve.Validation, "a memory limit of %d bytes is too small", l.Memory).
			Hintf("use at least %d", minMemory)
	}
	return nil
}

// check validates the command and returns it with absolute paths without symbolic links.
func (c Command) check() (Command, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return c, reeve.Errorf(reeve.Validation, "the command is empty")
	}
	for _, s := range append(append([]string{c.Dir, c.At}, c.Args...), c.Env...) {
		if strings.ContainsRune(s, 0) {
			return c, reeve.Errorf(reeve.Validation, "a command cannot contain a NUL character")
		}
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return c, reeve.Errorf(reeve.Validation, "an environment variable of the command is not name=value")
		}
	}
	if c.Dir != "" && !filepath.IsLocal(c.Dir) {
		return c, reeve.Errorf(reeve.Validation, "the directory %q is not in the workspace", c.Dir).
			Hintf("use a relative path without ..")
	}
	if c.At != "" && (!filepath.IsAbs(c.At) || filepath.Clean(c.At) != c.At || c.At == "/") {
		return c, reeve.Errorf(reeve.Validation, "invalid path for the workspace: %q", c.At).
			Hintf("use an absolute path, such as /shared")
	}
	var err error
	if c.Root, err = realPath(c.Root); err != nil {
		return c, reeve.Errorf(reeve.Unavailable, "cannot open the folder of the workspace: %w", err)
	}
	if info, err := os.Stat(c.Root); err != nil || !info.IsDir() || c.Root == "/" {
		return c, reeve.Errorf(reeve.Validation, "the workspace must be a folder other than /")
	}
	for i, p := range c.ReadOnly {
		if c.ReadOnly[i], err = realPath(p); err != nil {
			return c, reeve.Errorf(reeve.Validation, "cannot open a read-only path: %w", err)
		}
	}
	return c, nil
}

func realPath(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil || p == "" {
		return "", os.ErrNotExist
	}
	return filepath.EvalSymlinks(abs)
}

// Run runs a command and returns when it and all processes that it started have ended. If the command fails or a limit
// kills it, Run returns a result. An error means that the command did not run, or that ctx ended first.
func Run(ctx context.Context, c Command, l Limits) (Result, error) {
	l = l.withDefaults()
	if err := l.validate(); err != nil {
		return Result{}, err
	}
	c.ReadOnly = append([]string(nil), c.ReadOnly...)
	c, err := c.check()
	if err != nil {
		return Result{}, err
	}
	best, reason := Available()
	switch {
	case c.Mode == "":
		c.Mode = best
	case c.Mode == Landlock && best == Namespaces: // the machine supports both
	case c.Mode != best:
		return Result{}, unsupportedError("%s: %s", c.Mode, reason)
	}
	if c.Mode == Off {
		return Result{}, unsupportedError("%s", reason)
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return run(ctx, c, l)
}

func unsupportedError(format string, args ...any) error {
	return reeve.Errorf(reeve.Unsupported, "commands cannot be confined here: "+format, args...).
		Hintf("run reeve doctor to see what is missing")
}

// servesSandbox is set once this program has called Serve, so Run may start the program as a sandbox.
var servesSandbox atomic.Bool
