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

// Mode is how commands are held.
type Mode string

// The modes, the best first.
const (
	Namespaces Mode = "namespaces" // a world of its own, and Landlock and seccomp within it
	// Landlock and seccomp only: other processes' ids can be guessed, and paths are the machine's own
	Landlock Mode = "landlock"
	Off      Mode = "off" // nothing is run
)

// Command is what to run and what it may reach.
type Command struct {
	// the program and its arguments; a name without a slash is looked for where the system has its programs
	Args     []string
	Root     string   // the one folder it may write
	At       string   // where it sees Root, if namespaces hold it; empty means at its real path
	Dir      string   // where it starts, relative to Root; empty means Root
	ReadOnly []string // folders and files that it may read, besides the system's own
	Env      []string // name=value; nothing else is passed but PATH, HOME, TMPDIR and LANG
	Stdin    []byte
	Network  bool // whether it may use the machine's network
	Mode     Mode // empty means the best that this machine can do

	// Owner has the command run as who owns Root, and leaves its files theirs: only for programs we trust on what no
	// agent can write. It matters when the server is root, whose commands are nobody's otherwise. Such a command is not
	// killed with the server.
	Owner bool

	From *os.File `json:"-"` // read instead of Stdin, from where it stands
	To   *os.File `json:"-"` // written instead of keeping stdout
	Keep *os.File `json:"-"` // open for the command as number 198, besides the usual three
}

// Limits is how much a command may use. Zero means the default.
type Limits struct {
	Time      time.Duration // until all of it is killed; default 30 s
	CPU       time.Duration // processor time of any one process; default Time
	Memory    int64         // bytes of private memory of any one process; default 1 GiB
	Processes int           // processes and threads at once; default 256
	FileSize  int64         // bytes of any one file; default 256 MiB
	Disk      int64         // bytes by which the free space of Root's disk may shrink meanwhile; default 2 GiB
	Files     int64         // files and folders by which those on Root's disk may grow meanwhile; default 200,000
	Temp      int64         // bytes in its own /tmp; default 64 MiB
	Output    int           // bytes kept of stdout, and of stderr; default 1 MiB
}

// Result is what became of a command.
type Result struct {
	ExitCode       int // 128 and the signal's number if one ended it
	Stdout, Stderr []byte
	StdoutSize     int64 // bytes that were written, kept or not
	StderrSize     int64
	TimedOut       bool // it was killed when its time was over
	DiskFull       bool // it was killed because it took too much of the disk, or made too many files
	Truncated      bool // not all of its output was kept
	Duration       time.Duration
	Taken          int64 // bytes by which the free space of its disk shrank meanwhile, whoever took them
	Removed        int64 // files that it had made and that were removed, because it took too much of the disk
	RemovedBytes   int64 // what they held
}

func (l Limits) withDefaults() Limits {
	fill(&l.Time, 30*time.Second)
	fill(&l.CPU, l.Time)
	fill(&l.Memory, 1<<30)
	fill(&l.Processes, 256)
	fill(&l.FileSize, 256<<20)
	fill(&l.Disk, 2<<30)
	fill(&l.Files, 200_000)
	fill(&l.Temp, 64<<20)
	fill(&l.Output, 1<<20)
	return l
}

func fill[T ~int | ~int64](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// least is the memory below which not even the sandbox itself could be set up.
const least = 64 << 20

func (l Limits) validate() error {
	if l.Time < 0 || l.CPU < 0 || l.Processes < 0 || l.FileSize < 0 || l.Disk < 0 || l.Files < 0 || l.Temp < 0 ||
		l.Output < 0 {
		return reeve.Errorf(reeve.Validation, "a limit of a command is negative")
	}
	if l.Memory < least {
		return reeve.Errorf(reeve.Validation, "a memory limit of %d bytes is too small", l.Memory).
			Hintf("give at least %d", least)
	}
	return nil
}

// check makes the command's paths absolute and real, and refuses what cannot be.
func (c Command) check() (Command, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return c, reeve.Errorf(reeve.Validation, "there is no command to run")
	}
	for _, s := range append(append([]string{c.Dir, c.At}, c.Args...), c.Env...) {
		if strings.ContainsRune(s, 0) {
			return c, reeve.Errorf(reeve.Validation, "a command cannot contain a NUL character")
		}
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return c, reeve.Errorf(reeve.Validation, "a variable of a command's environment is not name=value")
		}
	}
	if c.Dir != "" && !filepath.IsLocal(c.Dir) {
		return c, reeve.Errorf(reeve.Validation, "the directory %q is not below the workspace", c.Dir).
			Hintf("give a relative path without ..")
	}
	if c.At != "" && (!filepath.IsAbs(c.At) || filepath.Clean(c.At) != c.At || c.At == "/") {
		return c, reeve.Errorf(reeve.Validation, "%q is not a place for the workspace", c.At).
			Hintf("give an absolute path, such as /shared")
	}
	var err error
	if c.Root, err = realPath(c.Root); err != nil {
		return c, reeve.Errorf(reeve.Unavailable, "the workspace's folder cannot be opened: %w", err)
	}
	if info, err := os.Stat(c.Root); err != nil || !info.IsDir() || c.Root == "/" {
		return c, reeve.Errorf(reeve.Validation, "the workspace is not a folder of its own")
	}
	for i, p := range c.ReadOnly {
		if c.ReadOnly[i], err = realPath(p); err != nil {
			return c, reeve.Errorf(reeve.Validation, "what is to be read-only cannot be opened: %w", err)
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

// Run runs a command and returns when it, and all that it started, is gone. A command that fails, or is killed by a
// limit, is a result; an error means that it was not run, or that ctx ended first.
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
	case c.Mode == Landlock && best == Namespaces: // both are there
	case c.Mode != best:
		return Result{}, off("%s: %s", c.Mode, reason)
	}
	if c.Mode == Off {
		return Result{}, off("%s", reason)
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return run(ctx, c, l)
}

func off(format string, args ...any) error {
	return reeve.Errorf(reeve.Unsupported, "commands cannot be confined here: "+format, args...).
		Hintf("reeve doctor says what is missing")
}

// served notes that this program gives its children the chance to be sandboxes, so that it may be started again.
var served atomic.Bool
