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
		Use: "messages AGENT", Short: "Read an agent's thread", Args: cobra.ExactArgs(1),
		Example: `  reeve messages clerk
  reeve messages clerk --run nightly`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Session != "" && f.Run != "" {
				return usagef("give --session or --run, not both")
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Agents().Messages(ctx, args[0], f)
				if err != nil {
					return err
				}
				defer a.more(l.Next)
				return a.print(l, func(w io.Writer) {
					for _, m := range l.Messages {
						printMessage(w, m)
					}
				})
			})
		},
	}
	c.Flags().StringVar(&f.Session, "session", "", "the thread of a session (default: your own default session)")
	c.Flags().StringVar(&f.Run, "run", "", "the thread of a run, or what a turn wrote")
	paged(c, &f.Page)
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
	fmt.Fprintf(w, "%s  %s  %s%s\n", when(m.CreatedAt), m.ID, m.Kind, plain(strings.TrimRight(about, " ")))
	if m.Content != "" {
		fmt.Fprintln(w, "  "+strings.ReplaceAll(strings.TrimRight(plain(m.Content), "\n"), "\n", "\n  "))
	}
}
