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
	list := a.serverCommand("list", "List projects", "projects list", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Projects().List(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "NAME BRANCH PATH CREATED",
					rows(l.Projects, func(p reeve.Project) []string {
						return []string{p.Name, p.DefaultBranch, p.Path, formatTime(p.CreatedAt)}
					}))
			})
		})
	var r reeve.ProjectRequest
	create := a.serverCommand("create NAME PATH", "Add a git repository on the server's disk",
		"projects create site /srv/site --branch main", cobra.ExactArgs(2),
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
	create.Flags().StringVar(&r.DefaultBranch, "branch", "",
		"base and merge target of the agents' branches (default: the branch that is checked out)")
	show := a.serverCommand("show NAME", "Show a project", "projects show site", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.Projects().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) { printProject(w, p) })
		})
	remove := a.serverCommand("delete NAME", "Delete a project; its repository is kept", "projects delete site",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Projects().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("deleted project %s", args[0])
		})
	c := groupCommand("projects", "Manage the repositories that agents work on",
		`A project is a git repository on the server's disk. An agent works on a project if its settings for
shell_exec name the project. Each conversation has its own branch and working tree. "reeve branches"
shows the changes, and a person merges them.`, list, create, show, remove)
	c.Example = `  reeve projects create site /srv/site
  reeve agents create dev --kind engineer
  reeve agents attach dev shell_exec --config '{"project":"site"}'`
	return c
}

func printProject(w io.Writer, p reeve.Project) {
	printDetails(w, "id", p.ID, "name", p.Name, "path", p.Path, "default branch", p.DefaultBranch,
		"created by", p.CreatedBy, "created", formatTime(p.CreatedAt))
}
