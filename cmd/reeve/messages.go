package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func messagesCommand(a *app) *cobra.Command {
	var f client.MessageFilter
	c := &cobra.Command{
		Use: "messages AGENT", Short: "Show an agent's thread", Args: cobra.ExactArgs(1),
		Long: "Shows the messages and calls of a thread of an agent, oldest first.",
		Example: `  reeve messages clerk
  reeve messages clerk --run nightly`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Session != "" && f.Run != "" {
				return usagef("set --session or --run, not both")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Agents().Messages(ctx, args[0], f)
				if err != nil {
					return err
				}
				defer a.noteNextPage(l.Next)
				return a.print(l, func(w io.Writer) {
					for _, m := range l.Messages {
						printMessage(w, m)
					}
				})
			})
		},
	}
	c.Flags().StringVar(&f.Session, "session", "",
		"name of the session whose thread to show (default: your own session)")
	c.Flags().StringVar(&f.Run, "run", "", "name or id of a run; for a turn, only the messages of that turn")
	addPageFlags(c, &f.Page)
	return c
}

func printMessage(w io.Writer, m reeve.Message) {
	about := ""
	switch m.Kind {
	case reeve.Action:
		var info reeve.ActionInfo
		if json.Unmarshal(m.Metadata, &info) == nil {
			about = " " + info.Tool
		}
	case reeve.ToolResult:
		var info reeve.ResultInfo
		if json.Unmarshal(m.Metadata, &info) == nil {
			about = " " + info.Status + " " + string(info.Code)
		}
	case reeve.Observation, reeve.UserMessage, reeve.Thought, reeve.Summary, reeve.SystemNote:
	}
	fmt.Fprintf(w, "%s  %s  %s%s\n", formatTime(m.CreatedAt), m.ID, m.Kind, sanitize(strings.TrimRight(about, " ")))
	if m.Content != "" {
		fmt.Fprintln(w, "  "+strings.ReplaceAll(strings.TrimRight(sanitize(m.Content), "\n"), "\n", "\n  "))
	}
}
