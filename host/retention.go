package host

import (
	"context"
	"time"

	"reeve/internal/notify"
	"reeve/internal/store"
)

const (
	cleanupInterval = time.Hour // time between two cleanups
	cleanupBatch    = 20        // payloads deleted in one transaction; small, because other writers wait meanwhile
	changesBatch    = 500       // recorded changes deleted in one transaction
)

// runCleanup deletes expired payloads until ctx ends.
func (h *Host) runCleanup(ctx context.Context) error {
	for {
		n, err := h.deleteExpired(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			h.log.Error("cannot delete expired payloads", "error", err)
		}
		if n > 0 && err == nil {
			continue
		}
		if !notify.Sleep(ctx, cleanupInterval) {
			return nil
		}
	}
}

// deleteExpired deletes a batch of payloads, recorded changes and model requests older than Config.Retention. It
// returns their number.
func (h *Host) deleteExpired(ctx context.Context) (n int, err error) {
	if h.cfg.Retention == 0 {
		return 0, nil
	}
	var before time.Time
	var hasExpired bool
	err = h.db.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		before = s.Now().Add(-time.Duration(h.cfg.Retention))
		if hasExpired, err = s.Ledger().HasExpiredPayloads(ctx, before); err == nil && !hasExpired {
			hasExpired, err = s.Queue().HasExpiredChanges(ctx, before)
		}
		if err == nil && !hasExpired {
			hasExpired, err = s.Runs().HasExpiredModelRequests(ctx, before)
		}
		return err
	})
	if err != nil || !hasExpired {
		return 0, err
	}
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		payloads, err := tx.Ledger().DeleteExpiredPayloads(ctx, before, cleanupBatch)
		if err != nil {
			return err
		}
		changes, err := tx.Queue().DeleteExpiredChanges(ctx, before, changesBatch)
		if err != nil {
			return err
		}
		requests, err := tx.Runs().DeleteExpiredModelRequests(ctx, before, cleanupBatch)
		n = int(payloads + changes + requests)
		return err
	})
	return n, err
}
