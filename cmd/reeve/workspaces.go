package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func workspacesCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the workspaces you can see", Args: cobra.NoArgs, Example: "  reeve workspaces list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Workspaces().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.table(w, "ID NAME STOPPED CREATED", rows(l.Workspaces, func(s reeve.Workspace) []string {
						return []string{s.ID, cut(s.Name, 40), whenSet(s.StoppedAt), when(s.CreatedAt)}
					}))
				})
			})
		},
	}
	var name string
	create := &cobra.Command{
		Use: "create ID", Short: "Make a workspace", Args: cobra.ExactArgs(1),
		Example: `  reeve workspaces create acme --name "Acme Ltd"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				s, err := c.Workspaces().Create(ctx, api.WorkspaceRequest{ID: args[0], Name: name})
				if err != nil {
					return err
				}
				return a.print(s, func(w io.Writer) {
					details(w, "id", s.ID, "name", s.Name, "created",
						when(s.CreatedAt))
				})
			})
		},
	}
	create.Flags().StringVar(&name, "name", "", "what people read")
	c := &cobra.Command{
		Use: "workspaces", Short: "See and make workspaces", Args: cobra.NoArgs, RunE: list.RunE,
		Long:    "A workspace is the tenant boundary: everything belongs to one, and nothing of one is seen in another.",
		Example: "  reeve workspaces\n  reeve workspaces create acme",
	}
	c.AddCommand(list, create)
	return c
}
