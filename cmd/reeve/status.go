package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve/client"
)

func statusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the status of the server", Args: cobra.NoArgs, Example: "  reeve status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				s, err := c.Server().Status(ctx)
				if err != nil {
					return err
				}
				return a.print(s, func(w io.Writer) {
					stopped := ""
					if s.Workspace.StoppedAt != nil {
						stopped = formatTimePtr(s.Workspace.StoppedAt) + " " + s.Workspace.StopReason
					}
					waiting := strconv.Itoa(s.Waiting)
					if s.More {
						waiting += " or more"
					}
					printDetails(w, "server", c.URL(), "version", s.Version, "database", s.Engine,
						"started", formatTime(s.StartedAt), "workspace", s.Workspace.ID,
						"you", s.User+" ("+string(s.Role)+")", "node", s.Node, "held", formatHold(s.Hold),
						"stopped", stopped, "waiting for a person", waiting,
						"broken tools", strings.Join(s.Broken, "\n"))
				})
			})
		},
	}
}
