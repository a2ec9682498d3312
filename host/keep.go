package host

import (
	"context"
	"time"

	"reeve/internal/notify"
	"reeve/internal/store"
)

// payloadStore keeps bytes that a tool is about to replace.
type payloadStore struct{ db *store.DB }

func (k payloadStore) Put(ctx context.Context, workspace string, b []byte) (hash string, err error) {
	err = k.db.Update(ctx, func(tx *store.Tx) error {
		hash, err = tx.Ledger().PutPayload(ctx, workspace, store.Undo, b)
		return err
	})
	return hash, err
}

func (k payloadStore) Get(ctx context.Context, workspace, hash string) (b []byte, err error) {
	err = k.db.View(ctx, func(s *store.Snap) error {
		got, err := s.Ledger().GetPayload(ctx, workspace, store.Undo, hash, 0, -1)
		b = got.Body
		return err
	})
	return b, err
}

// cleanupInterval is how often a server looks for what was kept for long enough, and atOnce how much of it one transaction
// removes: others wait for it meanwhile.
const (
	cleanupInterval = time.Hour
	cleanupBatch      = 20
)

// runCleanup forgets, as long as the server runs, what was kept for longer than the configuration says.
func (h *Host) runCleanup(ctx context.Context) error {
	for {
		n, err := h.deleteExpired(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			h.log.Error("what was kept for long enough could not be removed", "error", err)
		}
		if n > 0 && err == nil {
			continue
		}
		if !notify.Sleep(ctx, cleanupInterval) {
			return nil
		}
	}
}

// deleteExpired removes some of what was kept for longer than the configuration says, and tells how much.
func (h *Host) deleteExpired(ctx context.Context) (n int, err error) {
	if h.cfg.Retention == 0 {
		return 0, nil
	}
	var before time.Time
	var some bool
	err = h.db.View(ctx, func(s *store.Snap) error {
		held, err := s.System().Held(ctx)
		if err != nil || held {
			return err
		}
		before = s.Now().Add(-time.Duration(h.cfg.Retention))
		some, err = s.Ledger().HasExpiredPayloads(ctx, before)
		return err
	})
	if err != nil || !some {
		return 0, err
	}
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		gone, err := tx.Ledger().DeleteExpiredPayloads(ctx, before, cleanupBatch)
		n = int(gone)
		return err
	})
	return n, err
}
