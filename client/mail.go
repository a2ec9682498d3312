package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/notify"
)

// Inboxes lists the mailboxes that were imported.
func (s MailService) Inboxes(ctx context.Context) (api.MailboxList, error) {
	return get[api.MailboxList](ctx, s.conn, path("mail", "inboxes"), nil)
}

// RemoveInbox removes a mailbox and all its mail.
func (s MailService) RemoveInbox(ctx context.Context, name string) error {
	return s.conn.remove(ctx, path("mail", "inboxes", name))
}

// Imports lists imports, newest first.
func (s MailService) Imports(ctx context.Context) (api.MailImportList, error) {
	return get[api.MailImportList](ctx, s.conn, path("mail", "imports"), nil)
}

// Import returns an import.
func (s MailService) Import(ctx context.Context, id string) (reeve.MailImport, error) {
	return get[reeve.MailImport](ctx, s.conn, path("mail", "imports", id), nil)
}

// BeginImport begins an import of mail, or takes up one of the same source that was interrupted: its position says
// where to go on.
func (s MailService) BeginImport(ctx context.Context, r reeve.MailImportRequest) (out reeve.MailImport, err error) {
	begin := func() error {
		out, err = post[reeve.MailImport](ctx, s.conn, path("mail", "imports"), r)
		return err
	}
	// there was a server; if it began one, that one is taken up
	if err = begin(); reeve.CodeOf(err) == reeve.UnknownOutcome {
		err = RetryUnavailable(ctx, begin)
	}
	return out, err
}

// AddBatch adds what was read between two positions, a [reeve.MailLine] on each line. It is taken once, however often
// it is sent; so a server that goes away is waited for, for a minute.
func (s MailService) AddBatch(ctx context.Context, id, after, position string,
	lines []byte) (out reeve.MailImport, err error) {
	err = RetryUnavailable(ctx, func() error {
		r := &request{method: http.MethodPost, path: path("mail", "imports", id, "batches"),
			query: url.Values{"after": {after}, "position": {position}}, lines: lines}
		if lines == nil {
			r.lines = []byte{}
		}
		return s.conn.do(ctx, r, &out)
	})
	return out, err
}

// FinishImport ends an import.
func (s MailService) FinishImport(ctx context.Context, id, position string) (out reeve.MailImport, err error) {
	err = RetryUnavailable(ctx, func() error {
		return s.conn.do(ctx, &request{method: http.MethodPost, path: path("mail", "imports", id, "finish"),
			query: url.Values{"position": {position}}}, &out)
	})
	return out, err
}

// RetryUnavailable calls ask again, for up to a minute, while it fails because the server is unavailable, too busy or
// slow, or because the answer was lost. Use it only for requests that may be repeated.
func RetryUnavailable(ctx context.Context, ask func() error) error {
	began := reeve.Monotonic()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := ask()
		switch reeve.CodeOf(err) {
		case reeve.Unavailable, reeve.UnknownOutcome, reeve.RateLimited, reeve.Timeout:
		default:
			return err
		}
		if ctx.Err() != nil || reeve.Since(began) > patience {
			return err
		}
		notify.Sleep(ctx, pause)
	}
}
