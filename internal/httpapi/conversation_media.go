package httpapi

import (
	"context"
	"mime"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

// getMedia returns a file that an agent sent to a conversation, unchanged since then. The content is untrusted, so the
// headers keep browsers from executing it.
func (h *conversationHandlers) getMedia(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Hash string `path:"hash" pattern:"^[0-9a-f]{64}$"`
}) (*huma.StreamResponse, error) {
	var a reeve.Attachment
	var got store.PayloadSlice
	err := h.db.View(ctx, func(snap *store.Snap) error {
		c, err := getVisibleConversation(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		if a, err = snap.Chat().SentMedia(ctx, c.ID, in.Hash); err != nil {
			return err
		}
		got, err = snap.Ledger().GetPayload(ctx, who.Workspace, store.ConversationPayload, in.Hash, 0, -1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", a.MediaType)
		c.SetHeader("Content-Length", strconv.Itoa(len(got.Body)))
		c.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
		c.SetHeader("Content-Security-Policy", "sandbox; default-src 'none'")
		c.SetHeader("X-Content-Type-Options", "nosniff")
		c.SetStatus(http.StatusOK)
		if _, err := c.BodyWriter().Write(got.Body); err != nil {
			h.log.Debug("cannot send response", "request", requestID(c.Context()), "error", err)
		}
	}}, nil
}
