package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func formatScores(m map[string]int64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s=%d", name, m[name]))
	}
	return strings.Join(out, " ")
}

func (a *app) printRating(v reeve.Rating) error {
	return a.print(v, func(w io.Writer) {
		printDetails(w, "target", string(v.Target)+" "+v.TargetID, "scores", formatScores(v.Scores), "note", v.Note,
			"created", formatTime(v.CreatedAt), "updated", formatTime(v.UpdatedAt))
	})
}

// addRatingFlags adds the flags that filter ratings.
func addRatingFlags(c *cobra.Command, f *client.RatingFilter) {
	c.Flags().StringVar(&f.Category, "category", "", "only ratings of entities in this category")
	c.Flags().StringVar((*string)(&f.Target), "kind", "", "only ratings of this kind: task, time_entry or plan_block")
	c.Flags().StringVar(&f.From, "from", "", "only ratings made at this time or later")
	c.Flags().StringVar(&f.To, "to", "", "only ratings made before this time")
	completeFlagValues(c, "kind", reeve.RatingTargets())
}

// resolveRatingFilter converts the category and the times in f to the form that the server expects.
func resolveRatingFilter(ctx context.Context, c *client.Client, f *client.RatingFilter) (err error) {
	if f.Category, err = resolveCategory(ctx, c, f.Category); err != nil {
		return err
	}
	if f.From, err = parseTime("from", f.From); err != nil {
		return err
	}
	f.To, err = parseTime("to", f.To)
	return err
}

func ratingsCommand(a *app) *cobra.Command {
	get := a.journalSubcommand("show KIND ID", "Show a rating", "ratings show task task_...", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Ratings().Get(ctx, reeve.RatingTarget(args[0]), args[1])
			if err != nil {
				return err
			}
			return a.printRating(v)
		})
	remove := a.journalSubcommand("delete KIND ID", "Delete a rating", "ratings delete task task_...",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Ratings().Delete(ctx, reeve.RatingTarget(args[0]), args[1]); err != nil {
				return err
			}
			return a.printDone("deleted the rating of %s", args[1])
		})
	return groupCommand("ratings", "Manage your ratings",
		"A rating holds your scores, from 0 to 100, for a task, a time entry or a plan block. KIND is task,\n"+
			"time_entry or plan_block.",
		ratingsList(a), ratingsSummary(a), ratingsRate(a), get, remove)
}

func ratingsList(a *app) *cobra.Command {
	var f client.RatingFilter
	list := a.journalSubcommand("list", "List your ratings, newest first", "ratings list --category Gym", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			if err := resolveRatingFilter(ctx, c, &f); err != nil {
				return err
			}
			l, err := c.Ratings().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "KIND TARGET SCORES RATED NOTE", rows(l.Ratings, func(v reeve.Rating) []string {
					return []string{string(v.Target), v.TargetID, formatScores(v.Scores), formatTime(v.CreatedAt),
						truncate(v.Note, 40)}
				}))
			})
		})
	addRatingFlags(list, &f)
	addPageFlags(list, &f.Page)
	return list
}

func ratingsSummary(a *app) *cobra.Command {
	var f client.RatingFilter
	c := a.journalSubcommand("summary", "Show the mean of each score", "ratings summary --category Gym", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			if err := resolveRatingFilter(ctx, c, &f); err != nil {
				return err
			}
			s, err := c.Ratings().Summarize(ctx, f)
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				a.printTable(w, "SCORE COUNT MEAN LOWEST HIGHEST", rows(s.Scores, func(v reeve.ScoreSummary) []string {
					return []string{v.Name, strconv.Itoa(v.Count), strconv.FormatFloat(v.Mean, 'f', -1, 64),
						strconv.FormatInt(v.Min, 10), strconv.FormatInt(v.Max, 10)}
				}))
			})
		})
	addRatingFlags(c, &f)
	return c
}

func ratingsRate(a *app) *cobra.Command {
	var note string
	c := a.journalSubcommand("rate KIND ID NAME=SCORE...", "Rate a task, time entry or plan block",
		"ratings rate task task_... focus=80 energy=40",
		cobra.MinimumNArgs(3), func(ctx context.Context, c *client.Client, args []string) error {
			in := reeve.RatingDraft{Target: reeve.RatingTarget(args[0]), TargetID: args[1], Scores: map[string]int64{},
				Note: note}
			for _, s := range args[2:] {
				name, value, _ := strings.Cut(s, "=")
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					return usagef("a score must be NAME=SCORE, such as focus=80, not %q", s)
				}
				in.Scores[name] = n
			}
			v, err := c.Ratings().Rate(ctx, in)
			if err != nil {
				return err
			}
			return a.printRating(v)
		})
	c.Flags().StringVar(&note, "note", "", "note")
	return c
}
