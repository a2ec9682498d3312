package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func spent(e reeve.TimeEntry) string {
	if e.EndedAt == nil {
		return "running"
	}
	return e.EndedAt.Sub(e.StartedAt).Round(time.Second).String()
}

func (a *app) printTime(e reeve.TimeEntry) error {
	return a.print(e, func(w io.Writer) {
		end := ""
		if e.EndedAt != nil {
			end = clock(*e.EndedAt)
		}
		details(w, "id", e.ID, "task", e.TaskID, "started", clock(e.StartedAt), "ended", end, "spent", spent(e), "note",
			e.Note, "source", e.SourceID)
	})
}

func timeCommand(a *app) *cobra.Command {
	return family("time", "See and record your time",
		"A time entry is time you spent on a task; one without an end is your running timer.",
		timeList(a), timeAdd(a), timeStart(a), timeStop(a), timeNote(a),
		a.removal("entry", "time delete time_...", func(c *client.Client) func(context.Context,
			string) error {
			return c.TimeEntries().Delete
		}))
}

func timeList(a *app) *cobra.Command {
	var f client.TimeFilter
	list := a.work("list", "List your time entries, the last begun first", `time list --from "2026-02-01 00:00"`,
		cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (err error) {
			if f.From, err = moment("from", f.From); err != nil {
				return err
			}
			if f.To, err = moment("to", f.To); err != nil {
				return err
			}
			l, err := c.TimeEntries().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID STARTED SPENT TASK NOTE", rows(l.TimeEntries, func(e reeve.TimeEntry) []string {
					return []string{e.ID, clock(e.StartedAt), spent(e), e.TaskID, cut(e.Note, 50)}
				}))
			})
		})
	list.Flags().StringVar(&f.Task, "task", "", "on one task only")
	list.Flags().StringVar(&f.From, "from", "", "that end after this time")
	list.Flags().StringVar(&f.To, "to", "", "that start before this time")
	list.Flags().BoolVar(&f.Running, "running", false, "the running timer only")
	paged(list, &f.Page)
	return list
}

func timeAdd(a *app) *cobra.Command {
	var from, to, note string
	c := a.work("add TASK", "Record time you spent",
		`time add task_... --from "2026-02-17 16:00" --to "2026-02-17 18:00"`, cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			start, err := moment("from", from)
			if err != nil {
				return err
			}
			end, err := moment("to", to)
			if err != nil {
				return err
			}
			if start == "" || end == "" {
				return usagef("give --from and --to")
			}
			e, err := c.TimeEntries().
				Create(ctx, reeve.TimeDraft{TaskID: args[0], StartedAt: start, EndedAt: end, Note: note})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
	c.Flags().StringVar(&from, "from", "", "when you began")
	c.Flags().StringVar(&to, "to", "", "when you ended")
	c.Flags().StringVar(&note, "note", "", "what you did")
	return c
}

func timeStart(a *app) *cobra.Command {
	var note string
	c := a.work("start TASK", "Start your timer", "time start task_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			e, err := c.TimeEntries().StartTimer(ctx, reeve.TimerStart{TaskID: args[0], Note: note})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
	c.Flags().StringVar(&note, "note", "", "what you do")
	return c
}

func timeStop(a *app) *cobra.Command {
	var note string
	c := a.work("stop", "Stop your timer", "time stop --note 'Fixed the test'", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			e, err := c.TimeEntries().StopTimer(ctx, reeve.TimerStop{Note: note})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
	c.Flags().StringVar(&note, "note", "", "what you did")
	return c
}

func timeNote(a *app) *cobra.Command {
	return a.work("note ENTRY TEXT", "Say what time was spent on", "time note time_... 'Fixed the test'",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			e, err := c.TimeEntries().Update(ctx, args[0], reeve.TimeChange{Note: &args[1]})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
}
