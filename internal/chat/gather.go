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

// gatherTime is how long the attachments of one turn may take to be fetched, all together. A client on a socket is not
// listened to meanwhile, and must not be taken for gone.
const gatherTime = 8 * time.Second

// Fetcher reads what is at an address.
type Fetcher interface {
	Fetch(ctx context.Context, address string, most int) ([]byte, error)
}

// FetchAttachments fetches attachments that are said to be somewhere, so that every model can be shown them, and checks
// what came. Paths are where errors say they are. An attachment of the type image/* gets the type that it has.
func (d *Service) FetchAttachments(ctx context.Context, list []reeve.Attachment, path func(i int) string) error {
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	left := MostBytes
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
			return unfetched(path(i), err)
		}
		left -= len(body)
		if a.MediaType == "image/*" {
			a.MediaType = http.DetectContentType(body)
		}
		if err := checkAttachment(path(i), reeve.Attachment{Name: a.Name, MediaType: a.MediaType,
			Data: body}); err != nil {
			return err
		}
		a.Data = body
	}
	return nil
}

// unfetched says which attachment could not be fetched, and why.
func unfetched(path string, err error) error {
	e := reeve.AsError(err)
	why := "could not be fetched: " + e.Message
	return &reeve.Error{Code: e.Code, Message: path + "/url " + why,
		Hint: "check the address, or send the bytes themselves as data", Err: err,
		Fields: []reeve.Field{{Path: path + "/url", Message: why, Expected: "an address that this server can read"}}}
}

func elsewhere(list []reeve.Attachment) bool {
	return slices.ContainsFunc(list, func(a reeve.Attachment) bool { return a.URL != "" })
}

// gather fetches what a turn has attached, unless that turn has begun before: what was at an address then counts.
func (d *Service) gather(ctx context.Context, who reeve.Principal, conversation, key string,
	r *reeve.TurnRequest) error {
	if !elsewhere(r.Attachments) {
		return nil
	}
	begun := false
	err := d.DB.View(ctx, func(s *store.Snap) error { // also keeps strangers from having things fetched
		w, err := s.Agents().GetWorkspace(ctx, who.Workspace)
		if err != nil {
			return err
		}
		_, a, err := enter(ctx, s, w, who, conversation, r.Agent)
		if err != nil || key == "" {
			return err
		}
		_, err = s.Queue().GetWake(ctx, turnKey(a.ID, conversation, key))
		begun = err == nil
		if reeve.CodeOf(err) == reeve.NotFound {
			err = nil
		}
		return err
	})
	if err != nil || begun {
		return err
	}
	r.Attachments = slices.Clone(r.Attachments)
	return d.FetchAttachments(ctx, r.Attachments, func(i int) string { return fmt.Sprintf("/attachments/%d", i) })
}

// same tells whether two messages say the same. What was found at an address is not said.
func same(a, b reeve.Message) bool {
	return a.Content == b.Content && (string(a.Metadata) == string(b.Metadata) || told(a.Metadata) == told(b.Metadata))
}

func told(meta json.RawMessage) string {
	var info reeve.MessageInfo
	if json.Unmarshal(meta, &info) != nil || !elsewhere(info.Attachments) {
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
