package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/toolbox/notes/notefile"
)

const (
	noteBatchBytes = 1 << 20 // target size of a batch of imported notes
	noteBatch      = 500     // notes in a batch
	exportPage     = 500     // notes in a page of an export
	shownOutcomes  = 20      // notes that were not created and are listed, by reason
)

// noteImportReport is the result of reeve notes import.
type noteImportReport struct {
	notefile.Plan
	DryRun  bool              `json:"dry_run"`
	Created int               `json:"created"`
	Existed int               `json:"existed"`
	Skipped int               `json:"skipped"`
	Results []noteImportEntry `json:"results"`
}

// noteImportEntry is the outcome of one note of an import.
type noteImportEntry struct {
	Source  string `json:"source"`
	Content string `json:"content"`
	reeve.ImportedNote
}

func importNotesCommand(a *app) *cobra.Command {
	var from string
	var apply, dryRun, untrusted bool
	c := a.serverCommand("import PATH", "Import notes of another program",
		`notes import ~/notes
  reeve notes import CLAUDE.md --apply
  reeve notes import ~/.openclaw/workspace --from openclaw --apply
  reeve notes import agent.af --apply --untrusted`, cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			apply = apply || !dryRun
			plan, err := notefile.Read(args[0], notefile.Format(from))
			if err != nil {
				return err
			}
			report := noteImportReport{Plan: plan, DryRun: !apply, Results: []noteImportEntry{}}
			for start := 0; start < len(plan.Notes); {
				end, size := start, 0
				for end < len(plan.Notes) && end-start < noteBatch && size < noteBatchBytes {
					size += noteSize(plan.Notes[end])
					end++
				}
				got, err := c.Notes().Import(ctx, api.NoteImportRequest{Notes: plan.Notes[start:end], DryRun: !apply,
					Untrusted: untrusted})
				if err != nil {
					return err
				}
				for i, r := range got.Results {
					report.add(plan.Notes[start+i], r)
				}
				start = end
			}
			if err := a.print(report, func(w io.Writer) { printNoteImport(w, report) }); err != nil {
				return err
			}
			if len(plan.Notes) == report.Skipped && len(plan.Problems)+report.Skipped > 0 {
				return exitError{exitFailed} // nothing could be imported
			}
			return nil
		})
	c.Long = `Reads notes from files on this machine and sends them to the server. The formats are markdown (a file or
a folder), claude (CLAUDE.md), agents (AGENTS.md), openclaw (a workspace), letta (an agent file) and
reeve (an export). The format is detected; set --from if that fails.

Without --apply it changes nothing and shows what it would do. Each paragraph and list item becomes a
note, with its heading as context and tag. An import skips notes that equal one of
yours, and notes that were imported before, even if you have changed or deleted them.`
	c.Flags().StringVar(&from, "from", "", "markdown, claude, agents, openclaw, letta or reeve (default: detected)")
	c.Flags().BoolVar(&apply, "apply", false, "import the notes")
	c.Flags().BoolVar(&dryRun, "dry-run", true, "only show what would be imported (the default)")
	c.Flags().BoolVar(&untrusted, "untrusted", false, "mark the notes as text from a source that you do not trust")
	c.MarkFlagsMutuallyExclusive("apply", "dry-run")
	completeFlagValues(c, "from", notefile.Formats())
	return c
}

// noteSize returns about how many bytes a record has as JSON.
func noteSize(r reeve.NoteRecord) int {
	size := 500 + len(r.Content)
	for _, v := range r.Versions {
		size += 200 + len(v.Content)
	}
	return size
}

func (r *noteImportReport) add(n reeve.NoteRecord, got reeve.ImportedNote) {
	switch got.Outcome {
	case reeve.NoteCreated:
		r.Created++
	case reeve.NoteExists:
		r.Existed++
	case reeve.NoteSkipped:
		r.Skipped++
	}
	r.Results = append(r.Results, noteImportEntry{Source: n.Source, Content: n.Content, ImportedNote: got})
}

func printNoteImport(w io.Writer, r noteImportReport) {
	shown := map[string]int{}
	for _, e := range r.Results {
		key := string(e.Outcome) + e.Reason
		if shown[key]++; shown[key] > shownOutcomes && (e.Outcome != reeve.NoteSkipped) {
			continue
		}
		fmt.Fprintf(w, "%-8s %s  %s", e.Outcome, oneLine(e.Source), oneLine(reeve.Truncate(e.Content, 100)))
		if e.Reason != "" {
			fmt.Fprintf(w, "  (%s)", e.Reason)
		}
		fmt.Fprintln(w)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "problem  %s: %s\n", oneLine(p.File), oneLine(p.Message))
	}
	if r.DryRun {
		fmt.Fprintf(w, "Would create %d notes; %d exist already, %d are not valid. Nothing was changed; add --apply.\n",
			r.Created, r.Existed, r.Skipped)
		return
	}
	fmt.Fprintf(w, "Created %d notes; %d existed already, %d were not valid.\n", r.Created, r.Existed, r.Skipped)
}

// noteExportReport is the result of reeve notes export.
type noteExportReport struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Notes  int    `json:"notes"`
}

func exportNotesCommand(a *app) *cobra.Command {
	var format string
	c := a.serverCommand("export PATH", "Export all your notes",
		"notes export notes.json\n  reeve notes export notes/ --format markdown", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if format != "json" && format != "markdown" {
				return reeve.Errorf(reeve.Validation, "unknown format %q", format).Hintf("use json or markdown")
			}
			notes := []reeve.NoteRecord{}
			for page := (client.Page{Limit: exportPage}); ; {
				got, err := c.Notes().Export(ctx, page)
				if err != nil {
					return err
				}
				notes = append(notes, got.Notes...)
				if page.Cursor = got.Next; got.Next == "" {
					break
				}
			}
			report := noteExportReport{Path: args[0], Format: format, Notes: len(notes)}
			var err error
			if format == "markdown" {
				report.Notes, err = notefile.WriteMarkdown(args[0], notes)
			} else {
				err = writeNoteFile(args[0], notes)
			}
			if err != nil {
				return err
			}
			return a.print(report, func(w io.Writer) {
				fmt.Fprintf(w, "Exported %d notes to %s.\n", report.Notes, args[0])
			})
		})
	c.Long = `Writes all your notes. The format json is one file with everything: tags, pins, origins, history, deleted
and replaced notes; reeve notes import brings it all back on another server. The format markdown is a
folder with one file for each current note.`
	c.Flags().StringVar(&format, "format", "json", "json or markdown")
	return c
}

// writeNoteFile writes an export. It leaves no partial file.
func writeNoteFile(path string, notes []reeve.NoteRecord) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".notes-*")
	if err == nil {
		err = notefile.WriteJSON(f, notes)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot write %s: %w", path, err).
			Hintf("choose a file in a folder that you may write")
	}
	return nil
}
