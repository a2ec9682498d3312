package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reeve/client"
)

func inboxCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "inbox", Short: "See everything that waits for a person", Args: cobra.NoArgs, Example: "  reeve inbox",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				in, err := c.Inbox(ctx)
				if err != nil {
					return err
				}
				news, err := a.news(ctx, c)
				if err != nil {
					return err
				}
				return a.print(in, func(w io.Writer) {
					if len(in.Approvals)+len(in.Unknown) == 0 {
						fmt.Fprintln(w, "Nothing waits for a person.")
					}
					if len(in.Approvals) > 0 {
						fmt.Fprintln(w, "Calls to approve (reeve approvals get|approve|deny ID):")
						a.approvalTable(w, in.Approvals)
					}
					if len(in.Unknown) > 0 {
						fmt.Fprintln(w, "Operations whose outcome nobody can tell (reeve operations resolve ID happened|retry|skip):")
						a.operationTable(w, in.Unknown)
					}
					fmt.Fprint(w, news)
				})
			})
		},
	}
}
