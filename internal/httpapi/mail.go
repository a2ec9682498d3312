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
	batchesPath   = "/api/mail/imports/{id}/batches"
	batchLimit    = 16 << 20 // bytes
	maxBatchLines = 2000
	removeChunk   = 1000 // messages deleted in one transaction, which keeps the transaction short
)

// MailReader searches and reads imported mail. Search removes secrets; Mail does not.
type MailReader interface {
	Search(ctx context.Context, inv *reeve.Invocation, q reeve.MailSearch) (reeve.MailPage, error)
	Mail(ctx context.Context, workspace, id, inbox string) (reeve.Email, error)
}

// registerMailRoutes registers the routes of mail and its imports.
func registerMailRoutes(router huma.API, s *services) {
	const (
		get, post, del     = http.MethodGet, http.MethodPost, http.MethodDelete
		viewer, member     = reeve.Viewer, reeve.Member
		created, noContent = http.StatusCreated, http.StatusNoContent
		tag, at            = "mail", "/api/mail"
	)
	mail := &mailHandlers{db: s.DB}
	reader := &mailReadHandlers{db: s.DB, gate: s.Gate, mail: s.Mail}
	handle(router, route{get, at + "/search", "searchMail", "Search imported mail", tag, viewer, 0}, reader.search)
	handle(router, route{get, at + "/message", "getMail", "Get a mail by its message id", tag, viewer, 0}, reader.get)
	handle(router, route{get, at + "/inboxes", "listInboxes", "List imported mailboxes", tag, viewer, 0},
		mail.listInboxes)
	handle(router, route{del, at + "/inboxes/{name}", "deleteInbox", "Delete a mailbox and all its mail", tag, member,
		noContent}, mail.removeInbox)
	handle(router, route{get, at + "/imports", "listImports", "List imports, newest first", tag, viewer, 0},
		mail.listImports)
	handle(router, route{post, at + "/imports", "startImport", "Begin an import, or resume an interrupted one",
		tag, member, created}, mail.beginImport)
	handle(router, route{get, at + "/imports/{id}", "getImport",
		"Get an import, its progress and its bad messages", tag, viewer, 0}, mail.getImport)
	handle(router, route{post, batchesPath, "addImportBatch", "Add messages to an import", tag, member, 0},
		mail.addBatch)
	handle(router, route{post, at + "/imports/{id}/finish", "finishImport", "Finish an import", tag, member, 0},
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
	ctx, cancel := detachWithTimeout(ctx) // a client that disconnects must not leave the mailbox half deleted
	defer cancel()
	for {
		var n int64
		if err := h.db.Update(ctx, func(tx *store.Tx) error {
			box, err := tx.Mail().LockInbox(ctx, who.Workspace, in.Name)
			if err != nil {
				return err
			}
			if err := checkImporter(who, box.User, "delete the mailbox"); err != nil {
				return err
			}
			n, err = tx.Mail().DeleteMail(ctx, box, removeChunk)
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
		return nil, reeve.InvalidField("/source", "is blank", "the source of the mail, such as host and path")
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

// Position is the progress of an import. Only the importing client interprets it.
type Position struct {
	Position string `query:"position" required:"true" minLength:"1" maxLength:"4096" doc:"Position after this batch"`
}

func (h *mailHandlers) addBatch(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Position
	After   string `query:"after" maxLength:"4096" doc:"Import position before this batch; empty for the first batch"`
	Key     string `header:"Idempotency-Key" maxLength:"255" doc:"Ignored; a batch is added once per position"`
	RawBody []byte `contentType:"application/x-ndjson" doc:"Per line {\"email\": ...} or {\"place\": ..., \"bad\": reason}"`
}) (*body[reeve.MailImport], error) {
	if in.After == in.Position.Position {
		return nil, reeve.InvalidField("query/position", "is the same as after",
			"a new position; each position is used once")
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
		out.Body, err = tx.Mail().AddBatch(ctx, who.Workspace, v.ID, store.MailBatch{After: in.After,
			Position: in.Position.Position, Hash: reeve.Hash(in.RawBody), Lines: lines})
		return err
	})
}

// getWritableImport returns an import. It fails with FORBIDDEN if the caller may not continue the import.
func getWritableImport(ctx context.Context, tx *store.Tx, who reeve.Principal, id string) (reeve.MailImport, error) {
	v, err := tx.Mail().GetImport(ctx, who.Workspace, id)
	if err != nil {
		return v, err
	}
	return v, checkImporter(who, v.User, "continue the import")
}

// checkReplace returns an error unless the caller may replace messages of every mailbox that lines names. Adding
// messages to a mailbox needs no such check.
func checkReplace(ctx context.Context, tx *store.Tx, who reeve.Principal, lines []reeve.MailLine) error {
	checked := map[string]bool{}
	for _, l := range lines {
		if l.Email == nil || checked[l.Email.Inbox] {
			continue
		}
		checked[l.Email.Inbox] = true
		box, err := tx.Mail().GetInbox(ctx, who.Workspace, l.Email.Inbox)
		if err == nil {
			err = checkImporter(who, box.User, "replace messages of the mailbox "+box.Name)
		}
		if err != nil && reeve.CodeOf(err) != reeve.NotFound {
			return err
		}
	}
	return nil
}

// checkImporter returns an error unless the caller is an owner or the user who imported the mail.
func checkImporter(who reeve.Principal, user, what string) error {
	if who.Role == reeve.Owner || user != "" && user == callerID(who) {
		return nil
	}
	return reeve.Errorf(reeve.Forbidden, "only an owner or the user who imported the mail may %s", what).
		Hintf("use that user's token or an owner's token")
}

func (h *mailHandlers) finishImport(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Position string `query:"position" maxLength:"4096" doc:"Position of the last batch; empty without mail"`
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

// parseMailLines decodes a batch. Its error names the first invalid line by number.
func parseMailLines(b []byte) (lines []reeve.MailLine, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	for {
		rest := bytes.TrimLeft(b[dec.InputOffset():], " \t\r\n")
		if len(rest) == 0 {
			return lines, nil
		}
		invalid := func(what string) error {
			return newInvalidLine(bytes.Count(b[:len(b)-len(rest)], []byte("\n"))+1, what)
		}
		var l reeve.MailLine
		if err := dec.Decode(&l); err != nil {
			return nil, invalid("is not a message: " + describeDecodeError(err).Error())
		}
		if (l.Email == nil) == (l.Error == "") {
			return nil, invalid("must have either email or bad")
		}
		if l.Email != nil {
			if name := l.Email.Inbox; name == "" || len(name) > 300 || !utf8.ValidString(name) ||
				strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
				return nil, invalid("has no valid inbox; use 1 to 300 bytes without control characters")
			}
		}
		if lines = append(lines, l); len(lines) > maxBatchLines {
			return nil, reeve.Errorf(reeve.TooLarge, "the batch has more than %d lines", maxBatchLines).
				Hintf("send smaller batches")
		}
	}
}

func newInvalidLine(n int, what string) error {
	return &reeve.Error{Code: reeve.Validation, Message: fmt.Sprintf("line %d %s; no line of the batch was added", n,
		what), Fields: []reeve.Field{{Path: fmt.Sprintf("/%d", n-1), Message: what}}}
}
