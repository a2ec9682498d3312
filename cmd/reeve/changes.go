package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func changesCommand(a *app) *cobra.Command {
	var f client.ChangeFilter
	list := a.serverCommand("list", "List recorded changes, newest first", "changes list --entity task_...",
		cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Changes().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID AT BY WHAT", rows(l.Changes, func(c reeve.ChangeRecord) []string {
					return []string{c.ID, formatTime(c.CreatedAt), cmp.Or(c.AgentID, c.UserID),
						truncate(summarizeChange(c), 80)}
				}))
			})
		})
	list.Flags().StringVar(&f.Entity, "entity", "", "only changes of this task, agent, schedule and so on")
	addPageFlags(list, &f.Page)
	show := a.serverCommand("show CHANGE", "Show a change", "changes show chg_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			change, err := c.Changes().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(change, func(w io.Writer) { printChange(w, change) })
		})
	c := groupCommand("changes", "Show what changed, by whom and why",
		`A change is an operation of an agent, or an edit by a person. CHANGE is the id that a wake names: op_... or
chg_... . Details are kept for journal entries, agents and schedules.`, list, show)
	c.Example = "  reeve changes\n  reeve changes show op_..."
	return c
}

// summarizeChange names the changed entities of a change.
func summarizeChange(c reeve.ChangeRecord) string {
	texts := make([]string, len(c.Entities))
	for i, e := range c.Entities {
		texts[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, cmp.Or(e.Title, e.ID), e.Action))
	}
	return oneLine(strings.Join(texts, ", "))
}

func printChange(w io.Writer, c reeve.ChangeRecord) {
	fmt.Fprintf(w, "%s  %s\n", c.ID, formatTime(c.CreatedAt))
	for _, line := range [][2]string{{"agent", c.AgentID}, {"user", c.UserID}, {"run", c.RunID}, {"tool", c.Tool},
		{"reason", c.Reason}} {
		if line[1] != "" {
			fmt.Fprintf(w, "  %-7s %s\n", line[0], oneLine(line[1]))
		}
	}
	for _, e := range c.Entities {
		fmt.Fprintf(w, "  %s %s\n", oneLine(strings.TrimSpace(e.Kind+" "+e.ID+" "+e.Title)), e.Action)
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			v := e.Fields[name]
			fmt.Fprintf(w, "    %s: %s → %s\n", oneLine(name), oneLine(v[0]), oneLine(v[1]))
		}
	}
}
