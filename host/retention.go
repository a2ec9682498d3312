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

	defaultRequestRetention = 30 * 24 * time.Hour
)

// runCleanup deletes what has expired until ctx ends.
func (h *Host) runCleanup(ctx context.Context) error {
	for {
		n, err := h.deleteExpired(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			h.log.Error("cannot delete what has expired", "error", err)
		}
		if n > 0 && err == nil {
			continue
		}
		if !notify.Sleep(ctx, cleanupInterval) {
			return nil
		}
	}
}

// deleteExpired deletes a batch of payloads and recorded changes older than Config.Retention, and of requests to models
// older than Config.RequestRetention. It returns their number.
func (h *Host) deleteExpired(ctx context.Context) (n int, err error) {
	var before, requestsBefore time.Time
	var hasExpired bool
	err = h.db.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		requestsBefore = s.Now().Add(-h.cfg.requestRetention())
		if hasExpired, err = s.Runs().HasExpiredModelRequests(ctx, requestsBefore); h.cfg.Retention == 0 {
			return err
		}
		before = s.Now().Add(-time.Duration(h.cfg.Retention))
		if err == nil && !hasExpired {
			hasExpired, err = s.Ledger().HasExpiredPayloads(ctx, before)
		}
		if err == nil && !hasExpired {
			hasExpired, err = s.Queue().HasExpiredChanges(ctx, before)
		}
		return err
	})
	if err != nil || !hasExpired {
		return 0, err
	}
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		requests, err := tx.Runs().ClearExpiredModelRequests(ctx, requestsBefore, cleanupBatch)
		if n = int(requests); err != nil || h.cfg.Retention == 0 {
			return err
		}
		payloads, err := tx.Ledger().DeleteExpiredPayloads(ctx, before, cleanupBatch)
		if err != nil {
			return err
		}
		changes, err := tx.Queue().DeleteExpiredChanges(ctx, before, changesBatch)
		n += int(payloads + changes)
		return err
	})
	return n, err
}

// requestRetention returns the time to keep requests to models.
func (c Config) requestRetention() time.Duration {
	switch {
	case c.RequestRetention > 0:
		return time.Duration(c.RequestRetention)
	case c.Retention > 0:
		return min(time.Duration(c.Retention), defaultRequestRetention)
	}
	return defaultRequestRetention
}
