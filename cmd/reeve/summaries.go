package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"reeve/api"
	"reeve/client"
)

func summariesCommand(a *app) *cobra.Command {
	var page client.Page
	list := a.serverCommand("list AGENT", "List an agent's summaries, the latest first", "summaries list clerk",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Agents().Summaries(ctx, args[0], page)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID STATE ATTEMPTS CONVERSATION MESSAGE ERROR",
					rows(l.Summaries, func(s api.Summary) []string {
						return []string{s.ID, s.State, strconv.Itoa(s.Attempts), s.ConversationID, s.MessageID,
							truncate(oneLine(s.Message), 60)}
					}))
			})
		})
	addPageFlags(list, &page)
	list.ValidArgsFunction = a.complete(agentNames)
	retry := a.serverCommand("retry AGENT SUMMARY", "Try a failed summary again", "summaries retry clerk run_...",
		cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			if _, err := c.Agents().RetrySummary(ctx, args[0], args[1]); err != nil {
				return err
			}
			return a.printDone("queued summary %s", args[1])
		})
	c := groupCommand("summaries", "List and retry summaries of turns and runs",
		"The model summarizes turns and runs that an agent is no longer shown. It does so in the background.", list,
		retry)
	c.Example = "  reeve summaries list clerk\n  reeve summaries retry clerk run_..."
	return c
}
