package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

const (
	batchesPath = "/api/mail/imports/{id}/batches"
	batchLimit  = 16 << 20 // bytes of a batch
	maxBatchLines  = 2000
	removeChunk  = 1000 // mails removed in one transaction: others wait for no more
)

// registerMailRoutes is the contents page of imported mail. Searching and reading it are tools.
func registerMailRoutes(router huma.API, s *services) {
	const (
		get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
		viewer, member = reeve.Viewer, reeve.Member
		made, gone     = http.StatusCreated, http.StatusNoContent
		tag, at        = "mail", "/api/mail"
	)
	mail := &mailHandlers{db: s.DB}
	handle(router, route{get, at + "/inboxes", "listInboxes", "List mailboxes that were imported", tag, viewer, 0},
		mail.listInboxes)
	handle(router, route{del, at + "/inboxes/{name}", "removeInbox", "Remove a mailbox and all its mail", tag, member,
		gone}, mail.removeInbox)
	handle(router, route{get, at + "/imports", "listImports", "List imports, newest first", tag, viewer, 0},
		mail.listImports)
	handle(router, route{post, at + "/imports", "beginImport", "Begin an import, or take up one that was interrupted",
		tag, member, made}, mail.beginImport)
	handle(router, route{get, at + "/imports/{id}", "getImport",
		"How far an import has come, and what was wrong with mails", tag, viewer, 0}, mail.getImport)
	handle(router, route{post, batchesPath, "addBatch", "Add mails to an import", tag, member, 0}, mail.addBatch)
	handle(router, route{post, at + "/imports/{id}/finish", "finishImport", "End an import", tag, member, 0},
		mail.finishImport)
}

// mailHandlers serves imported mailboxes and the imports themselves.
type mailHandlers struct {
	db *store.DB
}

func (h *mailHandlers) listInboxes(ctx context.Context, who reeve.Principal,
	_ *struct{ Scoped }) (*body[api.MailboxList], error) {
	out := &body[api.MailboxList]{api.MailboxList{Mailboxes: []api.MailboxInfo{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		list, err := snap.Mail().ListInboxes(ctx, who.Workspace)
		for _, i := range list {
			out.Body.Mailboxes = append(out.Body.Mailboxes, api.MailboxInfo{Name: i.Name, User: i.User,
				Messages: i.Messages})
		}
		return err
	})
}

func (h *mailHandlers) removeInbox(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Name string `path:"name" maxLength:"300"`
}) (*none, error) {
	ctx, cancel := detachWithTimeout(ctx) // nobody else would remove the rest
	defer cancel()
	for {
		var n int64
		if err := h.db.Update(ctx, func(tx *store.Tx) error {
			box, err := tx.Mail().LockInbox(ctx, who.Workspace, in.Name)
			if err != nil {
				return err
			}
			if err := checkImporter(who, box.User, "remove the inbox"); err != nil {
				return err
			}
			n, err = tx.Mail().RemoveMail(ctx, box, removeChunk)
			return err
		}); err != nil || n == 0 {
			return nil, err
		}
	}
}

func (h *mailHandlers) listImports(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"50"`
}) (*body[api.MailImportList], error) {
	out := &body[api.MailImportList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Imports, err = snap.Mail().ListImports(ctx, who.Workspace, in.Limit)
		return err
	})
}

func (h *mailHandlers) beginImport(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.MailImportRequest
}) (*body[reeve.MailImport], error) {
	if strings.TrimSpace(in.Body.Source) == "" {
		return nil, reeve.InvalidField("/source", "is blank", "what is read, such as the host and the path")
	}
	out := &body[reeve.MailImport]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) (err error) {
		if out.Body, err = tx.Mail().BeginImport(ctx, who.Workspace, callerID(who), in.Body); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}

func (h *mailHandlers) getImport(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.MailImport], error) {
	out := &body[reeve.MailImport]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = snap.Mail().GetImport(ctx, who.Workspace, in.ID)
		return err
	})
}

// Position is where an import stands, in its reader's own words.
type Position struct {
	Position string `query:"position" required:"true" minLength:"1" maxLength:"4096" doc:"Where the import stands afterwards, in the reader's own words; no two are the same"`
}

func (h *mailHandlers) addBatch(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Position
	After   string `query:"after" maxLength:"4096" doc:"Where it stands before; empty at the beginning"`
	Key     string `header:"Idempotency-Key" maxLength:"255" doc:"Not needed: a batch is known by its positions, and is taken once"`
	RawBody []byte `contentType:"application/x-ndjson" doc:"A line for each mail: {\"email\": {...}}, or {\"place\": ..., \"bad\": why it could not be read}; both may have notes"`
}) (*body[reeve.MailImport], error) {
	if in.After == in.Position.Position {
		return nil, reeve.InvalidField("query/position", "is where the import stands before",
			"another position: each is used once")
	}
	lines, err := parseMailLines(in.RawBody)
	if err != nil {
		return nil, err
	}
	out := &body[reeve.MailImport]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		v, err := getWritableImport(ctx, tx, who, in.ID)
		if err != nil {
			return err
		}
		if v.Replace {
			if err := checkReplace(ctx, tx, who, lines); err != nil {
				return err
			}
		}
		out.Body, err = tx.Mail().
			AddBatch(ctx, who.Workspace, v.ID, store.MailBatch{After: in.After, Position: in.Position.Position,
				Hash: reeve.Hash(in.RawBody), Lines: lines})
		return err
	})
}

// getWritableImport reads an import that the caller may go on with.
func getWritableImport(ctx context.Context, tx *store.Tx, who reeve.Principal, id string) (reeve.MailImport, error) {
	v, err := tx.Mail().GetImport(ctx, who.Workspace, id)
	if err != nil {
		return v, err
	}
	return v, checkImporter(who, v.User, "go on with the import")
}

// checkReplace tells whether the caller may replace mails of the inboxes that are named. Anybody who imports may add to
// them: that loses nothing.
func checkReplace(ctx context.Context, tx *store.Tx, who reeve.Principal, lines []reeve.MailLine) error {
	asked := map[string]bool{}
	for _, l := range lines {
		if l.Email == nil || asked[l.Email.Inbox] {
			continue
		}
		asked[l.Email.Inbox] = true
		box, err := tx.Mail().GetInbox(ctx, who.Workspace, l.Email.Inbox)
		if err == nil {
			err = checkImporter(who, box.User, "replace mails of the inbox "+box.Name)
		}
		if err != nil && reeve.CodeOf(err) != reeve.NotFound {
			return err
		}
	}
	return nil
}

// checkImporter refuses what only the one who brought mail in may do, or an owner.
func checkImporter(who reeve.Principal, user, what string) error {
	if who.Role == reeve.Owner || user != "" && user == callerID(who) {
		return nil
	}
	return reeve.Errorf(reeve.Forbidden, "only an owner or who brought it in may %s", what).
		Hintf("use their token or an owner's")
}

func (h *mailHandlers) finishImport(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Position string `query:"position" maxLength:"4096" doc:"Where it stands; empty if there was nothing to read"`
}) (*body[reeve.MailImport], error) {
	out := &body[reeve.MailImport]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		_, err := getWritableImport(ctx, tx, who, in.ID)
		if err != nil {
			return err
		}
		if out.Body, err = tx.Mail().FinishImport(ctx, who.Workspace, in.ID, in.Position); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}

// parseMailLines reads a batch. A line that is wrong is named by its number, and then nothing of the batch is taken.
func parseMailLines(b []byte) (lines []reeve.MailLine, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	for {
		rest := bytes.TrimLeft(b[dec.InputOffset():], " \t\r\n")
		if len(rest) == 0 {
			return lines, nil
		}
		wrong := func(what string) error { return newInvalidLine(bytes.Count(b[:len(b)-len(rest)], []byte("\n"))+1, what) }
		var l reeve.MailLine
		if err := dec.Decode(&l); err != nil {
			return nil, wrong("is not a mail: " + describeDecodeError(err).Error())
		}
		if (l.Email == nil) == (l.Bad == "") {
			return nil, wrong("has neither a mail nor a reason why there is none, or both")
		}
		if l.Email != nil {
			if name := l.Email.Inbox; name == "" || len(name) > 300 || !utf8.ValidString(name) ||
				strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
				return nil, wrong("names no inbox: one has 1 to 300 bytes and no control characters")
			}
		}
		if lines = append(lines, l); len(lines) > maxBatchLines {
			return nil, reeve.Errorf(reeve.TooLarge, "a batch has at most %d lines", maxBatchLines)
		}
	}
}

func newInvalidLine(n int, what string) error {
	return &reeve.Error{Code: reeve.Validation, Message: fmt.Sprintf("line %d %s; nothing of the batch was taken", n,
		what), Fields: []reeve.Field{{Path: fmt.Sprintf("/%d", n-1), Message: what}}}
}
