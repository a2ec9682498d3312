package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func branchesCommand(a *app) *cobra.Command {
	one := cobra.ExactArgs(1)
	show := a.task("show BRANCH", "Show a branch", "branches show conv_...", one,
		func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Branches().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(b, func(w io.Writer) { printBranch(w, b) })
		})
	log := a.task("log BRANCH", "Show what was committed, newest first", "branches log conv_...", one,
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Branches().Log(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "COMMIT AUTHOR AT MESSAGE", rows(l.Commits, func(v reeve.Commit) []string {
					first, _, _ := strings.Cut(v.Message, "\n")
					return []string{v.ID[:min(12, len(v.ID))], v.Author, when(v.At), cut(first, 80)}
				}))
			})
		})
	discard := a.task("discard BRANCH", "Delete a branch and its files; the next command begins it anew",
		"branches discard conv_...", one, func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Branches().Discard(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(b, nil)
			}
			return a.done("discarded %s of %s", b.Name, b.Project)
		})
	c := family("branches", "What agents did to repositories, to look at and merge", `Each conversation with an agent that works on a project has a branch there, made when the first command runs. A branch is named by its
id or its conversation's (an automation's: the id of its agent). Nothing reaches the default branch until a person merges it.`, branchesList(a), show, branchesDiff(a), log, branchesMerge(a), discard)
	c.Example = `  reeve branches
  reeve branches diff conv_...
  reeve branches merge conv_...`
	return c
}

func branchesList(a *app) *cobra.Command {
	var f client.BranchFilter
	c := a.task("list", "List branches, newest first", "branches list --project site", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Branches().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID PROJECT NAME STATE HEAD MERGED OF", rows(l.Branches, func(b reeve.Branch) []string {
					return []string{b.ID, b.Project, b.Name, string(b.State), b.Head[:min(12, len(b.Head))],
						whenSet(b.MergedAt), b.Subject}
				}))
			})
		})
	c.Flags().StringVar(&f.Project, "project", "", "of one project only")
	c.Flags().StringVar(&f.State, "state", "", "in one state only")
	fixed(c, "state", reeve.BranchStates())
	paged(c, &f.Page)
	return c
}

func branchesDiff(a *app) *cobra.Command {
	var stat bool
	c := a.task("diff BRANCH", "Show what a branch would change", "branches diff conv_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.Branches().Diff(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(d, func(w io.Writer) {
				if stat {
					a.table(w, "FILE ADDED REMOVED", rows(d.Files, func(f reeve.FileChange) []string {
						if f.Binary {
							return []string{f.Path, "binary", ""}
						}
						return []string{f.Path, "+" + strconv.Itoa(f.Added), "-" + strconv.Itoa(f.Removed)}
					}))
					return
				}
				fmt.Fprint(w, plain(d.Patch))
				if d.Truncated {
					a.note("there is more than is shown; look at %s in the repository", d.Name)
				}
			})
		})
	c.Flags().BoolVar(&stat, "stat", false, "only the files, and how many lines")
	return c
}

func branchesMerge(a *app) *cobra.Command {
	var r api.MergeRequest
	c := a.task("merge BRANCH", "Merge a branch into the project's default branch",
		"branches merge conv_... -m 'New front page'", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			m, err := c.Branches().Merge(ctx, args[0], r)
			if err != nil {
				return err
			}
			switch {
			case a.json:
				return a.print(m, nil)
			case m.UpToDate:
				return a.done("%s has all of %s already", m.Into, m.Name)
			}
			return a.done("merged %s into %s: %s", m.Name, m.Into, m.Commit)
		})
	c.Flags().StringVarP(&r.Message, "message", "m", "", "what the commit says")
	return c
}

func printBranch(w io.Writer, b reeve.Branch) {
	details(w, "id", b.ID, "project", b.Project, "name", b.Name, "of", string(b.Kind)+" "+b.Subject, "state",
		string(b.State), "base", b.Base, "head", b.Head,
		"merged", b.Merged, "merged by", b.MergedBy, "merged at", whenSet(b.MergedAt), "created", when(b.CreatedAt),
		"updated", when(b.UpdatedAt))
}
