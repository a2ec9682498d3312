package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func projectsCommand(a *app) *cobra.Command {
	list := a.task("list", "List projects", "projects list", cobra.NoArgs, func(ctx context.Context, c *client.Client,
		_ []string) error {
		l, err := c.Projects().List(ctx)
		if err != nil {
			return err
		}
		return a.print(l, func(w io.Writer) {
			a.table(w, "NAME BRANCH PATH CREATED",
				rows(l.Projects, func(p reeve.Project) []string {
					return []string{p.Name, p.DefaultBranch, p.Path,
						when(p.CreatedAt)}
				}))
		})
	})
	var r reeve.ProjectRequest
	add := a.task("add NAME PATH", "Let agents work on a repository on the server's disk",
		"projects add site /srv/site --branch main", cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			r.Name = args[0]
			var err error
			if r.Path, err = filepath.Abs(args[1]); err != nil {
				return err
			}
			p, err := c.Projects().Create(ctx, r)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) { printProject(w, p) })
		})
	add.Flags().StringVar(&r.DefaultBranch, "branch", "",
		"what branches begin at and are merged into; default: the branch that the repository has checked out")
	show := a.task("show NAME", "Show a project", "projects show site", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.Projects().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) { printProject(w, p) })
		})
	remove := a.task("delete NAME", "Remove a project; its repository stays", "projects delete site",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Projects().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.done("deleted project %s", args[0])
		})
	c := family("projects", "Repositories that agents work on", `A project is a git repository on the server's disk. An agent whose settings for shell_exec name it works on it: each conversation on a
branch and in a folder of its own. "reeve branches" shows what they did; a person merges it.`, list, add, show, remove)
	c.Example = `  reeve projects add site /srv/site
  reeve agents create dev --kind engineer
  reeve agents attach dev shell_exec --config '{"project":"site"}'`
	return c
}

func printProject(w io.Writer, p reeve.Project) {
	details(w, "id", p.ID, "name", p.Name, "path", p.Path, "default branch", p.DefaultBranch, "created by", p.CreatedBy,
		"created", when(p.CreatedAt))
}
