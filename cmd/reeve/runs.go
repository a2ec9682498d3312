package main

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func runsCommand(a *app) *cobra.Command {
	c := family("runs", "See what agents did, and end it",
		`A run is one execution of an agent, whatever woke it. Changes that were due when it began share a run, a wake by hand has one of its own; "runs wakes" says why it ran.`,
		runsList(a), runsGet(a), runsWakes(a), runsMessages(a), runsCancel(a))
	c.Example = `  reeve runs --agent clerk
  reeve runs --state parked
  reeve runs get run_... --wait
  reeve runs messages run_...`
	return c
}

// task is a command that speaks to a server.
func (a *app) task(use, short, example string, args cobra.PositionalArgs, f func(ctx context.Context, c *client.Client,
	args []string) error) *cobra.Command {
	c := a.work(use, short, "", args, f)
	c.Example = "  reeve " + example
	return c
}

// suggest completes a flag's values by asking the server.
func (a *app) suggest(c *cobra.Command, flag string, by completer) {
	complete := a.complete(by)
	if err := c.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begun string) ([]string,
		cobra.ShellCompDirective) {
		return complete(cmd, nil, begun)
	}); err != nil {
		panic(err) // the flag does not exist: a slip in this program
	}
}

func runsList(a *app) *cobra.Command {
	var f client.RunFilter
	var state string
	c := a.task("list", "List runs, newest first", "runs list --agent clerk --state failed", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			f.State = reeve.RunState(state)
			l, err := c.Runs().List(ctx, f)
			if err != nil {
				return err
			}
			return a.printRuns(l)
		})
	c.Flags().StringVar(&f.Agent, "agent", "", "of one agent only")
	c.Flags().StringVar(&state, "state", "", "in one state only")
	a.suggest(c, "agent", agentNames)
	fixed(c, "state", reeve.RunStates())
	paged(c, &f.Page)
	return c
}

func (a *app) printRuns(l api.RunList) error {
	defer a.more(l.Next)
	return a.print(l, func(w io.Writer) {
		a.table(w, "ID STATE AGENT REASON WAKES STARTED TOOK OUTPUT", rows(l.Runs, func(r reeve.Run) []string {
			said := r.Output
			if r.Message != "" {
				said = r.Message
			}
			return []string{r.ID, string(r.State), r.AgentID, string(r.Reason), strconv.Itoa(r.Wakes),
				when(r.StartedAt), took(r), cut(said, 50)}
		}))
	})
}

func took(r reeve.Run) string {
	if r.FinishedAt == nil {
		return ""
	}
	return r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
}

// count writes a number, and nothing for none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (a *app) printRun(r reeve.Run) error {
	return a.print(r, func(w io.Writer) {
		details(w, "id", r.ID, "state", string(r.State), "agent", r.AgentID, "reason", string(r.Reason), "because of",
			r.ReasonID, "for", r.UserID,
			"wakes", strconv.Itoa(r.Wakes), "attempts", strconv.Itoa(r.Attempts), "moves", count(r.Moves), "thread",
			r.ThreadID, "scheduled", whenSet(r.ScheduledAt),
			"started", when(r.StartedAt), "finished", whenSet(r.FinishedAt), "spent", amount(r.Spent), "code",
			string(r.Code), "message", r.Message,
			"input", r.Input, "output", r.Output)
		if r.WaitsForAgents {
			a.note("it goes on when the agents that it called have answered")
		} else if r.State == reeve.RunParked {
			a.note("a call of it waits: see reeve inbox")
		}
	})
}

func runsGet(a *app) *cobra.Command {
	var wait bool
	c := a.task("get RUN", "Show a run and what it came to", "runs get run_... --wait", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			get := c.Runs().Get
			if wait {
				get = func(ctx context.Context, id string) (reeve.Run, error) { return c.Runs().Wait(ctx, id) }
			}
			r, err := get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printRun(r)
		})
	c.Flags().BoolVar(&wait, "wait", false, "wait until it has ended, for a person's approval too")
	return c
}

func runsWakes(a *app) *cobra.Command {
	var agent string
	var page client.Page
	c := a.task("wakes RUN | --agent AGENT", "Say why a run ran, or what becomes of an agent's wakes",
		"runs wakes run_...\n  reeve runs wakes --agent clerk", cobra.MaximumNArgs(1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			var l api.WakeList
			if agent != "" {
				l, err = c.Wakes().List(ctx, agent, page)
			} else {
				l, err = c.Runs().Wakes(ctx, args[0], page)
			}
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "REASON FROM STATE DUE SCHEDULED CHANGE RUN ABOUT",
					rows(l.Wakes, func(k reeve.Wake) []string {
						about := k.Input
						if k.Why != "" {
							about = k.Why
						}
						return []string{string(k.Reason), k.ReasonID, string(k.State), when(k.DueAt),
							whenSet(k.ScheduledAt), k.OperationID, k.RunID, cut(about, 50)}
					}))
			})
		})
	c.PreRunE = func(_ *cobra.Command, args []string) error {
		if (len(args) == 1) == (agent != "") {
			return usagef("give a run or --agent, and not both")
		}
		return nil
	}
	c.Flags().StringVar(&agent, "agent", "", "all wakes of an agent, those that were skipped too")
	a.suggest(c, "agent", agentNames)
	paged(c, &page)
	return c
}

func runsMessages(a *app) *cobra.Command {
	var page client.Page
	c := a.task("messages RUN", "Read what a run thought and did", "runs messages run_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := c.Runs().Get(ctx, args[0])
			if err != nil {
				return err
			}
			l, err := c.Runs().Messages(ctx, r, page)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				for _, m := range l.Messages {
					printMessage(w, m)
				}
			})
		})
	paged(c, &page)
	return c
}

func runsCancel(a *app) *cobra.Command {
	return a.task("cancel RUN", "End a run", "runs cancel run_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := c.Runs().Cancel(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printRun(r)
		})
}
