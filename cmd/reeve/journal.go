package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func journalCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "journal", Short: "See and change tasks, checklists, time, plans and ratings",
		Long: `The journal is what people and agents work on: tasks with checklists, time that was spent, plans of days, and ratings, all in
categories. CATEGORY is an id or a name; everything else is named by its id.`,
		Example: `  reeve journal categories create Gym
  reeve journal tasks create "Squat twice a week" --category Gym
  reeve journal tasks --open
  reeve journal time start task_...`,
	}
	c.AddCommand(categoriesCommand(a), labelsCommand(a), tasksCommand(a), checklistsCommand(a), timeCommand(a),
		planCommand(a), ratingsCommand(a))
	return c
}

// work is a command that speaks to a server.
func (a *app) work(use, short, example string, args cobra.PositionalArgs, f func(ctx context.Context, c *client.Client,
	args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Example: "  reeve journal " + example, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error { return f(ctx, c, args) })
		}}
}

// family is a command that lists, with others below it.
func family(name, short, long string, list *cobra.Command, others ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Long: long, Args: list.Args, RunE: list.RunE, Example: list.Example}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(append([]*cobra.Command{list}, others...)...)
	return c
}

// removal is a command that deletes something by its id.
func (a *app) removal(what, example string, remove func(*client.Client) func(context.Context,
	string) error) *cobra.Command {
	return a.work("delete "+strings.ToUpper(what), "Remove a "+what, example, cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := remove(c)(ctx, args[0]); err != nil {
				return err
			}
			return a.done("deleted %s %s", what, args[0])
		})
}

// categoryID gives the id of a category that a person named by id or name.
func categoryID(ctx context.Context, c *client.Client, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	l, err := c.Categories().List(ctx)
	if err != nil {
		return "", err
	}
	name = strings.TrimSpace(name)
	for _, is := range []func(reeve.Category) bool{ // an id first: no name stands in its way
		func(v reeve.Category) bool { return v.ID == name },
		func(v reeve.Category) bool { return strings.EqualFold(v.Name, name) },
	} {
		if i := slices.IndexFunc(l.Categories, is); i >= 0 {
			return l.Categories[i].ID, nil
		}
	}
	return "", reeve.Errorf(reeve.NotFound, "category %q not found", name).Hintf("reeve journal categories lists them")
}

func categoryNames(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	l, err := c.Categories().List(ctx)
	var names []string
	for _, v := range l.Categories {
		names = append(names, v.Name+"\t"+v.ID)
	}
	return names, err
}

// moment reads a time as people write it: with an offset, or by this machine's clock.
func moment(flag, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.RFC3339), nil
		}
	}
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t.Format(time.RFC3339), nil
		}
	}
	return "", usagef("--%s takes a time such as 2026-02-17T16:00:00-05:00, or \"2026-02-17 16:00\" by this "+
		"machine's clock", flag)
}

// clock writes a time as it was given, with its own offset.
func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") }

// text gives a flag's value where the flag was given, so that an update leaves the rest.
func text[S ~string](cmd *cobra.Command, flag, value string) *S {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	s := S(value)
	return &s
}
