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

func scores(m map[string]int64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s=%d", name, m[name]))
	}
	return strings.Join(out, " ")
}

func (a *app) printRating(v reeve.Rating) error {
	return a.print(v, func(w io.Writer) {
		details(w, "of", string(v.Target)+" "+v.TargetID, "scores", scores(v.Scores), "note", v.Note, "created",
			when(v.CreatedAt), "updated", when(v.UpdatedAt))
	})
}

// ratingFlags choose ratings.
func ratingFlags(c *cobra.Command, f *client.RatingFilter) {
	c.Flags().StringVar(&f.Category, "category", "", "of things of one category only")
	c.Flags().StringVar((*string)(&f.Target), "kind", "", "of tasks, time entries or plan blocks only")
	c.Flags().StringVar(&f.From, "from", "", "made then or later")
	c.Flags().StringVar(&f.To, "to", "", "made before")
	fixed(c, "kind", reeve.RatingTargets())
}

// chosen makes of what a person wrote what the server takes.
func chosen(ctx context.Context, c *client.Client, f *client.RatingFilter) (err error) {
	if f.Category, err = categoryID(ctx, c, f.Category); err != nil {
		return err
	}
	if f.From, err = moment("from", f.From); err != nil {
		return err
	}
	f.To, err = moment("to", f.To)
	return err
}

func ratingsCommand(a *app) *cobra.Command {
	get := a.work("get KIND ID", "Show your rating of something", "ratings get task task_...", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Ratings().Get(ctx, reeve.RatingTarget(args[0]), args[1])
			if err != nil {
				return err
			}
			return a.printRating(v)
		})
	remove := a.work("delete KIND ID", "Remove your rating of something", "ratings delete task task_...",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Ratings().Delete(ctx, reeve.RatingTarget(args[0]), args[1]); err != nil {
				return err
			}
			return a.done("deleted the rating of %s", args[1])
		})
	return family("ratings", "See and give ratings",
		"A rating says how you found a task, a time entry or a plan block: scores from 0 to 100. KIND is task, "+
			"time_entry or plan_block.",
		ratingsList(a), ratingsSummary(a), ratingsRate(a), get, remove)
}

func ratingsList(a *app) *cobra.Command {
	var f client.RatingFilter
	list := a.work("list", "List your ratings, newest first", "ratings list --category Gym", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			if err := chosen(ctx, c, &f); err != nil {
				return err
			}
			l, err := c.Ratings().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "KIND OF SCORES RATED NOTE", rows(l.Ratings, func(v reeve.Rating) []string {
					return []string{string(v.Target), v.TargetID, scores(v.Scores), when(v.CreatedAt), cut(v.Note, 40)}
				}))
			})
		})
	ratingFlags(list, &f)
	paged(list, &f.Page)
	return list
}

func ratingsSummary(a *app) *cobra.Command {
	var f client.RatingFilter
	c := a.work("summary", "Sum up your ratings", "ratings summary --category Gym", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			if err := chosen(ctx, c, &f); err != nil {
				return err
			}
			s, err := c.Ratings().Summarize(ctx, f)
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				a.table(w, "SCORE COUNT MEAN LOWEST HIGHEST", rows(s.Scores, func(v reeve.ScoreSummary) []string {
					return []string{v.Name, strconv.Itoa(v.Count), strconv.FormatFloat(v.Mean, 'f', -1, 64),
						strconv.FormatInt(v.Min, 10), strconv.FormatInt(v.Max, 10)}
				}))
			})
		})
	ratingFlags(c, &f)
	return c
}

func ratingsRate(a *app) *cobra.Command {
	var note string
	c := a.work("rate KIND ID NAME=SCORE...", "Rate something", "ratings rate task task_... focus=80 energy=40",
		cobra.MinimumNArgs(3), func(ctx context.Context, c *client.Client, args []string) error {
			in := reeve.RatingDraft{Target: reeve.RatingTarget(args[0]), TargetID: args[1], Scores: map[string]int64{},
				Note: note}
			for _, s := range args[2:] {
				name, value, _ := strings.Cut(s, "=")
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					return usagef("a score is written NAME=SCORE, such as focus=80, not %q", s)
				}
				in.Scores[name] = n
			}
			v, err := c.Ratings().Rate(ctx, in)
			if err != nil {
				return err
			}
			return a.printRating(v)
		})
	c.Flags().StringVar(&note, "note", "", "more about it")
	return c
}
