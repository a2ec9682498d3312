package httpapi

import (
	"context"
	"errors"
	"slices"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// mailReadHandlers searches and reads imported mail for people. Agents use tools.
type mailReadHandlers struct {
	db   *store.DB
	gate *gate.Gate
	mail MailReader
}

func (h *mailReadHandlers) search(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Query     string `query:"query" maxLength:"4000" doc:"As for email_search; see docs/mail.md"`
	Inbox     string `query:"inbox" maxLength:"300" doc:"Name or address of a mailbox. Default: all mailboxes"`
	Sender    string `query:"sender" maxLength:"300" doc:"Address or name of the sender, or words of it"`
	Recipient string `query:"recipient" maxLength:"300" doc:"Address or name of a recipient, or words of it"`
	From      string `query:"date_from" maxLength:"64" doc:"Sent on this day or at this time or later"`
	To        string `query:"date_to" maxLength:"64" doc:"Sent on this day or before this time"`
	Limit     int    `query:"limit" minimum:"1" maximum:"50" default:"20"`
	Cursor    string `query:"cursor" maxLength:"256" doc:"next_cursor of the previous page; keep all else the same"`
}) (*body[reeve.MailPage], error) {
	inv, hasMail, err := h.invocation(ctx, who)
	if err != nil || !hasMail {
		return &body[reeve.MailPage]{reeve.MailPage{Emails: []reeve.MailHit{}}}, err
	}
	page, err := h.mail.Search(ctx, inv, reeve.MailSearch{Query: in.Query, Inbox: in.Inbox, Sender: in.Sender,
		Recipient: in.Recipient, From: in.From, To: in.To, Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return nil, queryError(err)
	}
	for i := range page.Emails { // the search redacts the snippets, and an id without its secrets finds nothing
		e := &page.Emails[i]
		e.Subject, e.Sender = inv.Redactor.Text(e.Subject), inv.Redactor.Text(e.Sender)
	}
	return &body[reeve.MailPage]{page}, nil
}

// queryError returns an error whose fields are parameters of the query, from one whose fields are arguments.
func queryError(err error) error {
	var e *reeve.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	c := *e
	c.Fields = slices.Clone(e.Fields)
	for i := range c.Fields {
		c.Fields[i].Path = "query" + c.Fields[i].Path
	}
	return &c
}

func (h *mailReadHandlers) get(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	ID    string `query:"message_id" required:"true" minLength:"1" maxLength:"2000"`
	Inbox string `query:"inbox" maxLength:"300" doc:"Mailbox, if several contain the mail. Default: the first one"`
}) (*body[reeve.Email], error) {
	inv, hasMail, err := h.invocation(ctx, who)
	if err != nil {
		return nil, err
	}
	if !hasMail {
		return nil, reeve.Errorf(reeve.NotFound, "email %q not found", in.ID)
	}
	e, err := h.mail.Mail(ctx, who.Workspace, in.ID, in.Inbox)
	if err != nil {
		return nil, err
	}
	for _, text := range []*string{&e.Subject, &e.Body, &e.Sender, &e.SenderName} {
		*text = inv.Redactor.Text(*text)
	}
	for _, list := range [][]string{e.Recipients, e.To, e.Cc, e.Bcc} {
		for i := range list {
			list[i] = inv.Redactor.Text(list[i])
		}
	}
	for i := range e.Attachments {
		e.Attachments[i].Name = inv.Redactor.Text(e.Attachments[i].Name)
	}
	return &body[reeve.Email]{e}, nil
}

// invocation returns an invocation that removes the workspace's secrets. It reports whether the workspace has mail.
func (h *mailReadHandlers) invocation(ctx context.Context, who reeve.Principal) (inv *reeve.Invocation, hasMail bool,
	err error) {
	return inv, hasMail, h.db.View(ctx, func(snap *store.Snap) error {
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		inv = redaction.Invocation()
		inboxes, err := snap.Mail().ListInboxes(ctx, who.Workspace)
		hasMail = len(inboxes) > 0
		return err
	})
}
