package httpapi

import (
	"context"
	"mime"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// getMedia returns a file that an agent sent to a conversation, unchanged since then.
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
	return h.download(a.Name, a.MediaType, got.Body), nil
}

// listAttachments lists the files that people attached to the turns of a conversation, in order.
func (h *conversationHandlers) listAttachments(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	After int `query:"after" minimum:"0" doc:"Number of the last file that you have; the list begins after it"`
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"100"`
}) (*body[api.AttachmentList], error) {
	out := &body[api.AttachmentList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		c, err := getVisibleConversation(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body.Attachments, err = snap.Chat().ListAttachments(ctx, c.ID, in.After, in.Limit)
		if n := len(out.Body.Attachments); n == in.Limit {
			out.Body.Next = out.Body.Attachments[n-1].Number
		}
		return err
	})
}

// getAttachment returns a file that a person attached to a turn.
func (h *conversationHandlers) getAttachment(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Attachment string `path:"attachment" maxLength:"128" doc:"Id of the attachment, or its number"`
}) (*huma.StreamResponse, error) {
	var a reeve.StoredAttachment
	var got store.PayloadSlice
	err := h.db.View(ctx, func(snap *store.Snap) error {
		c, err := getVisibleConversation(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		if a, err = snap.Chat().GetAttachment(ctx, c.ID, in.Attachment); err != nil {
			return err
		}
		got, err = snap.Ledger().GetPayload(ctx, who.Workspace, store.ConversationPayload, a.Hash, 0, -1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h.download(a.FileName(), a.MediaType, got.Body), nil
}

// download returns a response with a file. The file is untrusted, so the headers keep browsers from executing it.
func (h *conversationHandlers) download(name, mediaType string, data []byte) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", mediaType)
		c.SetHeader("Content-Length", strconv.Itoa(len(data)))
		c.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		c.SetHeader("Content-Security-Policy", "sandbox; default-src 'none'")
		c.SetHeader("X-Content-Type-Options", "nosniff")
		c.SetStatus(http.StatusOK)
		if _, err := c.BodyWriter().Write(data); err != nil {
			h.log.Debug("cannot send response", "request", requestID(c.Context()), "error", err)
		}
	}}
}
