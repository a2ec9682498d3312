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
	"reeve/api"
	"reeve/client"
)

func notesCommand(a *app) *cobra.Command {
	c := groupCommand("notes", "Manage what agents remember about you",
		"Notes belong to you, whichever agent wrote them. Agents save and search them with the memory tools.\n"+
			"An agent with \"notes\": true in its config also writes notes after its turns, and gets the notes\n"+
			"that fit a message.",
		listNotesCommand(a), searchNotesCommand(a), createNoteCommand(a), updateNoteCommand(a), whyNoteCommand(a),
		deleteNoteCommand(a), restoreNoteCommand(a), forgetNoteCommand(a), consolidateNotesCommand(a),
		importNotesCommand(a), exportNotesCommand(a))
	c.Example = "  reeve notes\n  reeve notes create 'I prefer tea' --tag food\n" +
		"  reeve notes search 'what do I drink?'\n  reeve notes why note_..."
	return c
}

func listNotesCommand(a *app) *cobra.Command {
	var f client.NoteFilter
	c := a.serverCommand("list", "List your notes, newest first", "notes list --tag work", cobra.NoArgs,
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
	c.Flags().StringVar(&f.Agent, "agent", "", "only notes that this agent wrote")
	c.Flags().StringVar(&f.Tag, "tag", "", "only notes with this tag")
	c.Flags().StringVar(&f.User, "user", "", "owners only: notes of this user")
	c.Flags().BoolVar(&f.Pinned, "pinned", false, "only pinned notes")
	c.Flags().BoolVar(&f.History, "history", false, "include deleted and replaced notes")
	addPageFlags(c, &f.Page)
	return c
}

func searchNotesCommand(a *app) *cobra.Command {
	var tags []string
	var limit int
	c := a.serverCommand("search TEXT", "Search your notes by words and meaning", "notes search 'what do I drink?'",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			got, err := c.Notes().Search(ctx, args[0], tags, limit)
			if err != nil {
				return err
			}
			return a.print(got, func(w io.Writer) {
				for _, h := range got.Notes {
					fmt.Fprintf(w, "%.2f  %s  ", h.Score, strings.Join(h.Matched, "+"))
					printNote(w, h.Note)
				}
				if len(got.Notes) == 0 {
					fmt.Fprintln(w, "No notes match.")
				}
				if got.WordsOnly != "" {
					fmt.Fprintf(w, "Notes were searched by words only: %s.\n", got.WordsOnly)
				}
			})
		})
	c.Flags().StringArrayVar(&tags, "tag", nil, "only notes with this tag; repeatable")
	c.Flags().IntVar(&limit, "limit", 0, "number of notes (default 10)")
	return c
}

func createNoteCommand(a *app) *cobra.Command {
	var r api.NoteRequest
	c := a.serverCommand("create TEXT", "Save a note about you", "notes create 'I prefer tea' --tag food",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r.Content = args[0]
			n, err := c.Notes().Create(ctx, r)
			if err != nil {
				return err
			}
			return a.print(n, func(w io.Writer) { printNote(w, n) })
		})
	c.Flags().StringArrayVar(&r.Tags, "tag", nil, "a tag; repeatable")
	c.Flags().BoolVar(&r.Pinned, "pin", false, "pin the note: it does not lose rank with age")
	return c
}

func updateNoteCommand(a *app) *cobra.Command {
	var content string
	var tags []string
	var pin, unpin bool
	var cmd *cobra.Command
	cmd = a.serverCommand("update NOTE", "Change, tag or pin a note",
		"notes update note_... --content 'I prefer coffee'", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			var change reeve.NoteChange
			if cmd.Flags().Changed("content") {
				change.Content = &content
			}
			if cmd.Flags().Changed("tag") {
				change.Tags = &tags
			}
			if pin || unpin {
				change.Pinned = &pin
			}
			n, err := c.Notes().Update(ctx, args[0], change)
			if err != nil {
				return err
			}
			return a.print(n, func(w io.Writer) { printNote(w, n) })
		})
	cmd.Flags().StringVar(&content, "content", "", "new text")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "new tags, instead of the old ones; repeatable")
	cmd.Flags().BoolVar(&pin, "pin", false, "pin the note")
	cmd.Flags().BoolVar(&unpin, "unpin", false, "unpin the note")
	cmd.MarkFlagsMutuallyExclusive("pin", "unpin")
	cmd.MarkFlagsOneRequired("content", "tag", "pin", "unpin")
	return cmd
}

func whyNoteCommand(a *app) *cobra.Command {
	return a.serverCommand("why NOTE", "Show where a note comes from", "notes why note_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			h, err := c.Notes().History(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(h, func(w io.Writer) { printNoteHistory(w, h) })
		})
}

func deleteNoteCommand(a *app) *cobra.Command {
	return a.serverCommand("delete NOTE", "Delete a note; it can be restored", "notes delete note_...",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Notes().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("deleted note %s", args[0])
		})
}

func restoreNoteCommand(a *app) *cobra.Command {
	return a.serverCommand("restore NOTE", "Restore a deleted or replaced note", "notes restore note_...",
		cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
			n, err := c.Notes().Restore(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(n, func(w io.Writer) { printNote(w, n) })
		})
}

func forgetNoteCommand(a *app) *cobra.Command {
	c := a.serverCommand("forget NOTE", "Erase a note and every quote of it", "notes forget note_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			e, err := c.Notes().Forget(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(e, func(w io.Writer) {
				fmt.Fprintf(w, "Forgot note %s.\n", e.ID)
				for _, table := range slices.Sorted(maps.Keys(e.Erased)) {
					fmt.Fprintf(w, "  erased in %s: %d\n", table, e.Erased[table])
				}
				if len(e.NotReached) > 0 {
					fmt.Fprintln(w, "The text may remain in:")
				}
				for _, place := range e.NotReached {
					fmt.Fprintf(w, "  - %s\n", place)
				}
			})
		})
	c.Long = "Erases a note with its history, and its text in calls, messages, summaries, runs, approvals and " +
		"outputs.\n" +
		"It leaves a record without text. It cannot be undone; reeve notes delete can."
	return c
}

func consolidateNotesCommand(a *app) *cobra.Command {
	c := a.serverCommand("consolidate", "Propose merges of notes that say the same", "notes consolidate", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			all := reeve.NoteConsolidation{Changes: []reeve.ConsolidatedChange{}, More: true}
			for all.More && all.Problem == "" {
				got, err := c.Notes().Consolidate(ctx)
				if err != nil {
					return err
				}
				all.Changes = append(all.Changes, got.Changes...)
				all.ChangeSetID = cmp.Or(got.ChangeSetID, all.ChangeSetID)
				all.Compared, all.Problem = all.Compared+got.Compared, got.Problem
				if all.More = got.More; got.Compared == 0 {
					break
				}
			}
			return a.print(all, func(w io.Writer) { printConsolidation(w, all) })
		})
	c.Long = "Compares your notes that are new since the last time with all others. It proposes to merge notes that\n" +
		"say nearly the same and, with a model, notes that contradict each other or belong together. Nothing\n" +
		"changes until you accept: reeve proposals. The agent memory_keeper makes the proposals; its policy may\n" +
		"allow it to merge without asking. Every merge can be undone."
	return c
}

func printConsolidation(w io.Writer, v reeve.NoteConsolidation) {
	proposed := 0
	for _, change := range v.Changes {
		fmt.Fprintf(w, "%s  %s", change.Tool, cmp.Or(string(change.State), string(change.Code)))
		if change.ProposalID != "" {
			proposed++
			fmt.Fprintf(w, "  %s", change.ProposalID)
		}
		fmt.Fprintf(w, "\n  %s\n", strings.ReplaceAll(change.Reason, "\n", "\n  "))
		if change.Message != "" {
			fmt.Fprintf(w, "  %s\n", change.Message)
		}
	}
	fmt.Fprintf(w, "Compared %d notes, proposed %d changes.\n", v.Compared, proposed)
	if v.Problem != "" {
		fmt.Fprintf(w, "Some notes are left: %s.\n", v.Problem)
	}
	if proposed > 0 {
		fmt.Fprintln(w, "Decide with: reeve proposals accept PROPOSAL, or reject PROPOSAL")
	}
}

func printNote(w io.Writer, n reeve.Note) {
	fmt.Fprintf(w, "%s  %s  %s  %s", formatTime(n.UpdatedAt), n.ID, oneLine(n.UserID), oneLine(n.Content))
	if len(n.Tags) > 0 {
		fmt.Fprintf(w, "  [%s]", oneLine(strings.Join(n.Tags, ", ")))
	}
	for _, mark := range []struct {
		is   bool
		text string
	}{{n.Pinned, "pinned"}, {n.Origin == reeve.NoteUntrusted, "untrusted"}, {n.DeletedAt != nil, "deleted"},
		{n.SupersededBy != "", "replaced by " + n.SupersededBy}} {
		if mark.is {
			fmt.Fprintf(w, "  (%s)", mark.text)
		}
	}
	fmt.Fprintln(w)
}

// printNoteHistory prints how a note came to say what it says.
func printNoteHistory(w io.Writer, h api.NoteHistory) {
	printNote(w, h.Note)
	fmt.Fprintf(w, "  true from %s\n", formatTime(h.Note.ValidFrom))
	if h.Note.Source != "" {
		fmt.Fprintf(w, "  imported from %s\n", oneLine(strings.TrimPrefix(h.Note.Source, "import:")))
	}
	for _, v := range h.Versions {
		fmt.Fprintf(w, "  version %d  %s  %s  %s\n", v.Version, formatTime(v.WrittenAt),
			noteSource(v.Origin, v.AgentID, v.OperationID), oneLine(v.Content))
	}
	fmt.Fprintf(w, "  version %d  %s  %s\n", h.Note.Version, formatTime(h.Note.UpdatedAt),
		noteSource(h.Note.Origin, h.Note.AgentID, h.Note.OperationID))
	for _, n := range h.Replaces {
		fmt.Fprintf(w, "  replaces %s  %s\n", n.ID, oneLine(n.Content))
	}
	for _, n := range h.ReplacedBy {
		fmt.Fprintf(w, "  replaced by %s  %s\n", n.ID, oneLine(n.Content))
	}
}

// noteSource says who wrote a version of a note.
func noteSource(origin reeve.NoteOrigin, agent, operation string) string {
	text := "written by a person"
	if agent != "" {
		text = "written by agent " + agent
	}
	if origin == reeve.NoteUntrusted {
		text += " from an outside source"
	}
	if operation != "" {
		text += ", operation " + operation
	}
	return text
}
