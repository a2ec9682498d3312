package memory

import (
	"context"
	"errors"
	"slices"
	"time"

	"reeve"
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
	r.encoding.Lock()
	defer r.encoding.Unlock()
	var notes []store.NoteText
	err := r.cfg.DB.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		notes, err = s.Notes().NotesWithoutVector(ctx, r.cfg.Encoder.Model(), vectorBatch)
		return err
	})
	if err != nil || len(notes) == 0 {
		return 0, err
	}
	_, err = r.storeVectors(ctx, notes)
	return len(notes), err
}

// storeVectors computes and stores the vectors of notes, and returns them in the same order.
func (r *Notes) storeVectors(ctx context.Context, notes []store.NoteText) ([][]float32, error) {
	texts := make([]string, len(notes))
	for i, n := range notes {
		texts[i] = n.Content
	}
	encoded, err := r.cfg.Encoder.Encode(ctx, texts)
	if err != nil {
		return nil, err
	}
	vectors := make([]store.NoteVector, len(notes))
	for i, n := range notes {
		vectors[i] = store.NoteVector{NoteID: n.ID, Version: n.Version, Code: embed.Bits(encoded[i]),
			Vector: embed.Quantize(encoded[i])}
	}
	return encoded, r.cfg.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Notes().PutVectors(ctx, r.cfg.Encoder.Model(), vectors)
	})
}

// readVectors returns the vectors of a user's notes by note id, and computes those that are missing. It returns nil if
// there is no encoder or the encoder fails.
func (r *Notes) readVectors(ctx context.Context, workspace, user string, notes []reeve.Note) map[string][]float32 {
	if r.cfg.Encoder == nil {
		return nil
	}
	r.encoding.Lock()
	defer r.encoding.Unlock()
	out := map[string][]float32{}
	ids := make([]string, len(notes))
	for i, n := range notes {
		ids[i] = n.ID
	}
	err := r.cfg.DB.View(ctx, func(s *store.Snap) error {
		stored, err := s.Notes().VectorsOf(ctx, workspace, user, r.cfg.Encoder.Model(), ids)
		for _, v := range stored {
			out[v.NoteID] = embed.Dequantize(v.Vector)
		}
		return err
	})
	if err != nil {
		return nil
	}
	var missing []store.NoteText
	for _, n := range notes {
		if out[n.ID] == nil {
			missing = append(missing, store.NoteText{ID: n.ID, Version: n.Version, Content: n.Content})
		}
	}
	for some := range slices.Chunk(missing, vectorBatch) {
		vectors, err := r.storeVectors(ctx, some)
		if err != nil {
			return nil
		}
		for i, n := range some {
			out[n.ID] = vectors[i]
		}
	}
	return out
}
