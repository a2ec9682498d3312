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

// backup streams a copy of the database. It needs a server token, because the copy has the data of every workspace.
func (h *backupHandlers) backup(ctx context.Context, who reeve.Principal, _ *Scoped) (*huma.StreamResponse, error) {
	if err := h.db.View(ctx, func(snap *store.Snap) error { return checkServerToken(ctx, snap, who) }); err != nil {
		return nil, err
	}
	data, err := h.copy(ctx) // before the response begins, so that a failure has a problem document
	if err != nil {
		h.log.Error("backup failed", "request", requestID(ctx), "error", err)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer data.Close()
		c.SetHeader("Content-Type", "application/octet-stream")
		if _, err := io.Copy(c.BodyWriter(), data); err != nil {
			h.log.Error("backup failed", "request", requestID(c.Context()), "error", err)
			panic(abort) // breaks the connection, so that the client does not take a partial copy for a complete one
		}
	}}, nil
}

// abort is the panic value that ends a response that cannot be completed.
var abort = http.ErrAbortHandler
