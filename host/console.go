package host

import (
	"context"

	"reeve"
	"reeve/internal/httpapi"
	"reeve/internal/store"
	"reeve/web"
)

// NewConsoleLink makes a link that signs in to the console once, with the rights of the owner's token. It returns the
// path and fragment of the link, or "" if this build has no console.
func (h *Host) NewConsoleLink(ctx context.Context) (path string, err error) {
	if web.Embedded() == nil {
		return "", nil
	}
	if err := h.open(ctx); err != nil {
		return "", err
	}
	text, exists, err := readOwnerToken(h.cfg)
	if err != nil || !exists {
		return "", reeve.Errorf(reeve.Unavailable, "cannot read the owner's token").
			Hintf("check %s in the data directory", tokenFile)
	}
	return path, h.db.Update(ctx, func(tx *store.Tx) error {
		token, err := httpapi.VerifyToken(ctx, &tx.Snap, text)
		if err != nil {
			return err
		}
		link, err := httpapi.NewConsoleLink(ctx, tx, token)
		path = link.Path
		return err
	})
}
