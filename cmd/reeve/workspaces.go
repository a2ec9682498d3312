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
		Use: "list", Short: "List the workspaces you have access to", Args: cobra.NoArgs,
		Example: "  reeve workspaces list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Workspaces().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "ID NAME STOPPED CREATED", rows(l.Workspaces, func(s reeve.Workspace) []string {
						return []string{s.ID, truncate(s.Name, 40), formatTimePtr(s.StoppedAt), formatTime(s.CreatedAt)}
					}))
				})
			})
		},
	}
	var name string
	create := &cobra.Command{
		Use: "create ID", Short: "Create a workspace", Args: cobra.ExactArgs(1),
		Example: `  reeve workspaces create acme --name "Acme Ltd"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				s, err := c.Workspaces().Create(ctx, api.WorkspaceRequest{ID: args[0], Name: name})
				if err != nil {
					return err
				}
				return a.print(s, func(w io.Writer) {
					printDetails(w, "id", s.ID, "name", s.Name, "created", formatTime(s.CreatedAt))
				})
			})
		},
	}
	create.Flags().StringVar(&name, "name", "", "name shown to people")
	c := &cobra.Command{
		Use: "workspaces", Short: "Manage workspaces", Args: cobra.NoArgs, RunE: list.RunE,
		Long:    "Everything belongs to one workspace. Nothing in a workspace is visible in another.",
		Example: "  reeve workspaces\n  reeve workspaces create acme",
	}
	c.AddCommand(list, create)
	return c
}
