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

// heldCommand shows what a held server would go on with.
func heldCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "held", Short: "See what a held server would go on with", Args: cobra.NoArgs,
		Long: "A server that was restored from a backup starts held: it answers what is only read, and does nothing " +
			"else until you say\n" +
			"reeve resume. What happened after the backup is not in its database, so that what it would go on with " +
			"may have been done already.",
		Example: "  reeve held\n  reeve resume --skip run_...\n  reeve resume --skip-all\n  reeve resume",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
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
	details(w, "held since", when(h.Hold.HeldAt), "because", h.Hold.Reason, "knows nothing after", whenSet(h.Hold.AsOf))
	if len(h.Work) == 0 {
		fmt.Fprintln(w, "Nothing would go on by itself. Let people and agents work again with: reeve resume")
		return
	}
	fmt.Fprintln(w, "When it is resumed, this goes on:")
	a.table(w, "KIND ID WORKSPACE AGENT AT NOW WHAT", rows(h.Work, func(v reeve.HeldWork) []string {
		now := ""
		if v.Overdue {
			now = "yes"
		}
		return []string{string(v.Kind), v.ID, v.WorkspaceID, v.Agent, whenSet(v.At), now, cut(oneLine(v.What), 60)}
	}))
	seen := map[string]bool{}
	for _, v := range h.Work {
		subject := string(v.Kind)
		if v.Kind == reeve.HeldOperation { // not all operations become the same
			subject = fmt.Sprintf("operation %s of agent %s (%s)", v.ID, v.Agent, oneLine(v.What))
		}
		if line := subject + ": " + v.Then; !seen[line] {
			seen[line] = true
			fmt.Fprintln(w, "  "+line)
		}
	}
	if h.More {
		fmt.Fprintln(w, "There is more than is listed: "+heldCounts(h.Counts))
	}
	fmt.Fprintln(w, "Go on with all of it: reeve resume. Leave some runs, wakes or overdue schedules out: reeve "+
		"resume --skip ID. "+
		"Leave all of those out: reeve resume --skip-all. Keep an agent from running: reeve stop --agent NAME.")
}

// heldCounts says how much there is of each kind.
func heldCounts(counts map[reeve.HeldKind]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(string(kind), "_", " "), counts[kind]))
	}
	return strings.Join(parts, ", ")
}

// holdLine is what a list says of a server that is held, or nothing.
func holdLine(h *reeve.Hold) string {
	if h == nil {
		return ""
	}
	return when(h.HeldAt) + " " + h.Reason + "; see reeve held, then reeve resume"
}
