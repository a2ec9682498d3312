package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

// backupHandlers serves copies of the database.
type backupHandlers struct {
	db   *store.DB
	log  *slog.Logger
	copy func(context.Context) (io.ReadCloser, error)
}

// backup copies the whole database, so it takes a server token.
func (h *backupHandlers) backup(ctx context.Context, who reeve.Principal, _ *Scoped) (*huma.StreamResponse, error) {
	if err := h.db.View(ctx, func(snap *store.Snap) error { return checkServerToken(ctx, snap, who) }); err != nil {
		return nil, err
	}
	whole, err := h.copy(ctx) // before the answer begins, so that a copy that cannot be made is answered by the reason
	if err != nil {
		h.log.Error("a backup failed", "request", requestID(ctx), "error", err)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer whole.Close()
		c.SetHeader("Content-Type", "application/octet-stream")
		if _, err := io.Copy(c.BodyWriter(), whole); err != nil {
			h.log.Error("a backup failed", "request", requestID(c.Context()), "error", err)
			panic(abort) // the client must not take a part for the whole
		}
	}}, nil
}

// abort ends a response that cannot be completed.
var abort = http.ErrAbortHandler
