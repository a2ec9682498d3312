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
	c := a.task("wake AGENT [INPUT|-]", "Wake an agent", `wake clerk "Close the month" --wait
  reeve wake clerk --key month-2026-02`, cobra.RangeArgs(1, 2), func(ctx context.Context, c *client.Client, args []string) error {
		var r api.WakeRequest
		if len(args) == 2 {
			r.Input = args[1]
		}
		if r.Input == "-" {
			b, err := a.read("-")
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
		run, err := c.Runs().OfWake(ctx, w, reeve.RunParked)
		is := run
		if err == nil {
			is, err = c.Runs().Wait(ctx, run.ID, reeve.RunParked)
		}
		switch code := reeve.CodeOf(err); {
		case err == nil:
			return a.printOutcome(is)
		case code == reeve.Unavailable, code == reeve.InProgress:
			return a.printAccepted(args[0], w, run, err)
		}
		return err
	})
	c.Long = `Asks for a run of an agent. INPUT says what it is to do; - reads it from the standard input. Each such wake has a run of its own.

With --wait it waits for the run and prints what it came to. When a call of the run has to wait, for a person or for its outcome, the
command exits with 3 and says how to go on. So it does when the wake has to wait because an earlier run of the agent waits for a person, and when
the server is gone for more than 30 seconds: the wake was accepted, and its run goes on when the server is back.`
	c.ValidArgsFunction = a.complete(agentNames)
	c.Flags().StringVar(&key, "key", "", "the Idempotency-Key: the same key wakes once")
	c.Flags().BoolVar(&wait, "wait", false, "wait for the run and print what it came to")
	return c
}

func (a *app) printWake(agent string, w reeve.Wake) error {
	a.note("see what comes of it: reeve runs --agent %s", agent)
	return a.print(w, func(out io.Writer) {
		details(out, "key", w.RunKey, "agent", w.AgentID, "reason", string(w.Reason), "state", string(w.State), "due",
			when(w.DueAt), "input", w.Input)
	})
}

// printAccepted is for a wake that was accepted, and whose end was not waited for: the error says why not.
func (a *app) printAccepted(agent string, w reeve.Wake, run reeve.Run, err error) error {
	if a.json {
		if err := a.print(w, nil); err != nil {
			return err
		}
	}
	e := reeve.AsError(err)
	a.note("the wake %s was accepted: %s", w.RunKey, plain(e.Message))
	if e.Code == reeve.InProgress {
		a.note("what waits: reeve inbox")
		a.note("or end it:  reeve runs cancel %s", run.ID)
	}
	if e.Code == reeve.Unavailable && run.ID != "" {
		a.note("go on:      reeve runs get %s --wait", run.ID)
	} else {
		a.note("look:       reeve runs --agent %s", agent)
	}
	return silent{exitNotDone}
}

// printOutcome prints what a run came to: its words to the output, everything else beside it. Its error is the exit
// code.
func (a *app) printOutcome(r reeve.Run) error {
	code := exitOfRun(r.State)
	switch {
	case a.json:
		if err := a.print(r, nil); err != nil {
			return err
		}
	case code == exitDone:
		printContent(a.out, r.Output)
	case code == exitNotDone:
		a.note("run %s is %s: %s", r.ID, r.State, plain(r.Output))
		a.note("what waits: reeve inbox")
		a.note("go on:      reeve runs get %s --wait", r.ID)
	default:
		message := "the run is " + string(r.State)
		if r.Message != "" {
			message += ": " + r.Message
		}
		a.show(&reeve.Error{Code: r.Code, Message: message})
		a.note("why: reeve runs messages %s", r.ID)
	}
	if code != exitDone {
		return silent{code}
	}
	return nil
}

func exitOfRun(s reeve.RunState) int {
	switch {
	case s == reeve.RunCompleted:
		return exitDone
	case s.Final():
		return exitFailed
	}
	return exitNotDone
}
