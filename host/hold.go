package host

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// adoptDatabase finds out, before anything is done, whether the database is the one that the last server used. One that was
// restored from a backup is held.
func (h *Host) adoptDatabase(ctx context.Context) error {
	reason := ""
	if h.cfg.Held {
		reason = "it was started with --held or REEVE_HELD"
	}
	hold, err := h.db.Adopt(ctx, reason)
	if err == nil && hold != nil {
		h.log.Warn("the server is held, and does nothing until a person says reeve resume", "reason", hold.Reason,
			"list", "reeve held")
	}
	return err
}

// isHeld tells whether the server is held. A store that does not answer is told of by ready.
func (h *Host) isHeld(ctx context.Context) (held bool) {
	_ = h.db.View(ctx, func(s *store.Snap) (err error) { held, err = s.System().Held(ctx); return err })
	return held
}

// Held says why the server is held; nil if it is not.
func (h *Host) Held(ctx context.Context) (hold *reeve.Hold, err error) {
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	err = h.db.View(ctx, func(s *store.Snap) error { hold, err = s.System().Hold(ctx); return err })
	return hold, err
}

// checkHold fails while the server is held: it looks well and does nothing.
func (h *Host) checkHold(ctx context.Context) reeve.PartHealth {
	var hold *reeve.Hold
	err := h.db.View(ctx, func(s *store.Snap) (err error) { hold, err = s.System().Hold(ctx); return err })
	if err == nil && hold != nil {
		err = reeve.Errorf(reeve.Stopped, "the server is held since %s: %s", hold.HeldAt.Format("2006-01-02 15:04:05"),
			hold.Reason).
			Hintf("look at what would go on with reeve held, then let it go on with reeve resume")
	}
	return newPartHealth("hold", err, "the server is not held", "see the server's log")
}
