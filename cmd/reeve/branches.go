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
	show := a.serverCommand("show BRANCH", "Show a branch", "branches show conv_...", one,
		func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Branches().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(b, func(w io.Writer) { printBranch(w, b) })
		})
	log := a.serverCommand("log BRANCH", "List the commits of a branch, newest first", "branches log conv_...", one,
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Branches().Log(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "COMMIT AUTHOR AT MESSAGE", rows(l.Commits, func(v reeve.Commit) []string {
					first, _, _ := strings.Cut(v.Message, "\n")
					return []string{v.ID[:min(12, len(v.ID))], v.Author, formatTime(v.At), truncate(first, 80)}
				}))
			})
		})
	discard := a.serverCommand("discard BRANCH", "Delete a branch and its working tree",
		"branches discard conv_...", one, func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Branches().Discard(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.print(b, nil)
			}
			return a.printDone("discarded %s of %s", b.Name, b.Project)
		})
	c := groupCommand("branches", "Review and merge the branches of agents",
		`Each conversation with an agent that works on a project has its own branch, which the first command in
the conversation creates. BRANCH is the id of the branch or of its conversation; for an automation,
the id of its agent. Nothing changes on the default branch until a person merges. After a discard, the
next command creates the branch again.`, branchesList(a), show, branchesDiff(a), log, branchesMerge(a), discard)
	c.Example = `  reeve branches
  reeve branches diff conv_...
  reeve branches merge conv_...`
	return c
}

func branchesList(a *app) *cobra.Command {
	var f client.BranchFilter
	c := a.serverCommand("list", "List branches, newest first", "branches list --project site", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Branches().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID PROJECT NAME STATE HEAD MERGED SUBJECT",
					rows(l.Branches, func(b reeve.Branch) []string {
						return []string{b.ID, b.Project, b.Name, string(b.State), b.Head[:min(12, len(b.Head))],
							formatTimePtr(b.MergedAt), b.Subject}
					}))
			})
		})
	c.Flags().StringVar(&f.Project, "project", "", "only branches of this project")
	c.Flags().StringVar(&f.State, "state", "", "only branches in this state")
	completeFlagValues(c, "state", reeve.BranchStates())
	addPageFlags(c, &f.Page)
	return c
}

func branchesDiff(a *app) *cobra.Command {
	var stat bool
	c := a.serverCommand("diff BRANCH", "Show the changes of a branch as a diff", "branches diff conv_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.Branches().Diff(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(d, func(w io.Writer) {
				if stat {
					a.printTable(w, "FILE ADDED REMOVED", rows(d.Files, func(f reeve.FileChange) []string {
						if f.Binary {
							return []string{f.Path, "binary", ""}
						}
						return []string{f.Path, "+" + strconv.Itoa(f.Added), "-" + strconv.Itoa(f.Removed)}
					}))
					return
				}
				fmt.Fprint(w, sanitize(d.Patch))
				if d.Truncated {
					a.notef("the diff is truncated; see branch %s in the repository", d.Name)
				}
			})
		})
	c.Flags().BoolVar(&stat, "stat", false, "list only the files and the number of changed lines")
	return c
}

func branchesMerge(a *app) *cobra.Command {
	var r api.MergeRequest
	c := a.serverCommand("merge BRANCH", "Merge a branch into the project's default branch",
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
				return a.printDone("%s already contains %s", m.Into, m.Name)
			}
			return a.printDone("merged %s into %s: %s", m.Name, m.Into, m.Commit)
		})
	c.Flags().StringVarP(&r.Message, "message", "m", "", "commit message")
	return c
}

func printBranch(w io.Writer, b reeve.Branch) {
	printDetails(w, "id", b.ID, "project", b.Project, "name", b.Name, "subject", string(b.Kind)+" "+b.Subject,
		"state", string(b.State), "base", b.Base, "head", b.Head, "merged", b.Merged, "merged by", b.MergedBy,
		"merged at", formatTimePtr(b.MergedAt), "created", formatTime(b.CreatedAt),
		"updated", formatTime(b.UpdatedAt))
}
