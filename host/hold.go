package host

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// adoptDatabase checks whether the database is the one that the last server used. If it was restored from a backup, the
// server is held. It runs before anything else.
func (h *Host) adoptDatabase(ctx context.Context) error {
	reason := ""
	if h.cfg.Held {
		reason = "the server was started with --held or REEVE_HELD"
	}
	hold, err := h.db.AdoptIdentity(ctx, reason)
	if err == nil && hold != nil {
		h.log.Warn("server is held until reeve resume", "reason", hold.Reason, "list", "reeve held")
	}
	return err
}

// isHeld reports whether the server is held. It ignores store errors, which checkReady reports.
func (h *Host) isHeld(ctx context.Context) (held bool) {
	_ = h.db.View(ctx, func(s *store.Snap) (err error) { held, err = s.System().IsHeld(ctx); return err })
	return held
}

// Hold returns why the server is held, or nil if it is not.
func (h *Host) Hold(ctx context.Context) (hold *reeve.Hold, err error) {
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	err = h.db.View(ctx, func(s *store.Snap) error { hold, err = s.System().Hold(ctx); return err })
	return hold, err
}

// checkHold fails while the server is held, because a held server responds to requests but does no work.
func (h *Host) checkHold(ctx context.Context) reeve.PartHealth {
	var hold *reeve.Hold
	err := h.db.View(ctx, func(s *store.Snap) (err error) { hold, err = s.System().Hold(ctx); return err })
	if err == nil && hold != nil {
		err = reeve.Errorf(reeve.Stopped, "the server has been held since %s: %s",
			hold.HeldAt.Format("2006-01-02 15:04:05"),
			hold.Reason).
			Hintf("list the held work with reeve held, then continue with reeve resume")
	}
	return newPartHealth("hold", err, "the server is not held", "see the server's log")
}
