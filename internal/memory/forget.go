package memory

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// quotesPerStep is the maximum number of rows of a table that one transaction changes.
const quotesPerStep = 200

// keptPerTable is the maximum number of rows of a table that are named as not reached.
const keptPerTable = 20

// Forget erases a note with its history, and its text wherever agents or the server quote it. It leaves a tombstone
// without text, and names what it did not reach. If it is interrupted, the note is still there, and Forget can be
// called again. It does nothing for a note that is already forgotten.
func (r *Notes) Forget(ctx context.Context, workspace, user, id, operation string) (reeve.NoteErasure, error) {
	out := reeve.NoteErasure{ID: id, Erased: map[string]int64{}, NotReached: []string{}}
	var note reeve.Note
	var texts []string
	isForgotten := false
	err := r.cfg.DB.View(ctx, func(s *store.Snap) (err error) {
		if isForgotten, err = s.Notes().IsForgotten(ctx, workspace, user, id); err != nil || isForgotten {
			return err
		}
		if note, err = s.Notes().GetNote(ctx, workspace, user, id); err != nil {
			return err
		}
		versions, err := s.Notes().ListNoteVersions(ctx, id)
		texts = []string{note.Content}
		for _, v := range versions {
			texts = append(texts, v.Content)
		}
		return err
	})
	if err != nil || isForgotten {
		return out, err
	}
	for more := true; more; {
		err := r.cfg.DB.Update(ctx, func(tx *store.Tx) error {
			erased, err := tx.Notes().EraseQuotes(ctx, workspace, note.UserID, texts, quotesPerStep)
			if err != nil {
				return err
			}
			if more = len(erased) > 0; !more { // in one transaction, so that no quote is added in between
				return tx.Notes().EraseNote(ctx, workspace, operation, note)
			}
			for table, n := range erased {
				out.Erased[table] += n
			}
			return nil
		})
		if err != nil {
			return out, err
		}
	}
	out.NotReached = listUnreached(note, texts)
	err = r.cfg.DB.View(ctx, func(s *store.Snap) error {
		kept, err := listKept(ctx, s, workspace, note, texts)
		out.NotReached = append(out.NotReached, kept...)
		return err
	})
	return out, err
}

// listKept names what keeps the text of a forgotten note, and what may write it again.
func listKept(ctx context.Context, s *store.Snap, workspace string, n reeve.Note, texts []string) ([]string, error) {
	kept, err := s.Notes().ListKeptQuotes(ctx, workspace, n, texts, keptPerTable)
	if err != nil {
		return nil, err
	}
	replaced, err := s.Notes().ListSuperseded(ctx, workspace, n.UserID, n.ID)
	if err != nil {
		return nil, err
	}
	for _, old := range replaced {
		kept = append(kept, "note "+old.ID+", which it replaced")
	}
	runs, err := s.Runs().ListOpenRuns(ctx, workspace, n.UserID, keptPerTable)
	for _, id := range runs {
		kept = append(kept, "run "+id+", which is in progress and may write the text again")
	}
	return kept, err
}

// listUnreached says where the text of a forgotten note may remain.
func listUnreached(n reeve.Note, texts []string) []string {
	list := []string{
		"backups that were made before the note was forgotten",
		"summaries and answers that say the same in other words or in another form, such as HTML",
		"calls, runs and conversations of other people, and their sessions",
		"files, mails and other systems that an agent wrote it to",
		"logs of the model's provider",
	}
	for _, text := range texts {
		if len(text) < store.MinQuote {
			list = append(list, "quotes of a version whose text is too short to search for")
			break
		}
	}
	if n.SupersededBy != "" {
		list = append(list, "note "+n.SupersededBy+", which replaced it")
	}
	return list
}
