package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/notify"
)

// Inboxes lists the imported mailboxes.
func (s MailService) Inboxes(ctx context.Context) (api.MailboxList, error) {
	return get[api.MailboxList](ctx, s.conn, path("mail", "inboxes"), nil)
}

// RemoveInbox deletes a mailbox and all its mail.
func (s MailService) RemoveInbox(ctx context.Context, name string) error {
	return s.conn.delete(ctx, path("mail", "inboxes", name))
}

// Search searches imported mail. The query has the syntax of the tool email_search.
func (s MailService) Search(ctx context.Context, q reeve.MailSearch) (reeve.MailPage, error) {
	v := url.Values{"query": {q.Query}, "inbox": {q.Inbox}, "sender": {q.Sender}, "recipient": {q.Recipient},
		"date_from": {q.From}, "date_to": {q.To}, "cursor": {q.Cursor}}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[reeve.MailPage](ctx, s.conn, path("mail", "search"), v)
}

// Get returns a mail. The inbox matters only if several contain it.
func (s MailService) Get(ctx context.Context, id, inbox string) (reeve.Email, error) {
	return get[reeve.Email](ctx, s.conn, path("mail", "message"), url.Values{"message_id": {id}, "inbox": {inbox}})
}

// Imports lists imports, newest first.
func (s MailService) Imports(ctx context.Context) (api.MailImportList, error) {
	return get[api.MailImportList](ctx, s.conn, path("mail", "imports"), nil)
}

// Import returns an import.
func (s MailService) Import(ctx context.Context, id string) (reeve.MailImport, error) {
	return get[reeve.MailImport](ctx, s.conn, path("mail", "imports", id), nil)
}

// BeginImport starts an import of mail, or resumes an interrupted import of the same source. Its position says where to
// resume.
func (s MailService) BeginImport(ctx context.Context, r reeve.MailImportRequest) (out reeve.MailImport, err error) {
	begin := func() error {
		out, err = post[reeve.MailImport](ctx, s.conn, path("mail", "imports"), r)
		return err
	}
	// The server may have started the import before the connection was lost. Then the retry resumes that import.
	if err = begin(); reeve.CodeOf(err) == reeve.UnknownOutcome {
		err = RetryTransient(ctx, begin)
	}
	return out, err
}

// AddBatch adds the messages between two positions, one [reeve.MailLine] per line. A repeated batch has no effect, so
// AddBatch retries for a minute while the server is unreachable.
func (s MailService) AddBatch(ctx context.Context, id, after, position string,
	lines []byte) (out reeve.MailImport, err error) {
	err = RetryTransient(ctx, func() error {
		r := &request{method: http.MethodPost, path: path("mail", "imports", id, "batches"),
			query: url.Values{"after": {after}, "position": {position}}, lines: lines}
		if lines == nil {
			r.lines = []byte{}
		}
		return s.conn.do(ctx, r, &out)
	})
	return out, err
}

// FinishImport completes an import.
func (s MailService) FinishImport(ctx context.Context, id, position string) (out reeve.MailImport, err error) {
	err = RetryTransient(ctx, func() error {
		return s.conn.do(ctx, &request{method: http.MethodPost, path: path("mail", "imports", id, "finish"),
			query: url.Values{"position": {position}}}, &out)
	})
	return out, err
}

// RetryTransient calls f until it succeeds or fails permanently. It retries for a minute. f must be safe to repeat.
func RetryTransient(ctx context.Context, f func() error) error {
	began := reeve.Monotonic()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := f()
		switch reeve.CodeOf(err) {
		case reeve.Unavailable, reeve.UnknownOutcome, reeve.RateLimited, reeve.Timeout:
		default:
			return err
		}
		if ctx.Err() != nil || reeve.Since(began) > maxDowntime {
			return err
		}
		notify.Sleep(ctx, pause)
	}
}
