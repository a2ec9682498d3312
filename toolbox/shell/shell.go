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

// The shell and the language of its command lines. Models write nearly all command lines for bash.
const (
	// The shell and the language of its command lines. Models write nearly all command lines for bash.
	bashProgram = "bash"
	bashSyntax  = syntax.LangBash
)

// The folders that commands work in: the workspace, under the name that the file tools use, or a project.
const (
	// Where commands see their working folder: the workspace, under the same name as in the file tools, or a project.
	sharedMount  = "/shared"
	projectMount = "/project"
)

// The backends.
const (
	hostBackend     = "host"
	sessionBackend  = "session"
	disabledBackend = "disabled"
)

// Backends lists the backends of the tool.
func Backends() []string { return []string{hostBackend, sessionBackend, disabledBackend} }

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
	setupAllowance = 2 * time.Minute // for setup and cleanup, so that the end of a command is always reported
	maxOutput      = 256 << 10
	maxDisk        = 2 << 30
)

// Pack is the pack of the tool shell_exec.
type Pack struct {
	Root func(workspace string) (string, error) // returns the folder behind a workspace's /shared
	Env  func(name string) (string, bool)       // returns a variable that commands may use; nil means none

	// Backend is the backend of agents whose settings name none. disabled overrides all settings. Default: host
	Backend  string
	Projects Projects     // projects that agents can work on; nil means none
	Shells   SessionStore // stores shell state between commands; nil disables the backend session

	Total int64 // max bytes in the working folder. Default: 10 GiB

	locks keylock.Map // serialises the commands of one session
	usage usageCache
}

// Projects gives access to the repositories that commands can work on. Each conversation has its own branch.
type Projects interface {
	Check(ctx context.Context, workspace, project string) error
	OpenWork(ctx context.Context, inv *reeve.Invocation, project string) (WorkingTree, error)
	// ReadFolder returns the folder of the branch that a call would work on, or CONFLICT if it does not exist yet.
	ReadFolder(ctx context.Context, inv *reeve.Invocation, project string) (string, error)
}

// WorkingTree is the folder in which one command works on a project.
type WorkingTree struct {
	Root     string
	ReadOnly []string // further paths that the command may read
	Env      []string
	// commits the changes of the command
	Save  func(ctx context.Context, command string) (branch, commit, note string)
	Leave func()
}

type execArgs struct {
	Command   string `json:"command" minLength:"1" maxLength:"65536" doc:"Command line for bash"`
	TimeoutMS int64  `json:"timeout_ms,omitempty" minimum:"1" maximum:"600000" doc:"Time after which the command and all its processes are killed. Default: 30000"`
	Cwd       string `json:"cwd,omitempty" maxLength:"4096" doc:"Start folder. Default: /project with a project, else /shared"`
}

type execResult struct {
	ExitCode   int    `json:"exit_code" doc:"0 is success. 128 plus the signal number if a signal ended it"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	TimedOut   bool   `json:"timed_out,omitempty" doc:"True if it was killed at the timeout"`
	DiskFull   bool   `json:"disk_full,omitempty" doc:"True if it was killed because it used too much disk or made too many files. Its new files are removed"`
	Truncated  bool   `json:"truncated,omitempty" doc:"True if the output was longer than what is returned"`
	Binary     bool   `json:"binary,omitempty" doc:"True if bytes that are not text were replaced"`
	StdoutSize int64  `json:"stdout_bytes,omitempty" doc:"Full size, if truncated"`
	StderrSize int64  `json:"stderr_bytes,omitempty" doc:"Full size, if truncated"`
	DurationMS int64  `json:"duration_ms"`
	Branch     string `json:"branch,omitempty" doc:"Git branch that it worked on"`
	Commit     string `json:"commit,omitempty" doc:"Commit with its changes, if any"`
	Note       string `json:"note,omitempty" doc:"Further information"`
}

// settings are an agent's settings for the tool.
type settings struct {
	Backend string   `json:"backend,omitempty" enum:"host,session,disabled" doc:"host: new shell per command. session: the shell of a conversation or run keeps its directory, variables and functions. disabled: no commands. Default: setting shell of the server"`
	Project string   `json:"project,omitempty" maxLength:"128" doc:"Project to work on; each conversation has its own branch. Default: none, work in /shared"`
	Allow   []string `json:"allow,omitempty" doc:"Programs that may run. Default: *, which means all"`
	Deny    []string `json:"deny,omitempty" doc:"Programs that may not run. Overrides allow"`

	Operators []string `json:"operators,omitempty" enum:"assignment,background,control,list,pipe,redirect,substitution" doc:"Shell operators that may be used. Default: all"`

	Network   bool     `json:"network,omitempty" owner:"true" doc:"True to allow the network of the machine, including loopback. Only an owner may set it"`
	Env       []string `json:"env,omitempty" owner:"true" doc:"Names of environment variables to pass, out of those in shell_env of the server. Only an owner may set it"`
	TimeoutMS int64    `json:"timeout_ms,omitempty" minimum:"1" maximum:"600000" doc:"Maximum time of a command"`
	ShowNamed bool     `json:"show_named_values,omitempty" doc:"True to show values after words such as password=. Stored secrets and known key formats are always redacted"`
}

func (s settings) policy() policy {
	return policy{allow: s.Allow, deny: s.Deny, operators: s.Operators}
}

// ToolID is the id of the tool.
const ToolID = "shell_exec"

// ProjectOf returns the project in an agent's settings for the tool, or "" if there is none.
func ProjectOf(config json.RawMessage) (string, error) {
	var s settings
	if err := reeve.DecodeSettings(ToolID, config, &s); err != nil {
		return "", err
	}
	return s.Project, nil
}

// Tools returns shell_exec. If commands cannot be confined on this machine, the tool is marked as broken with the
// reason.
func (p *Pack) Tools() []reeve.Tool {
	t := reeve.Tool{ID: ToolID, Name: "Run command", Category: "system", Pack: "shell", Capability: "shell",
		Effect: reeve.Unsafe, Tier: reeve.Privileged, Risk: reeve.HighRisk,
		Description: "Run a bash command line. Returns exit code, stdout and stderr. It starts in /shared, which the " +
			"file tools see too and which is the only folder that it can write. If you work on a project, it starts " +
			"in /project: the files of your own git branch. Changes there are committed when the command ends, and a " +
			"person merges the branch. /tmp is private to the command and deleted afterwards. There is no network " +
			"unless granted. All processes end with the command.",
		TimeoutMS: (maxTimeout + setupAllowance).Milliseconds()}
	t.ConfigSchema, _ = reeve.SchemaFor[settings]() // cannot fail for a plain struct; a test covers it
	t.Check, t.Preview, t.CheckSettings = p.check, p.preview, p.checkSettings
	t = reeve.MustTool(t, p.exec)
	if mode, reason := confine.Available(); mode == confine.Off {
		t.Broken = "commands cannot be confined here: " + reason
	}
	return []reeve.Tool{t}
}

// checkSettings refuses settings that name an unknown project.
func (p *Pack) checkSettings(ctx context.Context, inv *reeve.Invocation) error {
	project, err := ProjectOf(inv.Config)
	if err != nil || project == "" || p.Projects == nil {
		return err
	}
	if reeve.CodeOf(p.Projects.Check(ctx, inv.Workspace, project)) == reeve.NotFound {
		return reeve.InvalidField("/config/project", "is not a project",
			"a project of this workspace; list them with reeve projects")
	}
	return nil // other errors, such as a busy project, may be temporary
}

// readSettings returns an agent's settings with defaults filled in. It fails if the tool is disabled.
func (p *Pack) readSettings(config json.RawMessage) (s settings, err error) {
	if err := reeve.DecodeSettings(ToolID, config, &s); err != nil {
		return s, err
	}
	switch {
	case p.Backend == disabledBackend:
		return s, reeve.Errorf(reeve.Denied, "shell_exec is disabled in the server configuration").
			Hintf("set shell: host in the server configuration")
	case s.Backend == disabledBackend:
		return s, reeve.Errorf(reeve.Denied, "shell_exec is disabled in the agent's settings").
			Hintf("set backend to host in the agent's settings for shell_exec")
	case s.Project != "" && p.Projects == nil:
		return s, reeve.Errorf(reeve.Unsupported,
			"the agent's settings for shell_exec name a project, but this server has no projects")
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
				"the agent's settings for shell_exec contain the unknown operator %q", o).
				Hintf("the operators are %s", strings.Join(operators(), ", "))
		}
	}
	return s, nil
}

// limitToPrincipals removes the network, variables and time that the agents in the principal chain do not also have.
// Check applies the policy of each of them to the command line. statePolicy is the policy for the state of a session.
func (p *Pack) limitToPrincipals(s settings, chain []json.RawMessage) (_ settings, statePolicy policy, err error) {
	statePolicy = s.policy()
	for _, config := range chain {
		their, err := p.readSettings(config)
		if err != nil {
			return s, statePolicy, err
		}
		if their.policy().restrictsPrograms() {
			statePolicy = their.policy()
		}
		s.Network = s.Network && their.Network
		s.ShowNamed = s.ShowNamed && their.ShowNamed
		s.Env = slices.DeleteFunc(slices.Clone(s.Env),
			func(name string) bool { return !slices.Contains(their.Env, name) })
		if their.TimeoutMS > 0 && (s.TimeoutMS == 0 || their.TimeoutMS < s.TimeoutMS) {
			s.TimeoutMS = their.TimeoutMS
		}
	}
	return s, statePolicy, nil
}

// check refuses a command that the agent's settings forbid, before a person is asked for approval.
func (p *Pack) check(ctx context.Context, inv *reeve.Invocation) error {
	in, err := reeve.Args[execArgs](inv)
	if err != nil {
		return err
	}
	s, err := p.readSettings(inv.Config)
	if err != nil {
		return err
	}
	if _, _, err := p.buildCommand(in, s); err != nil || s.Project == "" {
		return err
	}
	return p.Projects.Check(ctx, inv.Workspace, s.Project)
}

// buildCommand returns the command to run and its limits.
func (p *Pack) buildCommand(in execArgs, s settings) (c confine.Command, l confine.Limits, err error) {
	if strings.ContainsRune(in.Command, 0) {
		return c, l, reeve.Errorf(reeve.Validation, "command contains a NUL character")
	}
	if err := s.policy().check(in.Command); err != nil {
		return c, l, err
	}
	c = confine.Command{Args: []string{bashProgram, "-c", in.Command}, At: sharedMount, Network: s.Network}
	if s.Project != "" {
		c.At = projectMount
	}
	if c.Dir, err = relativeDir(in.Cwd, c.At); err != nil {
		return c, l, err
	}
	for _, name := range s.Env {
		if p.Env == nil {
			return c, l, variableDenied(name)
		}
		v, ok := p.Env(name)
		if !ok {
			return c, l, variableDenied(name)
		}
		c.Env = append(c.Env, name+"="+v)
	}
	l = confine.Limits{Time: defaultTimeout, Output: maxOutput + reeve.RedactWindow, Disk: maxDisk}
	if in.TimeoutMS > 0 {
		l.Time = time.Duration(in.TimeoutMS) * time.Millisecond
	}
	if most := time.Duration(s.TimeoutMS) * time.Millisecond; most > 0 {
		l.Time = min(l.Time, most)
	}
	return c, l, nil
}

func variableDenied(name string) error {
	return reeve.Errorf(reeve.Denied,
		"the agent's settings for shell_exec pass the variable %q, which the server does not offer to commands", name).
		Hintf("add the variable to shell_env in the server configuration")
}

// relativeDir converts a folder named by a caller to a path relative to mount.
func relativeDir(cwd, mount string) (string, error) {
	dir := cwd
	if path.IsAbs(dir) {
		dir = path.Clean(dir)
		rest, ok := strings.CutPrefix(dir+"/", mount+"/")
		if !ok {
			return "", reeve.Errorf(reeve.Validation, "folder %q is not in %s", cwd, mount).
				Hintf("use %s or a folder below it", mount)
		}
		dir = strings.TrimSuffix(rest, "/")
	}
	if dir = path.Clean(dir); dir == ".." || strings.HasPrefix(dir, "../") || strings.ContainsRune(dir, 0) {
		return "", reeve.Errorf(reeve.Validation, "folder %q is not in %s", cwd, mount).
			Hintf("use %s or a folder below it", mount)
	}
	return dir, nil
}

// exec runs the command in the workspace, or in a project, whose changes it then commits.
func (p *Pack) exec(ctx context.Context, in execArgs) (out execResult, err error) {
	inv := reeve.InvocationFrom(ctx)
	s, err := p.readSettings(inv.Config)
	if err != nil {
		return out, err
	}
	s, statePolicy, err := p.limitToPrincipals(s, inv.DelegatorConfigs)
	if err != nil {
		return out, err
	}
	c, l, err := p.buildCommand(in, s)
	if err != nil {
		return out, err
	}
	if s.Project == "" {
		if c.Root, err = p.Root(inv.Workspace); err != nil {
			return out, err
		}
		return p.run(ctx, inv, in, s, statePolicy, c, l)
	}
	work, err := p.Projects.OpenWork(ctx, inv, s.Project)
	if err != nil {
		return out, err
	}
	defer work.Leave()
	c.Root, c.ReadOnly, c.Env = work.Root, work.ReadOnly, append(c.Env, work.Env...)
	if out, err = p.run(ctx, inv, in, s, statePolicy, c, l); err != nil {
		return out, err
	}
	var note string
	out.Branch, out.Commit, note = work.Save(ctx, in.Command)
	out.Note = joinNotes(out.Note, note)
	return out, nil
}

// run runs the command, in the shell of its session if the backend is session.
func (p *Pack) run(ctx context.Context, inv *reeve.Invocation, in execArgs, s settings, statePolicy policy,
	c confine.Command, l confine.Limits) (out execResult, err error) {
	if s.Backend != sessionBackend {
		if err := p.checkUnchanged(ctx, inv, in, s, c.Root); err != nil {
			return out, err
		}
		r, err := p.runConfined(ctx, c, l)
		return newExecResult(s.redactor(inv), r), err
	}
	if p.Shells == nil {
		return out, reeve.Errorf(reeve.Unsupported, "this server does not support the backend session").
			Hintf("set backend to host in the agent's settings for shell_exec")
	}
	done, err := p.locks.Wait(ctx, inv.Workspace+" "+inv.Thread)
	if err != nil {
		return out, err
	}
	defer done()
	if err := p.checkUnchanged(ctx, inv, in, s, c.Root); err != nil {
		return out, err
	}
	shell, err := p.openSession(ctx, inv, &c, statePolicy, in.Command, in.Cwd != "")
	if err != nil {
		return out, err
	}
	defer shell.close()
	r, err := p.runConfined(ctx, c, l)
	if err != nil {
		return out, err
	}
	out = newExecResult(s.redactor(inv), r)
	note, err := shell.save(ctx, r)
	if err != nil {
		note = "the directory and variables of the shell could not be saved: " + reeve.AsError(err).Message
	}
	out.Note = joinNotes(out.Note, note)
	return out, nil
}

// runConfined runs a command in the sandbox. It limits the disk space of the command to what the folder may still grow.
func (p *Pack) runConfined(ctx context.Context, c confine.Command, l confine.Limits) (confine.Result, error) {
	left, err := p.usage.remaining(ctx, c.Root, cmp.Or(p.Total, defaultMaxFolder))
	if err != nil {
		return confine.Result{}, err
	}
	l.Disk = min(l.Disk, left)
	r, err := confine.Run(ctx, c, l)
	p.usage.add(c.Root, r.Taken)
	return r, err
}

// joinNotes joins two notes, each of which may be empty.
func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// redactor returns the redactor for the output of a command. It also masks values after words such as "password=",
// unless the settings show them.
func (s settings) redactor(inv *reeve.Invocation) *redact.Redactor {
	if s.ShowNamed {
		return inv.Redactor
	}
	return inv.Redactor.MaskNamed()
}

// newExecResult returns the result of a command without secrets.
func newExecResult(secrets *redact.Redactor, r confine.Result) execResult {
	out := execResult{ExitCode: r.ExitCode, TimedOut: r.TimedOut, DiskFull: r.DiskFull,
		Truncated: max(r.StdoutSize, r.StderrSize) > maxOutput, DurationMS: r.Duration.Milliseconds()}
	text := func(b []byte, size int64) string {
		s, odd := sandbox.DecodeText(b)
		// the output of a killed command may end inside a secret
		if out.Binary = out.Binary || odd; size > maxOutput || r.TimedOut || r.DiskFull {
			return secrets.Head(s, maxOutput)
		}
		return secrets.Text(s)
	}
	out.Stdout, out.Stderr = text(r.Stdout, r.StdoutSize), text(r.Stderr, r.StderrSize)
	if out.Truncated {
		out.StdoutSize, out.StderrSize = r.StdoutSize, r.StderrSize
	}
	if r.Removed > 0 {
		out.Note = fmt.Sprintf("%d files that the command had created (%d MiB) were removed", r.Removed,
			r.RemovedBytes>>20)
	}
	return out
}
