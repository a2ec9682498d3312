package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reeve/client"
)

func consoleCommand(a *app) *cobra.Command {
	link := &cobra.Command{
		Use: "link", Short: "Print a link that signs in to the web console once", Args: cobra.NoArgs,
		Long: `Prints a link that signs in to the web console. The link works once, for 15 minutes. The session has the
rights of your token, ends with it, and lasts at most 7 days.`,
		Example: "  reeve console link",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Tokens().NewConsoleLink(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) { fmt.Fprintln(w, c.URL()+l.Path) })
			})
		},
	}
	c := &cobra.Command{
		Use: "console", Short: "Open the web console", Args: cobra.NoArgs, RunE: link.RunE,
		Example: "  reeve console link",
	}
	c.AddCommand(link)
	return c
}
