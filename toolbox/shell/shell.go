package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"reeve"
	"reeve/internal/keylock"
	"reeve/internal/redact"
	"reeve/internal/sandbox"
	"reeve/internal/sandbox/confine"
)

// The shell, and the language in which its lines are read. bash's is the language of nearly all command lines that
// models write.
const (
	program  = "bash"
	language = syntax.LangBash
)

// Where commands see what they work in: the workspace, which the file tools call the same, or a project.
const (
	place        = "/shared"
	projectPlace = "/project"
)

// The backends.
const (
	hosts    = "host"
	sessions = "session"
	disabled = "disabled"
)

// Backends lists them.
func Backends() []string { return []string{hosts, sessions, disabled} }

const (
	defaultTime = 30 * time.Second
	mostTime    = 10 * time.Minute
	spareTime   = 2 * time.Minute // for setting up and clearing away, so that a command's end is always told
	mostOutput  = 256 << 10
	mostDisk    = 2 << 30
)

// Pack is the shell tool.
type Pack struct {
	Root func(workspace string) (string, error) // gives the folder of a workspace's /shared
	Env  func(name string) (string, bool)       // gives a variable that commands may have; nil means none

	// what agents have whose settings do not say; disabled is for all, whatever they say. Default: host
	Backend  string
	Projects Projects     // what agents can be set to work on; nil means nothing
	Shells   SessionStore // keeps shells between commands; nil means that there is no backend session

	Total int64 // bytes that the folder which a command works in may hold. Default: 10 GiB

	locks keylock.Map // commands of one session wait for each other
	rooms rooms
}

// Projects are repositories on which commands can work, each conversation on a branch of its own.
type Projects interface {
	Check(ctx context.Context, workspace, project string) error
	OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (WorkingTree, error)
	// ReadFolder returns the folder of the branch that a call would work on. CONFLICT means that it is not made yet.
	ReadFolder(ctx context.Context, inv *reeve.Invocation, project string) (string, error)
}

// WorkingTree is where one command works on a project.
type WorkingTree struct {
	Root     string
	ReadOnly []string // what it may read besides
	Env      []string
	Save     func(ctx context.Context, command string) (branch, commit, note string) // keeps what the command changed
	Leave    func()
}

type execArgs struct {
	Command   string `json:"command" minLength:"1" maxLength:"65536" doc:"A command line for bash"`
	TimeoutMS int64  `json:"timeout_ms,omitempty" minimum:"1" maximum:"600000" doc:"When to kill it and all that it started; 30000 unless given"`
	Cwd       string `json:"cwd,omitempty" maxLength:"4096" doc:"Where to start: a folder in /shared, or in /project if the agent works on one; there itself unless given"`
}

type execResult struct {
	ExitCode   int    `json:"exit_code" doc:"0 is success; 128 and a signal's number when one ended it"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	TimedOut   bool   `json:"timed_out,omitempty" doc:"It did not end in time, and was killed with all that it started"`
	DiskFull   bool   `json:"disk_full,omitempty" doc:"It took too much of the disk, or made too many files, and was killed with all that it started; the files that it had made are removed"`
	Truncated  bool   `json:"truncated,omitempty" doc:"There was more output than is kept"`
	Binary     bool   `json:"binary,omitempty" doc:"The output is not all text; what is not was replaced"`
	StdoutSize int64  `json:"stdout_bytes,omitempty" doc:"How much there was, if not all is here"`
	StderrSize int64  `json:"stderr_bytes,omitempty" doc:"How much there was, if not all is here"`
	DurationMS int64  `json:"duration_ms"`
	Branch     string `json:"branch,omitempty" doc:"The git branch that it worked on"`
	Commit     string `json:"commit,omitempty" doc:"The commit that holds what it changed; left out when it changed nothing"`
	Note       string `json:"note,omitempty" doc:"What is worth knowing besides"`
}

// settings is what an agent's attachment of the tool may say.
type settings struct {
	Backend   string   `json:"backend,omitempty" enum:"host,session,disabled" doc:"host runs each command in a shell of its own; session lets the shell of a conversation or run keep its directory, variables and functions; disabled runs none. What the server's configuration says unless given, and that is host"`
	Project   string   `json:"project,omitempty" maxLength:"128" doc:"The project to work on, each conversation on a branch of its own; /shared unless given"`
	Allow     []string `json:"allow,omitempty" doc:"The programs that may be run; * means all, which is so unless given"`
	Deny      []string `json:"deny,omitempty" doc:"The programs that may not be run, whatever allow says"`
	Operators []string `json:"operators,omitempty" enum:"assignment,background,control,list,pipe,redirect,substitution" doc:"Which are switched on; all unless given"`
	Network   bool     `json:"network,omitempty" owner:"true" doc:"Whether commands may use the machine's network, its own loopback included; takes an owner"`
	Env       []string `json:"env,omitempty" owner:"true" doc:"Names of variables to pass, of those that the server's shell_env lists; takes an owner"`
	TimeoutMS int64    `json:"timeout_ms,omitempty" minimum:"1" maximum:"600000" doc:"The longest that a command may take"`
	ShowNamed bool     `json:"show_named_values,omitempty" doc:"Whether the output keeps values after words such as password=; they are masked unless given. Stored secrets and known key formats are always masked"`
}

func (s settings) policy() policy {
	return policy{allow: s.Allow, deny: s.Deny, operators: s.Operators}
}

// ToolID is the tool's name.
const ToolID = "shell_exec"

// ProjectOf gives the project that an agent's settings for the tool name; empty means none.
func ProjectOf(config json.RawMessage) (string, error) {
	var s settings
	if err := reeve.Settings(ToolID, config, &s); err != nil {
		return "", err
	}
	return s.Project, nil
}

// Tools gives the pack's tool. Where commands cannot be confined it is broken, and says why.
func (p *Pack) Tools() []reeve.Tool {
	t := reeve.Tool{ID: ToolID, Name: "Run command", Category: "system", Pack: "shell", Capability: "shell",
		Effect: reeve.Unsafe, Tier: reeve.Privileged, Risk: reeve.HighRisk,
		Description: "Runs a bash command line and gives its exit code, stdout and stderr. It starts in /shared, " +
			"which the file tools see too and which is all it can write, or, if you work " +
			"on a project, in /project: the files of your own git branch, on which what a command changes is " +
			"committed when it ends, and which a person merges. Its /tmp is its own and is gone afterwards. " +
			"There is no network unless granted. Nothing goes on running after the command has ended.",
		TimeoutMS: (mostTime + spareTime).Milliseconds()}
	t.ConfigSchema, _ = reeve.SchemaFor[settings]() // a plain struct: it cannot fail, and a test reads it
	t.Check, t.Preview, t.Settings = p.check, p.preview, p.checkSettings
	t = reeve.MustTool(t, p.exec)
	if mode, reason := confine.Available(); mode == confine.Off {
		t.Broken = "commands cannot be confined here: " + reason
	}
	return []reeve.Tool{t}
}

// checkSettings refuses a project that there is not.
func (p *Pack) checkSettings(ctx context.Context, inv *reeve.Invocation) error {
	project, err := ProjectOf(inv.Config)
	if err != nil || project == "" || p.Projects == nil {
		return err
	}
	if reeve.CodeOf(p.Projects.Check(ctx, inv.Workspace, project)) == reeve.NotFound {
		return reeve.InvalidField("/config/project", "is the name of no project",
			"a project of this workspace; reeve projects lists them")
	}
	return nil // whether it can be worked on just now is another matter
}

// read gives an agent's settings, with what they leave unsaid.
func (p *Pack) read(config json.RawMessage) (s settings, err error) {
	if err := reeve.Settings(ToolID, config, &s); err != nil {
		return s, err
	}
	switch {
	case p.Backend == disabled:
		return s, reeve.Errorf(reeve.Denied, "the server's configuration switches shell_exec off").
			Hintf("shell: host in it switches it on")
	case s.Backend == disabled:
		return s, reeve.Errorf(reeve.Denied, "the agent's settings switch shell_exec off").
			Hintf("set backend to host in them")
	case s.Project != "" && p.Projects == nil:
		return s, reeve.Errorf(reeve.Unsupported,
			"the agent's settings for shell_exec name a project, and this server has none")
	case s.Backend == "":
		s.Backend = p.Backend
	}
	if s.Allow == nil {
		s.Allow = []string{"*"}
	}
	if s.Operators == nil {
		s.Operators = operators()
	}
	for _, o := range s.Operators {
		if !slices.Contains(operators(), o) {
			return s, reeve.Errorf(reeve.Validation,
				"the agent's settings for shell_exec name an operator %q that there is not", o).
				Hintf("there are %s", strings.Join(operators(), ", "))
		}
	}
	return s, nil
}

// bounded takes from settings what those do not grant on whose behalf a command runs: the network, variables and time.
// The line itself is judged by check, for each of them; judge is what a kept shell is judged by.
func (p *Pack) bounded(s settings, lent []json.RawMessage) (_ settings, judge policy, err error) {
	judge = s.policy()
	for _, config := range lent {
		their, err := p.read(config)
		if err != nil {
			return s, judge, err
		}
		if their.policy().listed() {
			judge = their.policy()
		}
		s.Network = s.Network && their.Network
		s.ShowNamed = s.ShowNamed && their.ShowNamed
		s.Env = slices.DeleteFunc(slices.Clone(s.Env),
			func(name string) bool { return !slices.Contains(their.Env, name) })
		if their.TimeoutMS > 0 && (s.TimeoutMS == 0 || their.TimeoutMS < s.TimeoutMS) {
			s.TimeoutMS = their.TimeoutMS
		}
	}
	return s, judge, nil
}

// check refuses what the agent's settings forbid, before anybody is asked to approve it.
func (p *Pack) check(ctx context.Context, inv *reeve.Invocation) error {
	in, err := reeve.Args[execArgs](inv)
	if err != nil {
		return err
	}
	s, err := p.read(inv.Config)
	if err != nil {
		return err
	}
	if _, _, err := p.plan(in, s); err != nil || s.Project == "" {
		return err
	}
	return p.Projects.Check(ctx, inv.Workspace, s.Project)
}

// plan works out what to run, and for how long.
func (p *Pack) plan(in execArgs, s settings) (c confine.Command, l confine.Limits, err error) {
	if strings.ContainsRune(in.Command, 0) {
		return c, l, reeve.Errorf(reeve.Validation, "a command cannot contain a NUL character")
	}
	if err := s.policy().check(in.Command); err != nil {
		return c, l, err
	}
	c = confine.Command{Args: []string{program, "-c", in.Command}, At: place, Network: s.Network}
	if s.Project != "" {
		c.At = projectPlace
	}
	if c.Dir, err = inside(in.Cwd, c.At); err != nil {
		return c, l, err
	}
	for _, name := range s.Env {
		if p.Env == nil {
			return c, l, noVariable(name)
		}
		v, ok := p.Env(name)
		if !ok {
			return c, l, noVariable(name)
		}
		c.Env = append(c.Env, name+"="+v)
	}
	l = confine.Limits{Time: defaultTime, Output: mostOutput + reeve.RedactWindow, Disk: mostDisk}
	if in.TimeoutMS > 0 {
		l.Time = time.Duration(in.TimeoutMS) * time.Millisecond
	}
	if most := time.Duration(s.TimeoutMS) * time.Millisecond; most > 0 {
		l.Time = min(l.Time, most)
	}
	return c, l, nil
}

func noVariable(name string) error {
	return reeve.Errorf(reeve.Denied,
		"the agent's settings for shell_exec pass %q, which the server does not give to commands", name).
		Hintf("add it to shell_env in the server's configuration")
}

// inside turns a folder as callers name it into one relative to where they work.
func inside(cwd, place string) (string, error) {
	dir := cwd
	if path.IsAbs(dir) {
		dir = path.Clean(dir)
		rest, ok := strings.CutPrefix(dir+"/", place+"/")
		if !ok {
			return "", reeve.Errorf(reeve.Validation, "the folder %q is not in %s", cwd, place).
				Hintf("commands start in %s or below it", place)
		}
		dir = strings.TrimSuffix(rest, "/")
	}
	if dir = path.Clean(dir); dir == ".." || strings.HasPrefix(dir, "../") || strings.ContainsRune(dir, 0) {
		return "", reeve.Errorf(reeve.Validation, "the folder %q is not in %s", cwd, place).
			Hintf("commands start in %s or below it", place)
	}
	return dir, nil
}

func (p *Pack) exec(ctx context.Context, in execArgs) (out execResult, err error) {
	inv := reeve.InvocationFrom(ctx)
	s, err := p.read(inv.Config)
	if err != nil {
		return out, err
	}
	s, judge, err := p.bounded(s, inv.DelegatorConfigs)
	if err != nil {
		return out, err
	}
	c, l, err := p.plan(in, s)
	if err != nil {
		return out, err
	}
	if s.Project == "" {
		if c.Root, err = p.Root(inv.Workspace); err != nil {
			return out, err
		}
		return p.run(ctx, inv, in, s, judge, c, l)
	}
	work, err := p.Projects.OpenWork(ctx, inv, s.Project)
	if err != nil {
		return out, err
	}
	defer work.Leave()
	c.Root, c.ReadOnly, c.Env = work.Root, work.ReadOnly, append(c.Env, work.Env...)
	if out, err = p.run(ctx, inv, in, s, judge, c, l); err != nil {
		return out, err
	}
	var note string
	out.Branch, out.Commit, note = work.Save(ctx, in.Command)
	out.Note = join(out.Note, note)
	return out, nil
}

// run runs the command, in the shell of its session if it has one.
func (p *Pack) run(ctx context.Context, inv *reeve.Invocation, in execArgs, s settings, judge policy, c confine.Command,
	l confine.Limits) (out execResult, err error) {
	if s.Backend != sessions {
		if err := p.unchanged(ctx, inv, in, s, c.Root); err != nil {
			return out, err
		}
		r, err := p.confined(ctx, c, l)
		return tell(s.redactor(inv), r), err
	}
	if p.Shells == nil {
		return out, reeve.Errorf(reeve.Unsupported, "this server keeps no shells").
			Hintf("set backend to host in the agent's settings for shell_exec")
	}
	done, err := p.locks.Wait(ctx, inv.Workspace+" "+inv.Thread)
	if err != nil {
		return out, err
	}
	defer done()
	if err := p.unchanged(ctx, inv, in, s, c.Root); err != nil {
		return out, err
	}
	shell, err := p.open(ctx, inv, &c, judge, in.Command, in.Cwd != "")
	if err != nil {
		return out, err
	}
	defer shell.close()
	r, err := p.confined(ctx, c, l)
	if err != nil {
		return out, err
	}
	out = tell(s.redactor(inv), r)
	note, err := shell.keep(ctx, r)
	if err != nil {
		note = "the shell's directory and variables could not be kept: " + reeve.AsError(err).Message
	}
	out.Note = join(out.Note, note)
	return out, nil
}

// confined runs a command that may take no more of the disk than its folder may grow.
func (p *Pack) confined(ctx context.Context, c confine.Command, l confine.Limits) (confine.Result, error) {
	left, err := p.rooms.left(ctx, c.Root, cmp.Or(p.Total, defaultTotal))
	if err != nil {
		return confine.Result{}, err
	}
	l.Disk = min(l.Disk, left)
	r, err := confine.Run(ctx, c, l)
	p.rooms.took(c.Root, r.Taken)
	return r, err
}

// join puts two notes together.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// redactor removes secrets from the output of a command: also values after words such as "password=", unless the
// settings show them.
func (s settings) redactor(inv *reeve.Invocation) *redact.Redactor {
	if s.ShowNamed {
		return inv.Redactor
	}
	return inv.Redactor.MaskNamed()
}

// tell returns the result of a command for the caller, without secrets.
func tell(secrets *redact.Redactor, r confine.Result) execResult {
	out := execResult{ExitCode: r.ExitCode, TimedOut: r.TimedOut, DiskFull: r.DiskFull,
		Truncated: max(r.StdoutSize, r.StderrSize) > mostOutput, DurationMS: r.Duration.Milliseconds()}
	text := func(b []byte, size int64) string {
		s, odd := sandbox.Text(b)
		// one that was killed may have been saying a secret
		if out.Binary = out.Binary || odd; size > mostOutput || r.TimedOut || r.DiskFull {
			return secrets.Head(s, mostOutput)
		}
		return secrets.Text(s)
	}
	out.Stdout, out.Stderr = text(r.Stdout, r.StdoutSize), text(r.Stderr, r.StderrSize)
	if out.Truncated {
		out.StdoutSize, out.StderrSize = r.StdoutSize, r.StderrSize
	}
	if r.Removed > 0 {
		out.Note = fmt.Sprintf("%d files that it had made, of %d MiB, were removed", r.Removed, r.RemovedBytes>>20)
	}
	return out
}
