package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func runsCommand(a *app) *cobra.Command {
	c := groupCommand("runs", "List and cancel runs",
		`A run is one execution of an agent. Changes that were due when the run started share it; each manual
wake has its own run. "reeve runs wakes" lists the wakes of a run.`,
		runsList(a), runsGet(a), runsWakes(a), runsMessages(a), runsRequests(a), runsCancel(a), runsUndo(a))
	c.Example = `  reeve runs --agent clerk
  reeve runs --state parked
  reeve runs show run_... --wait
  reeve runs messages run_...`
	return c
}

// serverCommand returns a command that calls f with a client. example is the command line after "reeve".
func (a *app) serverCommand(use, short, example string, args cobra.PositionalArgs, f clientFunc) *cobra.Command {
	c := a.journalSubcommand(use, short, "", args, f)
	c.Example = "  reeve " + example
	return c
}

// completeFlag completes a flag with values from the server.
func (a *app) completeFlag(c *cobra.Command, flag string, values completer) {
	complete := a.complete(values)
	if err := c.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string,
		cobra.ShellCompDirective) {
		return complete(cmd, nil, prefix)
	}); err != nil {
		panic(err) // the flag does not exist
	}
}

func runsList(a *app) *cobra.Command {
	var f client.RunFilter
	var state string
	c := a.serverCommand("list", "List runs, newest first", "runs list --agent clerk --state failed", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			f.State = reeve.RunState(state)
			l, err := c.Runs().List(ctx, f)
			if err != nil {
				return err
			}
			return a.printRuns(l)
		})
	c.Flags().StringVar(&f.Agent, "agent", "", "only runs of this agent")
	c.Flags().StringVar(&state, "state", "", "only runs in this state")
	a.completeFlag(c, "agent", agentNames)
	completeFlagValues(c, "state", reeve.RunStates())
	addPageFlags(c, &f.Page)
	return c
}

func (a *app) printRuns(l api.RunList) error {
	defer a.noteNextPage(l.Next)
	return a.print(l, func(w io.Writer) {
		a.printTable(w, "ID STATE AGENT REASON WAKES STARTED TOOK OUTPUT", rows(l.Runs, func(r reeve.Run) []string {
			output := r.Output
			if r.Message != "" {
				output = r.Message
			}
			return []string{r.ID, string(r.State), r.AgentID, string(r.Reason), strconv.Itoa(r.Wakes),
				formatTime(r.StartedAt), formatRunTime(r), truncate(output, 50)}
		}))
	})
}

// formatRunTime formats the duration of a finished run, or returns "".
func formatRunTime(r reeve.Run) string {
	if r.FinishedAt == nil {
		return ""
	}
	return r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
}

// formatCount formats a number, or returns "" for zero.
func formatCount(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (a *app) printRun(r reeve.Run) error {
	return a.print(r, func(w io.Writer) {
		printDetails(w, "id", r.ID, "state", string(r.State), "agent", r.AgentID, "reason", string(r.Reason),
			"reason id", r.ReasonID, "user", r.UserID, "wakes", strconv.Itoa(r.Wakes),
			"attempts", strconv.Itoa(r.Attempts), "model requests", formatCount(r.ModelRequests), "thread", r.ThreadID,
			"scheduled", formatTimePtr(r.ScheduledAt), "started", formatTime(r.StartedAt),
			"finished", formatTimePtr(r.FinishedAt), "spent", formatAmount(r.Spent), "code", string(r.Code),
			"message", r.Message, "input", r.Input, "output", r.Output)
		if r.WaitsForAgents {
			a.notef("the run continues when the agents that it called have answered")
		} else if r.State == reeve.RunParked {
			a.notef("the run waits for a person; see reeve inbox")
		}
	})
}

func runsGet(a *app) *cobra.Command {
	var wait bool
	c := a.serverCommand("show RUN", "Show a run and its result", "runs show run_... --wait", cobra.ExactArgs(1),
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
	c.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended, including for approvals")
	return c
}

func runsWakes(a *app) *cobra.Command {
	var agent string
	var page client.Page
	c := a.serverCommand("wakes RUN | --agent AGENT", "List the wakes of a run or of an agent",
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
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "REASON FROM STATE DUE SCHEDULED CHANGE RUN ABOUT",
					rows(l.Wakes, func(k reeve.Wake) []string {
						about := k.Input
						if k.Why != "" {
							about = k.Why
						}
						return []string{string(k.Reason), k.ReasonID, string(k.State), formatTime(k.DueAt),
							formatTimePtr(k.ScheduledAt), k.OperationID, k.RunID, truncate(about, 50)}
					}))
			})
		})
	c.PreRunE = func(_ *cobra.Command, args []string) error {
		if (len(args) == 1) == (agent != "") {
			return usagef("set RUN or --agent, not both")
		}
		return nil
	}
	c.Flags().StringVar(&agent, "agent", "", "list all wakes of this agent, including skipped ones")
	a.completeFlag(c, "agent", agentNames)
	addPageFlags(c, &page)
	return c
}

func runsMessages(a *app) *cobra.Command {
	var page client.Page
	c := a.serverCommand("messages RUN", "Show the messages and calls of a run", "runs messages run_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := c.Runs().Get(ctx, args[0])
			if err != nil {
				return err
			}
			l, err := c.Runs().Messages(ctx, r, page)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				for _, m := range l.Messages {
					printMessage(w, m)
				}
			})
		})
	addPageFlags(c, &page)
	return c
}

func runsRequests(a *app) *cobra.Command {
	c := a.serverCommand("requests RUN", "Show what the model was asked in a run, and what was left out",
		"runs requests run_... --json", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Runs().Requests(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				for _, r := range l.Requests {
					printAskedRequest(w, r)
				}
			})
		})
	c.Long = `The requests to the model, one for each answer, as they were sent. Only the person for whom the run acted may
read them, because they may quote notes.`
	return c
}

// printAskedRequest prints a request with the texts of its messages.
func printAskedRequest(w io.Writer, r reeve.AskedRequest) {
	var asked struct {
		Model, System string
		Messages      []struct {
			Role  string
			Parts []struct {
				Type, Name, Text string
				Args             json.RawMessage
			}
		}
		Tools []struct{ Name string }
	}
	fmt.Fprintf(w, "Request %d", r.Number)
	if err := json.Unmarshal(r.Request, &asked); err != nil {
		fmt.Fprintf(w, ": %s\n", r.Request)
		return
	}
	fmt.Fprintf(w, " to %s, %d tools\n", cmp.Or(asked.Model, "the default model"), len(asked.Tools))
	if asked.System != "" {
		fmt.Fprintf(w, "system: %s\n", asked.System)
	}
	for _, m := range asked.Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(w, "%s: %s\n", m.Role, strings.Join(slices.DeleteFunc([]string{p.Name, string(p.Args), p.Text},
				func(s string) bool { return s == "" }), " "))
		}
	}
	for _, o := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", strings.TrimSpace(o.What+" "+o.ID+": "+o.Why))
	}
}

func runsUndo(a *app) *cobra.Command {
	var plan bool
	c := a.serverCommand("undo RUN", "Undo what can be undone of a run, the latest change first",
		"runs undo run_... --plan", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			undo := c.Runs().Undo
			if plan {
				undo = c.Runs().PlanUndo
			}
			l, err := undo(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "OPERATION TOOL CAN-UNDO UNDONE-BY WHY", rows(l.Steps, func(p reeve.UndoPlan) []string {
					return []string{p.OperationID, p.Tool, strconv.FormatBool(p.CanUndo), p.UndoneBy, p.Why}
				}))
			})
		})
	c.Flags().BoolVar(&plan, "plan", false, "only list what an undo would do")
	return c
}

func runsCancel(a *app) *cobra.Command {
	return a.serverCommand("cancel RUN", "Cancel a run", "runs cancel run_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := c.Runs().Cancel(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printRun(r)
		})
}
