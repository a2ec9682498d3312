// Reeve runs agents that act through tools, unattended, and answers for every action. This is its one binary: the
// server and everything a person does with one.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"reeve/host"
)

func main() {
	host.ServeWorker() // a worker must not become a second server
	os.Exit(run(untilSignal(), os.Args[1:], surroundings{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv,
		home: os.UserHomeDir}))
}

// untilSignal is a context that the first signal ends. The next one ends the process at once, also if it comes as soon
// as anybody can see that the first was heard.
func untilSignal() context.Context {
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

// surroundings is what a command takes from the process it runs in.
type surroundings struct {
	in   io.Reader
	out  io.Writer
	err  io.Writer
	env  func(string) string
	home func() (string, error)
}

// app is what the commands share.
type app struct {
	surroundings
	flags address
	json  bool
	began bool // a command's own work has begun, so an error is no longer one of usage
}

// run is the whole program, but for the process. It gives the exit code.
func run(ctx context.Context, args []string, s surroundings) int {
	a := &app{surroundings: s}
	root := rootCommand(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.began {
		a.json = a.json || slices.Contains(args, "--json") // flags after the wrong one were not read
		err = usageError{err}
	}
	return a.report(err, cmd.CommandPath())
}

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "reeve",
		Short: "Runs agents that act through tools, and answers for every action",
		Long: `Reeve runs agents that act through tools, unattended, and answers for every action.

"reeve serve" starts a server; every other command speaks to one. It is found by --url and --token, else by REEVE_URL and
REEVE_TOKEN, else by what a server on this machine left in its data directory (--dir, REEVE_DIR, ~/.reeve). The token there
is sent to that server alone: any other address needs one of its own.

Exit codes: 0 done; 1 refused or failed; 2 the command itself was wrong; 3 not done yet: a call waits for a person, is under way,
or nobody can tell what became of it.`,
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
	f := root.PersistentFlags()
	f.StringVar(&a.flags.url, "url", "", "the server's address (REEVE_URL)")
	f.StringVar(&a.flags.token, "token", "", "the bearer token; REEVE_TOKEN keeps it out of the process list")
	f.StringVar(&a.flags.workspace, "workspace", "", "whose things to see (REEVE_WORKSPACE; default \"default\")")
	f.StringVar(&a.flags.dir, "dir", "", "the data directory of a server on this machine (REEVE_DIR; default ~/.reeve)")
	f.BoolVar(&a.json, "json", false, "print one JSON document")

	root.AddGroup(&cobra.Group{ID: "work", Title: "Work:"}, &cobra.Group{ID: "watch", Title: "Watch over it:"},
		&cobra.Group{ID: "run", Title: "Run a server:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("work", chatCommand(a), conversationsCommand(a), toolsCommand(a), agentsCommand(a), journalCommand(a),
		callCommand(a), batchCommand(a), messagesCommand(a), outputCommand(a),
		wakeCommand(a), subscriptionsCommand(a), schedulesCommand(a), runCommand(a), applyCommand(a),
		automationsCommand(a), itemsCommand(a), branchesCommand(a), importCommand(a), mailCommand(a), evalCommand(a))
	add("watch", inboxCommand(a), notificationsCommand(a), notesCommand(a), runsCommand(a), approvalsCommand(a),
		proposalsCommand(a), operationsCommand(a), explainCommand(a), stopCommand(a), heldCommand(a), resumeCommand(a))
	add("run", serveCommand(), initCommand(a), statusCommand(a), doctorCommand(a), workspacesCommand(a),
		tokensCommand(a), secretsCommand(a), projectsCommand(a), profilesCommand(a),
		budgetsCommand(a), backupCommand(a), restoreCommand(a))
	root.SetHelpCommandGroupID("run")
	root.SetCompletionCommandGroupID("run")
	root.InitDefaultHelpCmd() // cobra's own commands too must know a wrong word
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		strict(c)
	}
	a.markBeginning(root)
	return root
}

// strict has a command that only leads to others refuse what is none of them. Cobra would show its help and call that
// done.
func strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		strict(sub)
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
		return usagef("%q is not a command of %q, which has: %s", args[0], c.CommandPath(), strings.Join(names, ", "))
	}
}

// markBeginning notes when a command's own work begins. All that fails before, in cobra, is the fault of the command
// line.
func (a *app) markBeginning(c *cobra.Command) {
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			a.began = true
			return work(c, args)
		}
	}
	for _, sub := range c.Commands() {
		a.markBeginning(sub)
	}
}
