package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// heldCommand lists the work that a held server would resume.
func heldCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "held", Short: "List the work that a held server would resume", Args: cobra.NoArgs,
		Long: `A server that was restored from a backup starts held: it answers read requests, and runs and changes
nothing until "reeve resume". Its database does not record what happened after the backup, so the work
it would resume may have been done already. This command lists that work.`,
		Example: "  reeve held\n  reeve resume --skip run_...\n  reeve resume --skip-all\n  reeve resume",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				h, err := c.Control().Hold(ctx)
				if err != nil {
					return err
				}
				return a.print(h, func(w io.Writer) { a.printHeld(w, h) })
			})
		},
	}
}

func (a *app) printHeld(w io.Writer, h api.HoldReport) {
	if !h.Held {
		fmt.Fprintln(w, "The server is not held.")
		return
	}
	printDetails(w, "held since", formatTime(h.Hold.HeldAt), "reason", h.Hold.Reason,
		"database ends at", formatTimePtr(h.Hold.AsOf))
	if len(h.Work) == 0 {
		fmt.Fprintln(w, "There is no work to resume. Release the server with: reeve resume")
		return
	}
	fmt.Fprintln(w, "After reeve resume, the server continues with:")
	a.printTable(w, "KIND ID WORKSPACE AGENT AT OVERDUE WHAT", rows(h.Work, func(v reeve.HeldWork) []string {
		overdue := ""
		if v.Overdue {
			overdue = "yes"
		}
		return []string{string(v.Kind), v.ID, v.WorkspaceID, v.Agent, formatTimePtr(v.At), overdue,
			truncate(oneLine(v.Description), 60)}
	}))
	seen := map[string]bool{}
	for _, v := range h.Work {
		subject := string(v.Kind)
		if v.Kind == reeve.HeldOperation { // the outcome differs between operations
			subject = fmt.Sprintf("operation %s of agent %s (%s)", v.ID, v.Agent, oneLine(v.Description))
		}
		if line := subject + ": " + v.OnResume; !seen[line] {
			seen[line] = true
			fmt.Fprintln(w, "  "+line)
		}
	}
	if h.More {
		fmt.Fprintln(w, "The list is incomplete. Totals: "+formatHeldCounts(h.Counts))
	}
	fmt.Fprintln(w, `Resume everything:                         reeve resume
Skip a run, wake or overdue schedule:      reeve resume --skip ID
Skip all runs, wakes and overdue firings:  reeve resume --skip-all
Keep an agent stopped:                     reeve stop --agent NAME`)
}

// formatHeldCounts formats the number of entries of each kind.
func formatHeldCounts(counts map[reeve.HeldKind]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(string(kind), "_", " "), counts[kind]))
	}
	return strings.Join(parts, ", ")
}

// formatHold formats a hold for a status line, or returns "" if the server is not held.
func formatHold(h *reeve.Hold) string {
	if h == nil {
		return ""
	}
	return formatTime(h.HeldAt) + " " + h.Reason + "; see reeve held, then run reeve resume"
}
