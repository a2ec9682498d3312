package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

// fetchTimeout limits the download of all attachments of a turn. Meanwhile the server does not read from the client's
// socket, and must not consider the client disconnected.
const fetchTimeout = 8 * time.Second

// Fetcher downloads the content of a URL. It fails if the content has more than limit bytes.
type Fetcher interface {
	Fetch(ctx context.Context, address string, limit int) ([]byte, error)
}

// FetchAttachments downloads attachments that are given by URL, so that every model can use them, and checks them. If a
// media type is given as image/*, the detected type replaces it. The function pointerOf returns the JSON Pointer of an
// attachment in the request, for errors.
func (d *Service) FetchAttachments(ctx context.Context, list []reeve.Attachment, pointerOf func(i int) string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	left := MaxAttachmentBytes
	for _, a := range list {
		left -= len(a.Data)
	}
	for i := range list {
		a := &list[i]
		if a.URL == "" {
			continue
		}
		body, err := d.Fetcher.Fetch(ctx, a.URL, max(0, left))
		if err != nil {
			return newFetchError(pointerOf(i), err)
		}
		left -= len(body)
		if a.MediaType == "image/*" {
			a.MediaType = http.DetectContentType(body)
		}
		if err := checkAttachment(pointerOf(i), reeve.Attachment{Name: a.Name, MediaType: a.MediaType,
			Data: body}); err != nil {
			return err
		}
		a.Data = body
	}
	return nil
}

// newFetchError returns the error of an attachment that could not be fetched.
func newFetchError(path string, err error) error {
	e := reeve.AsError(err)
	reason := "could not be fetched: " + e.Message
	return &reeve.Error{Code: e.Code, Message: path + "/url " + reason,
		Hint: "check the URL, or send the content in data", Err: err,
		Fields: []reeve.Field{{Path: path + "/url", Message: reason, Expected: "a URL that this server can read"}}}
}

func hasURL(list []reeve.Attachment) bool {
	return slices.ContainsFunc(list, func(a reeve.Attachment) bool { return a.URL != "" })
}

// fetchTurnAttachments downloads the attachments of a turn. If the key was used before, it does nothing, because the
// turn exists and keeps the content that was downloaded then.
func (d *Service) fetchTurnAttachments(ctx context.Context, who reeve.Principal, conversation, key string,
	r *reeve.TurnRequest) error {
	if !hasURL(r.Attachments) {
		return nil
	}
	exists := false
	// also checks that the principal may begin a turn, before anything is downloaded
	err := d.DB.View(ctx, func(s *store.Snap) error {
		w, err := s.Agents().GetWorkspace(ctx, who.Workspace)
		if err != nil {
			return err
		}
		_, a, err := getTurnTarget(ctx, s, w, who, conversation, r.Agent)
		if err != nil || key == "" {
			return err
		}
		_, err = s.Queue().GetWake(ctx, turnKey(a.ID, conversation, key))
		exists = err == nil
		if reeve.CodeOf(err) == reeve.NotFound {
			err = nil
		}
		return err
	})
	if err != nil || exists {
		return err
	}
	r.Attachments = slices.Clone(r.Attachments)
	return d.FetchAttachments(ctx, r.Attachments, func(i int) string { return fmt.Sprintf("/attachments/%d", i) })
}

// isSameMessage reports whether two messages are equal, apart from the content downloaded from URLs.
func isSameMessage(a, b reeve.Message) bool {
	return a.Content == b.Content && (string(a.Metadata) == string(b.Metadata) ||
		renderComparable(a.Metadata) == renderComparable(b.Metadata))
}

// renderComparable returns message metadata without the hash and size of downloaded attachments.
func renderComparable(meta json.RawMessage) string {
	var info reeve.MessageInfo
	if json.Unmarshal(meta, &info) != nil || !hasURL(info.Attachments) {
		return string(meta)
	}
	for i := range info.Attachments {
		if a := &info.Attachments[i]; a.URL != "" {
			a.Hash, a.Size = "", 0
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return string(meta)
	}
	return string(text)
}
