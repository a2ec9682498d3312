package memory

import (
	"context"
	"errors"
	"time"

	"reeve/internal/embed"
	"reeve/internal/notify"
	"reeve/internal/store"
)

const (
	vectorBatch    = 32          // notes whose vectors are stored in one transaction
	vectorInterval = time.Minute // time between checks for notes that other servers wrote
)

// Wakeup makes Run compute the vectors of new notes now.
func (r *Notes) Wakeup() { r.notesChanged.Notify() }

// Run computes the vectors of notes until ctx ends.
func (r *Notes) Run(ctx context.Context) error {
	if r.cfg.Encoder == nil {
		return nil
	}
	for delay := errorDelay; ctx.Err() == nil; {
		n, err := r.Step(ctx)
		switch {
		case errors.Is(err, embed.ErrMissing):
			r.cfg.Log.Info("notes are searched by words only", "reason", err)
			return nil
		case err != nil && ctx.Err() == nil:
			r.cfg.Log.Error("cannot compute the vectors of notes", "error", err)
			notify.Sleep(ctx, delay)
			delay = min(2*delay, vectorInterval)
		case n == 0:
			r.notesChanged.Wait(ctx, vectorInterval)
			fallthrough
		default:
			delay = errorDelay
		}
	}
	return nil
}

// Step computes the vectors of some notes that have no vector of the current model. It returns the number of notes.
func (r *Notes) Step(ctx context.Context) (int, error) {
	model := r.cfg.Encoder.Model()
	var notes []store.NoteText
	err := r.cfg.DB.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		notes, err = s.Notes().NotesWithoutVector(ctx, model, vectorBatch)
		return err
	})
	if err != nil || len(notes) == 0 {
		return 0, err
	}
	texts := make([]string, len(notes))
	for i, n := range notes {
		texts[i] = n.Content
	}
	encoded, err := r.cfg.Encoder.Encode(ctx, texts)
	if err != nil {
		return 0, err
	}
	vectors := make([]store.NoteVector, len(notes))
	for i, n := range notes {
		vectors[i] = store.NoteVector{NoteID: n.ID, Version: n.Version, Code: embed.Bits(encoded[i]),
			Vector: embed.Quantize(encoded[i])}
	}
	return len(notes), r.cfg.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Notes().PutVectors(ctx, model, vectors)
	})
}
