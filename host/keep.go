package host

import (
	"context"
	"time"

	"reeve/internal/notify"
	"reeve/internal/store"
)

// keeper keeps bytes that a tool is about to replace.
type keeper struct{ db *store.DB }

func (k keeper) Put(ctx context.Context, workspace string, b []byte) (hash string, err error) {
	err = k.db.Update(ctx, func(tx *store.Tx) error {
		hash, err = tx.Ledger().PutPayload(ctx, workspace, store.UndoPayload, b)
		return err
	})
	return hash, err
}

func (k keeper) Get(ctx context.Context, workspace, hash string) (b []byte, err error) {
	err = k.db.View(ctx, func(s *store.Snap) error {
		got, err := s.Ledger().GetPayload(ctx, workspace, store.UndoPayload, hash, 0, -1)
		b = got.Body
		return err
	})
	return b, err
}

// forgetEvery is how often a server looks for what was kept for long enough, and atOnce how much of it one transaction
// removes: others wait for it meanwhile.
const (
	forgetEvery = time.Hour
	atOnce      = 20
)

// keepForgetting forgets, as long as the server runs, what was kept for longer than the configuration says.
func (h *Host) keepForgetting(ctx context.Context) error {
	for {
		n, err := h.forget(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			h.log.Error("what was kept for long enough could not be removed", "error", err)
		}
		if n > 0 && err == nil {
			continue
		}
		if !notify.Sleep(ctx, forgetEvery) {
			return nil
		}
	}
}

// forget removes some of what was kept for longer than the configuration says, and tells how much.
func (h *Host) forget(ctx context.Context) (n int, err error) {
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
		gone, err := tx.Ledger().DeleteExpiredPayloads(ctx, before, atOnce)
		n = int(gone)
		return err
	})
	return n, err
}
