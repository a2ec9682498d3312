package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func profilesCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List capability profiles", Args: cobra.NoArgs, Example: "  reeve profiles list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Profiles().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "KIND CAPABILITIES", rows(l.Profiles, func(p reeve.Profile) []string {
						return []string{p.Kind, strings.Join(p.Capabilities, ", ")}
					}))
				})
			})
		},
	}
	set := &cobra.Command{
		Use: "set KIND [CAPABILITY...]", Short: "Set the capabilities of a kind", Args: cobra.MinimumNArgs(1),
		Long: `Replaces all capabilities of a kind. Without capabilities, agents of the kind can use only tools that
require none.`,
		Example: "  reeve profiles set auditor files.read web.read",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Profiles().Set(ctx, args[0], args[1:])
				if err != nil {
					return err
				}
				return a.print(p, func(w io.Writer) {
					printDetails(w, "kind", p.Kind, "capabilities", strings.Join(p.Capabilities, ", "))
				})
			})
		},
	}
	c := &cobra.Command{
		Use: "profiles", Short: "Manage capability profiles", Args: cobra.NoArgs, RunE: list.RunE,
		Long:    "A profile lists the capabilities of all agents of a kind. A tool can require a capability.",
		Example: "  reeve profiles\n  reeve profiles set auditor files.read",
	}
	c.AddCommand(list, set)
	return c
}
