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
		Use: "journal", Short: "Manage tasks, checklists, time, day plans and ratings",
		Long: `The journal holds the work of people and agents: tasks with checklists, time entries, day plans and
ratings. Each belongs to a category. CATEGORY is the id or name of a category; all other arguments are
ids.`,
		Example: `  reeve journal categories create Gym
  reeve journal tasks create "Squat twice a week" --category Gym
  reeve journal tasks --open
  reeve journal time start task_...`,
	}
	c.AddCommand(categoriesCommand(a), labelsCommand(a), tasksCommand(a), checklistsCommand(a), timeCommand(a),
		planCommand(a), ratingsCommand(a))
	return c
}

// clientFunc is the work of a command that connects to a server.
type clientFunc func(ctx context.Context, c *client.Client, args []string) error

// journalSubcommand returns a subcommand of "reeve journal" that calls f with a client. example is the command line
// after "reeve journal".
func (a *app) journalSubcommand(use, short, example string, args cobra.PositionalArgs, f clientFunc) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Example: "  reeve journal " + example, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				return f(ctx, c, args)
			})
		}}
}

// groupCommand returns a command with subcommands. Without a subcommand, it does the same as list.
func groupCommand(name, short, long string, list *cobra.Command, others ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Long: long, Args: list.Args, RunE: list.RunE, Example: list.Example}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(append([]*cobra.Command{list}, others...)...)
	return c
}

// deleteCommand returns a journal subcommand that deletes an entity of the kind what by its id.
func (a *app) deleteCommand(what, example string,
	remove func(ctx context.Context, c *client.Client, id string) error) *cobra.Command {
	return a.journalSubcommand("delete "+strings.ToUpper(what), "Delete "+article(what)+" "+what, example,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := remove(ctx, c, args[0]); err != nil {
				return err
			}
			return a.printDone("deleted %s %s", what, args[0])
		})
}

// article returns the indefinite article of a noun.
func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

// resolveCategory returns the id of the category with an id or name, or "" if name is empty.
func resolveCategory(ctx context.Context, c *client.Client, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	l, err := c.Categories().List(ctx)
	if err != nil {
		return "", err
	}
	name = strings.TrimSpace(name)
	for _, matches := range []func(reeve.Category) bool{ // ids before names, because a name can look like an id
		func(v reeve.Category) bool { return v.ID == name },
		func(v reeve.Category) bool { return strings.EqualFold(v.Name, name) },
	} {
		if i := slices.IndexFunc(l.Categories, matches); i >= 0 {
			return l.Categories[i].ID, nil
		}
	}
	return "", reeve.Errorf(reeve.NotFound, "category %q not found", name).
		Hintf("list the categories with: reeve journal categories")
}

func categoryNames(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	l, err := c.Categories().List(ctx)
	var names []string
	for _, v := range l.Categories {
		names = append(names, v.Name+"\t"+v.ID)
	}
	return names, err
}

// parseTime parses the value of a flag as a time with an offset, or as local time, and returns it in RFC 3339 format.
func parseTime(flag, s string) (string, error) {
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
	return "", usagef("--%s must be a time such as 2026-02-17T16:00:00-05:00, or \"2026-02-17 16:00\" in local time",
		flag)
}

// formatClock formats a time with its own offset.
func formatClock(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") }

// changedFlag returns the value of a flag, or nil if the flag is not set, so that an update leaves the field unchanged.
func changedFlag[S ~string](cmd *cobra.Command, flag, value string) *S {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	s := S(value)
	return &s
}
