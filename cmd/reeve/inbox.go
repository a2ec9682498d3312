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
		Use: "inbox", Short: "See everything that waits for a person", Args: cobra.NoArgs, Example: "  reeve inbox",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				in, err := c.Approvals().Inbox(ctx)
				if err != nil {
					return err
				}
				news, err := a.news(ctx, c)
				if err != nil {
					return err
				}
				return a.print(in, func(w io.Writer) {
					if in.Hold != nil {
						fmt.Fprintln(w, "The server is held: "+holdLine(in.Hold))
					}
					if in.Waiting() == 0 {
						fmt.Fprintln(w, "Nothing waits for a person.")
					}
					if len(in.Approvals) > 0 {
						fmt.Fprintln(w, "Calls to approve (reeve approvals get|approve|deny ID):")
						a.approvalTable(w, in.Approvals)
						for _, p := range in.Approvals {
							aside(w, p.ID, "reeve approvals get", p.Reason, p.Preview)
						}
					}
					if len(in.Unknown) > 0 {
						fmt.Fprintln(w, "Operations whose outcome nobody can tell (reeve operations resolve ID "+
							"happened|retry|skip):")
						a.operationTable(w, in.Unknown)
					}
					if len(in.Proposals) > 0 {
						fmt.Fprintln(w, "Proposed changes (reeve proposals show|accept|reject ID, or a whole SET):")
						a.proposalTable(w, in.Proposals)
						for _, p := range in.Proposals {
							aside(w, p.ID, "reeve proposals show", p.Reason, p.Preview)
						}
					}
					if len(in.Items) > 0 {
						fmt.Fprintln(w, "Items that need attention (reeve items get|skip|reprocess AUTOMATION ITEM):")
						a.table(w, "AUTOMATION ITEM TITLE CODE SINCE WHY",
							rows(in.Items, func(v reeve.WaitingItem) []string {
								return []string{v.Automation, v.ID, cut(v.Title, 40), string(v.Code), when(v.UpdatedAt),
									cut(v.Message, 60)}
							}))
					}
					if len(in.Questions) > 0 {
						fmt.Fprintln(w, "Questions of the planner (reeve automations answer JOB ANSWER):")
						a.table(w, "JOB AUTOMATION QUESTION", rows(in.Questions, func(k reeve.ScriptJob) []string {
							return []string{k.ID, k.Automation, cut(k.Question, 80)}
						}))
					}
					if in.More {
						fmt.Fprintln(w, "There is more: answer some of these to see it.")
					}
					fmt.Fprint(w, news)
				})
			})
		},
	}
}

// asideLines is how much of a change the inbox shows.
const asideLines = 12

// aside says below a table why one of its calls is made and what it would change, as far as that is known.
func aside(w io.Writer, id, see, reason, preview string) {
	if lines := strings.Split(strings.TrimRight(preview, "\n"), "\n"); len(lines) > asideLines {
		preview = fmt.Sprintf("%s\n… %d more lines: %s %s", strings.Join(lines[:asideLines], "\n"),
			len(lines)-asideLines, see, id)
	}
	if reason+preview != "" {
		fmt.Fprintln(w)
		details(w, "id", id, "caller's reason", reason, "would change", preview)
	}
}
