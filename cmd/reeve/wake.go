package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func wakeCommand(a *app) *cobra.Command {
	var key string
	var wait bool
	c := a.serverCommand("wake AGENT [INPUT|-]", "Wake an agent",
		`wake clerk "Close the month" --wait
  reeve wake clerk --key month-2026-02`,
		cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			var r api.WakeRequest
			if len(args) == 2 {
				r.Input = args[1]
			}
			if r.Input == "-" {
				b, err := a.readInput("-")
				if err != nil {
					return err
				}
				r.Input = string(b)
			}
			w, err := c.Wakes().Create(ctx, args[0], key, r)
			if err != nil {
				return err
			}
			if !wait {
				return a.printWake(args[0], w)
			}
			run, err := c.Runs().WaitForWake(ctx, w, reeve.RunParked)
			ended := run
			if err == nil {
				ended, err = c.Runs().Wait(ctx, run.ID, reeve.RunParked)
			}
			switch code := reeve.CodeOf(err); {
			case err == nil:
				return a.printOutcome(ended)
			case code == reeve.Unavailable, code == reeve.InProgress:
				return a.printAccepted(args[0], w, run, err)
			}
			return err
		})
	c.Long = `Starts a run of an agent. INPUT is the instruction for the run; - reads it from standard input. Each
wake from this command has its own run.

With --wait, the command waits for the run and prints its output. It exits with code 3 if the run
waits for a person, if an earlier run of the agent waits for a person, or if the server is unavailable
for more than 30 seconds. In these cases the wake is stored, and the command prints what to do next.`
	c.ValidArgsFunction = a.complete(agentNames)
	c.Flags().StringVar(&key, "key", "", "idempotency key; the same key wakes the agent once")
	c.Flags().BoolVar(&wait, "wait", false, "wait for the run and print its output")
	return c
}

func (a *app) printWake(agent string, w reeve.Wake) error {
	a.notef("follow it: reeve runs --agent %s", agent)
	return a.print(w, func(out io.Writer) {
		printDetails(out, "key", w.RunKey, "agent", w.AgentID, "reason", string(w.Reason), "state", string(w.State),
			"due", formatTime(w.DueAt), "input", w.Input)
	})
}

// printAccepted reports a wake that was accepted, but whose run the command cannot wait for because of err. It returns
// an exitError.
func (a *app) printAccepted(agent string, w reeve.Wake, run reeve.Run, err error) error {
	if a.json {
		if err := a.print(w, nil); err != nil {
			return err
		}
	}
	e := reeve.AsError(err)
	a.notef("the wake %s was accepted: %s", w.RunKey, sanitize(e.Message))
	if e.Code == reeve.InProgress {
		a.notef("decide:    reeve inbox")
		a.notef("or cancel: reeve runs cancel %s", run.ID)
	}
	if e.Code == reeve.Unavailable && run.ID != "" {
		a.notef("follow:    reeve runs show %s --wait", run.ID)
	} else {
		a.notef("follow:    reeve runs --agent %s", agent)
	}
	return exitError{exitPending}
}

// printOutcome prints the output of a run to standard output, and everything else to standard error. If the run did
// not complete, it returns an exitError.
func (a *app) printOutcome(r reeve.Run) error {
	code := runExitCode(r.State)
	switch {
	case a.json:
		if err := a.print(r, nil); err != nil {
			return err
		}
	case code == exitDone:
		printContent(a.out, r.Output)
	case code == exitPending:
		a.notef("run %s is %s: %s", r.ID, r.State, sanitize(r.Output))
		a.notef("decide: reeve inbox")
		a.notef("follow: reeve runs show %s --wait", r.ID)
	default:
		message := "run " + string(r.State)
		if r.Message != "" {
			message += ": " + r.Message
		}
		a.showError(&reeve.Error{Code: r.Code, Message: message})
		a.notef("why: reeve runs messages %s", r.ID)
	}
	if code != exitDone {
		return exitError{code}
	}
	return nil
}

// runExitCode returns the exit code for the state of a run.
func runExitCode(s reeve.RunState) int {
	switch {
	case s == reeve.RunCompleted:
		return exitDone
	case s.IsFinal():
		return exitFailed
	}
	return exitPending
}
