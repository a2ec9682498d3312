package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

// formatSpent formats the duration of a time entry, or "running" if it has no end.
func formatSpent(e reeve.TimeEntry) string {
	if e.EndedAt == nil {
		return "running"
	}
	return e.EndedAt.Sub(e.StartedAt).Round(time.Second).String()
}

func (a *app) printTime(e reeve.TimeEntry) error {
	return a.print(e, func(w io.Writer) {
		end := ""
		if e.EndedAt != nil {
			end = formatClock(*e.EndedAt)
		}
		printDetails(w, "id", e.ID, "task", e.TaskID, "started", formatClock(e.StartedAt), "ended", end,
			"spent", formatSpent(e), "note", e.Note, "source", e.SourceID)
	})
}

func timeCommand(a *app) *cobra.Command {
	return groupCommand("time", "Manage your time entries",
		"A time entry records time you spent on a task. An entry without an end is your running timer.",
		timeList(a), timeAdd(a), timeStart(a), timeStop(a), timeNote(a),
		a.deleteCommand("entry", "time delete time_...",
			func(ctx context.Context, c *client.Client, id string) error { return c.TimeEntries().Delete(ctx, id) }))
}

func timeList(a *app) *cobra.Command {
	var f client.TimeFilter
	list := a.journalSubcommand("list", "List your time entries, latest start first",
		`time list --from "2026-02-01 00:00"`,
		cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []string) (err error) {
			if f.From, err = parseTime("from", f.From); err != nil {
				return err
			}
			if f.To, err = parseTime("to", f.To); err != nil {
				return err
			}
			l, err := c.TimeEntries().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID STARTED SPENT TASK NOTE", rows(l.TimeEntries, func(e reeve.TimeEntry) []string {
					return []string{e.ID, formatClock(e.StartedAt), formatSpent(e), e.TaskID, truncate(e.Note, 50)}
				}))
			})
		})
	list.Flags().StringVar(&f.Task, "task", "", "only entries of this task, an id")
	list.Flags().StringVar(&f.From, "from", "", "only entries that end after this time")
	list.Flags().StringVar(&f.To, "to", "", "only entries that start before this time")
	list.Flags().BoolVar(&f.Running, "running", false, "only the running timer")
	addPageFlags(list, &f.Page)
	return list
}

func timeAdd(a *app) *cobra.Command {
	var from, to, note string
	c := a.journalSubcommand("create TASK", "Create a time entry",
		`time create task_... --from "2026-02-17 16:00" --to "2026-02-17 18:00"`, cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			start, err := parseTime("from", from)
			if err != nil {
				return err
			}
			end, err := parseTime("to", to)
			if err != nil {
				return err
			}
			if start == "" || end == "" {
				return usagef("set --from and --to")
			}
			draft := reeve.TimeDraft{TaskID: args[0], StartedAt: start, EndedAt: end, Note: note}
			e, err := c.TimeEntries().Create(ctx, draft)
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
	c.Flags().StringVar(&from, "from", "", "start time (required)")
	c.Flags().StringVar(&to, "to", "", "end time (required)")
	c.Flags().StringVar(&note, "note", "", "note")
	return c
}

func timeStart(a *app) *cobra.Command {
	var note string
	c := a.journalSubcommand("start TASK", "Start your timer", "time start task_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			e, err := c.TimeEntries().StartTimer(ctx, reeve.TimerStart{TaskID: args[0], Note: note})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
	c.Flags().StringVar(&note, "note", "", "note")
	return c
}

func timeStop(a *app) *cobra.Command {
	var note string
	c := a.journalSubcommand("stop", "Stop your timer", "time stop --note 'Fixed the test'", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			e, err := c.TimeEntries().StopTimer(ctx, reeve.TimerStop{Note: note})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
	c.Flags().StringVar(&note, "note", "", "note")
	return c
}

func timeNote(a *app) *cobra.Command {
	return a.journalSubcommand("note ENTRY TEXT", "Set the note of a time entry", "time note time_... 'Fixed the test'",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			e, err := c.TimeEntries().Update(ctx, args[0], reeve.TimeChange{Note: &args[1]})
			if err != nil {
				return err
			}
			return a.printTime(e)
		})
}
