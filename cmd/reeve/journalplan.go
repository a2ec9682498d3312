package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func (a *app) printPlan(p reeve.DayPlan) error {
	return a.print(p, func(w io.Writer) {
		printDetails(w, "day", p.Day, "tasks", strings.Join(p.Pinned, "\n"))
		a.printTable(w, "FROM TO CATEGORY TASK ID NOTE", rows(p.Blocks, func(b reeve.PlanBlock) []string {
			return []string{formatClock(b.StartsAt), formatClock(b.EndsAt), b.CategoryID, b.TaskID, b.ID,
				truncate(b.Note, 40)}
		}))
	})
}

func planCommand(a *app) *cobra.Command {
	show := a.journalSubcommand("show [DAY]", "Show your plan for a day", "plan show 2026-02-18", cobra.MaximumNArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			day := reeve.Now().Local().Format(time.DateOnly)
			if len(args) > 0 {
				day = args[0]
			}
			p, err := c.DayPlans().Get(ctx, day)
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	unblock := a.journalSubcommand("unblock DAY BLOCK...", "Remove blocks from a plan",
		"plan unblock 2026-02-18 block_...",
		cobra.MinimumNArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.DayPlans().ChangeBlocks(ctx, args[0], reeve.PlanChange{Deletes: args[1:]})
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	return groupCommand("plan", "Manage your day plans",
		"A day plan has blocks of time and pinned tasks. DAY has the format YYYY-MM-DD; show uses today by default.",
		show, planBlock(a), unblock,
		planReplan(a),
		planPins(a, "pin", "Pin tasks to a plan",
			func(ids []string) reeve.PinChange { return reeve.PinChange{Pin: ids} }),
		planPins(a, "unpin", "Unpin tasks from a plan",
			func(ids []string) reeve.PinChange { return reeve.PinChange{Unpin: ids} }))
}

func planPins(a *app, name, short string, change func([]string) reeve.PinChange) *cobra.Command {
	return a.journalSubcommand(name+" DAY TASK...", short, "plan "+name+" 2026-02-18 task_...", cobra.MinimumNArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.DayPlans().PinTasks(ctx, args[0], change(args[1:]))
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
}

func planBlock(a *app) *cobra.Command {
	var in reeve.BlockDraft
	var category, from, to string
	c := a.journalSubcommand("block DAY", "Add or replace a block",
		"plan block 2026-02-18 --category Gym --from '2026-02-18 09:00' --to '2026-02-18 11:00'", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			if in.CategoryID, err = resolveCategory(ctx, c, category); err != nil {
				return err
			}
			if in.StartsAt, err = parseTime("from", from); err != nil {
				return err
			}
			if in.EndsAt, err = parseTime("to", to); err != nil {
				return err
			}
			if in.CategoryID == "" || in.StartsAt == "" || in.EndsAt == "" {
				return usagef("set --category, --from and --to")
			}
			p, err := c.DayPlans().ChangeBlocks(ctx, args[0], reeve.PlanChange{Upserts: []reeve.BlockDraft{in}})
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	g := c.Flags()
	g.StringVar(&category, "category", "", "category of the block (required)")
	g.StringVar(&from, "from", "", "start time (required)")
	g.StringVar(&to, "to", "", "end time (required)")
	g.StringVar(&in.ID, "replace", "", "id of the block to replace")
	g.StringVar(&in.TaskID, "task", "", "id of a task in the category")
	g.StringVar(&in.Note, "note", "", "note")
	return c
}

func planReplan(a *app) *cobra.Command {
	var file string
	c := a.journalSubcommand("replan DAY", "Replace all blocks of a day", "plan replan 2026-02-18 -f day.yaml",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if file == "" {
				return usagef("set --file to a file with the blocks, or to - for standard input")
			}
			in := reeve.PlanReplacement{Blocks: []reeve.BlockDraft{}}
			if err := a.readDocument(file, &in); err != nil {
				return err
			}
			p, err := c.DayPlans().Replan(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	c.Flags().StringVarP(&file, "file", "f", "", "JSON or YAML file with the blocks; - for standard input (required)")
	return c
}
