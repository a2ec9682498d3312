package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func notesCommand(a *app) *cobra.Command {
	var f client.NoteFilter
	list := a.task("list", "List what agents remember of you, newest first", "notes list --agent clerk", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Notes().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				for _, n := range l.Notes {
					printNote(w, n)
				}
				if len(l.Notes) == 0 {
					fmt.Fprintln(w, "No notes.")
				}
			})
		})
	list.Flags().StringVar(&f.Agent, "agent", "", "only those of this agent")
	paged(list, &f.Page)
	add := a.task("add AGENT TEXT", "Have an agent remember something of you", "notes add clerk 'I prefer tea'",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			n, err := c.Notes().Create(ctx, api.NoteRequest{Agent: args[0], Content: args[1]})
			if err != nil {
				return err
			}
			return a.print(n, func(w io.Writer) { printNote(w, n) })
		})
	del := a.task("delete NOTE", "Have an agent forget a note", "notes delete note_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Notes().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.done("deleted note %s", args[0])
		})
	c := family("notes", "See what agents remember of you",
		"Agents whose config has notes set to true take notes of their turns, and are told of those that may matter "+
			"in later ones.", list, add, del)
	c.Example = "  reeve notes\n  reeve notes add clerk 'I prefer tea'\n  reeve notes delete note_..."
	return c
}

func printNote(w io.Writer, n reeve.Note) {
	fmt.Fprintf(w, "%s  %s  %s  %s\n", when(n.CreatedAt), n.ID, oneLine(n.UserID), oneLine(n.Content))
}
