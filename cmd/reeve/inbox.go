package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func inboxCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "inbox", Short: "List everything that waits for a person", Args: cobra.NoArgs, Example: "  reeve inbox",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				in, err := c.Approvals().Inbox(ctx)
				if err != nil {
					return err
				}
				unread, err := a.formatUnread(ctx, c)
				if err != nil {
					return err
				}
				return a.print(in, func(w io.Writer) {
					if in.Hold != nil {
						fmt.Fprintln(w, "The server is held: "+formatHold(in.Hold))
					}
					if in.Waiting() == 0 {
						fmt.Fprintln(w, "Nothing is waiting for a person.")
					}
					if len(in.Approvals) > 0 {
						fmt.Fprintln(w, "Calls to approve (reeve approvals show|approve|deny ID):")
						a.printApprovalTable(w, in.Approvals)
						for _, p := range in.Approvals {
							printReason(w, p.ID, "reeve approvals show", p.Reason, p.Preview)
						}
					}
					if len(in.Unknown) > 0 {
						fmt.Fprintln(w, "Operations with an unknown outcome (reeve operations resolve ID "+
							"happened|retry|skip):")
						a.printOperationTable(w, in.Unknown)
					}
					if len(in.Proposals) > 0 {
						fmt.Fprintln(w, "Proposed changes (reeve proposals show|accept|reject ID, or a whole SET):")
						a.printProposalTable(w, in.Proposals)
						for _, p := range in.Proposals {
							printReason(w, p.ID, "reeve proposals show", p.Reason, p.Preview)
						}
					}
					if len(in.Items) > 0 {
						fmt.Fprintln(w, "Items that need attention (reeve items show|skip|reprocess AUTOMATION ITEM):")
						a.printTable(w, "AUTOMATION ITEM TITLE CODE SINCE WHY",
							rows(in.Items, func(v reeve.WaitingItem) []string {
								return []string{v.Automation, v.ID, truncate(v.Title, 40), string(v.Code),
									formatTime(v.UpdatedAt),
									truncate(v.Message, 60)}
							}))
					}
					if len(in.Questions) > 0 {
						fmt.Fprintln(w, "Questions from the planner (reeve automations answer JOB ANSWER):")
						a.printTable(w, "JOB AUTOMATION QUESTION", rows(in.Questions, func(k reeve.ScriptJob) []string {
							return []string{k.ID, k.Automation, truncate(k.Question, 80)}
						}))
					}
					if len(in.Schedules) > 0 {
						fmt.Fprintln(w, "Schedules that failed too often (reeve schedules resume ID):")
						a.printTable(w, "ID NAME FAILURES", rows(in.Schedules, func(v reeve.Timer) []string {
							return []string{v.ID, v.Name, fmt.Sprint(v.Failures)}
						}))
					}
					if len(in.Budgets) > 0 {
						fmt.Fprintln(w, "Exhausted budgets (reeve budgets set SUBJECT):")
						a.printTable(w, "SUBJECT", rows(in.Budgets, func(b reeve.Budget) []string {
							return []string{b.Subject}
						}))
					}
					if in.More {
						fmt.Fprintln(w, "There is more. Decide some of these to see it.")
					}
					fmt.Fprint(w, unread)
				})
			})
		},
	}
}

// maxPreviewLines is the number of lines of a preview that the inbox shows.
const maxPreviewLines = 12

// printReason prints the reason and the preview of a call, if it has any. showCommand is the command that prints the
// whole preview.
func printReason(w io.Writer, id, showCommand, reason, preview string) {
	if lines := strings.Split(strings.TrimRight(preview, "\n"), "\n"); len(lines) > maxPreviewLines {
		preview = fmt.Sprintf("%s\n… %d more lines: %s %s", strings.Join(lines[:maxPreviewLines], "\n"),
			len(lines)-maxPreviewLines, showCommand, id)
	}
	if reason+preview != "" {
		fmt.Fprintln(w)
		printDetails(w, "id", id, "caller's reason", reason, "would change", preview)
	}
}
