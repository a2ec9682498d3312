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
		details(w, "day", p.Day, "tasks", strings.Join(p.Pinned, "\n"))
		a.table(w, "FROM TO CATEGORY TASK ID NOTE", rows(p.Blocks, func(b reeve.PlanBlock) []string {
			return []string{clock(b.StartsAt), clock(b.EndsAt), b.CategoryID, b.TaskID, b.ID, cut(b.Note, 40)}
		}))
	})
}

func planCommand(a *app) *cobra.Command {
	show := a.work("show [DAY]", "Show your plan of a day", "plan show 2026-02-18", cobra.MaximumNArgs(1),
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
	unblock := a.work("unblock DAY BLOCK...", "Remove blocks", "plan unblock 2026-02-18 block_...",
		cobra.MinimumNArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.DayPlans().ChangeBlocks(ctx, args[0], reeve.PlanChange{Deletes: args[1:]})
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	return family("plan", "See and change your plan of a day",
		"A plan has blocks of time and tasks. DAY is YYYY-MM-DD; it is today if left out.", show, planBlock(a), unblock,
		planReplan(a),
		planPins(a, "pin", "Put tasks on a plan",
			func(ids []string) reeve.PinChange { return reeve.PinChange{Pin: ids} }),
		planPins(a, "unpin", "Take tasks off a plan",
			func(ids []string) reeve.PinChange { return reeve.PinChange{Unpin: ids} }))
}

func planPins(a *app, name, short string, change func([]string) reeve.PinChange) *cobra.Command {
	return a.work(name+" DAY TASK...", short, "plan "+name+" 2026-02-18 task_...", cobra.MinimumNArgs(2),
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
	c := a.work("block DAY", "Add a block, or replace one",
		"plan block 2026-02-18 --category Gym --from '2026-02-18 09:00' --to '2026-02-18 11:00'", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			if in.CategoryID, err = categoryID(ctx, c, category); err != nil {
				return err
			}
			if in.StartsAt, err = moment("from", from); err != nil {
				return err
			}
			if in.EndsAt, err = moment("to", to); err != nil {
				return err
			}
			if in.CategoryID == "" || in.StartsAt == "" || in.EndsAt == "" {
				return usagef("give --category, --from and --to")
			}
			p, err := c.DayPlans().ChangeBlocks(ctx, args[0], reeve.PlanChange{Upserts: []reeve.BlockDraft{in}})
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	g := c.Flags()
	g.StringVar(&category, "category", "", "what it is for")
	g.StringVar(&from, "from", "", "when it begins")
	g.StringVar(&to, "to", "", "when it ends")
	g.StringVar(&in.ID, "replace", "", "the id of a block to replace")
	g.StringVar(&in.TaskID, "task", "", "a task of the category")
	g.StringVar(&in.Note, "note", "", "more about it")
	return c
}

func planReplan(a *app) *cobra.Command {
	var file string
	c := a.work("replan DAY", "Replace all blocks of a day from a file", "plan replan 2026-02-18 -f day.yaml",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if file == "" {
				return usagef("give the blocks in a file: -f day.yaml, or -f - for the standard input")
			}
			in := reeve.Replan{Blocks: []reeve.BlockDraft{}}
			if err := a.document(file, &in); err != nil {
				return err
			}
			p, err := c.DayPlans().Replan(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.printPlan(p)
		})
	c.Flags().StringVarP(&file, "file", "f", "", "JSON or YAML with blocks")
	return c
}
