// Command reeve is Reeve's server and its command line client.
//
// "reeve serve" starts a server. Every other command is a client of a running server, except "reeve init" and
// "reeve restore", which work on the data directory. Each command is built by a function named after it
// (agentsCommand, agentsList); the functions share an app, which holds the global flags and the standard streams.
//
// A command prints its result to standard output and everything else to standard error. With --json it prints one
// JSON document. Errors are reported in one place, app.reportError, which also chooses the exit code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reeve/host"
)

func main() {
	host.ServeWorker() // does not return in a worker process
	os.Exit(run(signalContext(), os.Args[1:], environment{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv,
		home: os.UserHomeDir}))
}

// signalContext returns a context that is cancelled by the first SIGINT or SIGTERM. The second signal kills the
// process, because the handler is removed before the context is cancelled.
func signalContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// environment is the part of the process that commands use. Tests replace it.
type environment struct {
	in   io.Reader
	out  io.Writer
	err  io.Writer
	env  func(string) string
	home func() (string, error)
}

// app is the state that all commands share.
type app struct {
	environment
	flags   address
	json    bool
	started bool // a command's RunE was called; until then every error is a usage error
}

// run executes the command line args and returns the exit code.
func run(ctx context.Context, args []string, s environment) int {
	a := &app{environment: s}
	root := rootCommand(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		a.json = a.json || slices.Contains(args, "--json") // cobra stops parsing at the first bad flag
		err = usageError{err}
	}
	return a.reportError(err, cmd.CommandPath())
}

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "reeve",
		Short: "Run agents that act through tools, with a record of every action",
		Long: `Reeve runs agents that act through tools unattended, and records every action.

"reeve serve" starts a server. "reeve init" and "reeve restore" work on a data directory. All other
commands connect to a running server. They take its address and token from --url and --token, then
from REEVE_URL and REEVE_TOKEN, then from the data directory of a server on this machine (--dir, then
REEVE_DIR, then ~/.reeve). The token in a data directory is sent only to the server of that directory;
for any other address, set --token or REEVE_TOKEN.

Exit codes:
  0  success
  1  the request was refused or failed
  2  the command line is invalid
  3  not finished: a call waits for approval, is still running, or has an unknown outcome`,
		Example: `  reeve serve
  reeve agents create clerk
  reeve agents attach clerk file_list
  reeve call clerk file_list '{"path":"/"}'`,
		Version:       host.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(describeFlagError)
	f := root.PersistentFlags()
	f.StringVar(&a.flags.url, "url", "", "address of the server, such as http://127.0.0.1:7410 (REEVE_URL)")
	f.StringVar(&a.flags.token, "token", "", "access token; prefer REEVE_TOKEN, which other processes cannot see")
	f.StringVar(&a.flags.workspace, "workspace", "", "workspace to use (REEVE_WORKSPACE; default \"default\")")
	f.StringVar(&a.flags.dir, "dir", "", "data directory of a server on this machine (REEVE_DIR; default ~/.reeve)")
	f.BoolVar(&a.json, "json", false, "print the result as one JSON document")

	root.AddGroup(&cobra.Group{ID: "work", Title: "Work with agents:"},
		&cobra.Group{ID: "watch", Title: "Monitor and decide:"},
		&cobra.Group{ID: "run", Title: "Administer a server:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("work", chatCommand(a), conversationsCommand(a), toolsCommand(a), agentsCommand(a), journalCommand(a),
		callCommand(a), batchCommand(a), messagesCommand(a), outputCommand(a),
		wakeCommand(a), subscriptionsCommand(a), changesCommand(a), schedulesCommand(a), runCommand(a), applyCommand(a),
		automationsCommand(a), itemsCommand(a), branchesCommand(a), importCommand(a), mailCommand(a), evalCommand(a))
	add("watch", inboxCommand(a), notificationsCommand(a), notesCommand(a), summariesCommand(a), runsCommand(a),
		approvalsCommand(a), proposalsCommand(a), operationsCommand(a), explainCommand(a), stopCommand(a),
		heldCommand(a), resumeCommand(a))
	add("run", serveCommand(), initCommand(a), statusCommand(a), doctorCommand(a), workspacesCommand(a),
		consoleCommand(a), tokensCommand(a), secretsCommand(a), projectsCommand(a), profilesCommand(a),
		budgetsCommand(a), backupCommand(a), restoreCommand(a))
	root.SetHelpCommandGroupID("run")
	root.SetCompletionCommandGroupID("run")
	root.InitDefaultHelpCmd() // now, so that rejectUnknownArgs covers cobra's own commands too
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		rejectUnknownArgs(c)
	}
	a.trackStart(root)
	return root
}

// rejectUnknownArgs makes a command that only groups subcommands fail on an unknown subcommand. By default, cobra
// prints the help and succeeds.
func rejectUnknownArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		rejectUnknownArgs(sub)
	}
	if c.Name() == "help" {
		c.Args = func(c *cobra.Command, args []string) error {
			_, _, err := c.Root().Find(args)
			return err
		}
	}
	if c.Runnable() {
		return
	}
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		return usagef("unknown command %q for %q; available commands: %s", args[0], c.CommandPath(),
			strings.Join(names, ", "))
	}
}

// describeFlagError says what a flag takes. The library's text names Go functions.
func describeFlagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	takes := map[string]string{"bool": "true or false", "duration": "a duration, such as 90s or 24h",
		"float64": "a number", "int": "a whole number", "int64": "a whole number"}[flag.Value.Type()]
	if takes == "" {
		return err
	}
	return fmt.Errorf("--%s takes %s, not %q", flag.Name, takes, invalid.GetValue())
}

// trackStart sets a.started when the RunE of c or of one of its subcommands is called. An error before that comes from
// cobra and means that the command line is invalid.
func (a *app) trackStart(c *cobra.Command) {
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			a.started = true
			return work(c, args)
		}
	}
	for _, sub := range c.Commands() {
		a.trackStart(sub)
	}
}
