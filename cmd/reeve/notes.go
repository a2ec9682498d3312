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
	list := a.serverCommand("list", "List the notes about you, newest first", "notes list --agent clerk", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Notes().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				for _, n := range l.Notes {
					printNote(w, n)
				}
				if len(l.Notes) == 0 {
					fmt.Fprintln(w, "No notes.")
				}
			})
		})
	list.Flags().StringVar(&f.Agent, "agent", "", "only notes of this agent")
	addPageFlags(list, &f.Page)
	create := a.serverCommand("create AGENT TEXT", "Create a note about you for an agent",
		"notes create clerk 'I prefer tea'",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			n, err := c.Notes().Create(ctx, api.NoteRequest{Agent: args[0], Content: args[1]})
			if err != nil {
				return err
			}
			return a.print(n, func(w io.Writer) { printNote(w, n) })
		})
	del := a.serverCommand("delete NOTE", "Delete a note", "notes delete note_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Notes().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("deleted note %s", args[0])
		})
	c := groupCommand("notes", "Manage the notes that agents keep about you",
		"An agent with \"notes\": true in its config writes notes after its turns, and gets the relevant notes in "+
			"later\n"+
			"turns.", list, create, del)
	c.Example = "  reeve notes\n  reeve notes create clerk 'I prefer tea'\n  reeve notes delete note_..."
	return c
}

func printNote(w io.Writer, n reeve.Note) {
	fmt.Fprintf(w, "%s  %s  %s  %s\n", formatTime(n.CreatedAt), n.ID, oneLine(n.UserID), oneLine(n.Content))
}
