package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reeve"
)

// A mail's id consists of its inbox's id and 28 bits. An inbox's id consists of its workspace's number and 16 bits. The
// mails of a workspace or an inbox are therefore a range of ids.
const (
	mailBits  = 28
	inboxBits = 16
)

// Inbox is an imported mailbox.
type Inbox struct {
	ID       int64
	Name     string
	User     string // the user who imported it; empty if unknown
	Messages int64
}

// idRange returns the range of the ids of the inbox's mails.
func (i Inbox) idRange() idRange { return idRange{i.ID << mailBits, (i.ID+1)<<mailBits - 1} }

// idRange is a range of mail ids, including both ends.
type idRange struct{ first, last int64 }

// ListInboxes returns a workspace's inboxes, ordered by name.
func (s Mail) ListInboxes(ctx context.Context, workspace string) ([]Inbox, error) {
	return queryAll(ctx, s.Snap, scanInbox, `SELECT `+inboxColumns+` FROM inboxes WHERE workspace_id = $1
		ORDER BY name`,
		workspace)
}

const inboxColumns = `id, name, user_id, messages`

func scanInbox(r scanner) (v Inbox, err error) {
	defer wrapCorrupt("inboxes", &v.Name, &err)
	return v, r.Scan(&v.ID, &v.Name, &v.User, &v.Messages)
}

// GetInbox returns an inbox by its name.
func (s Mail) GetInbox(ctx context.Context, workspace, name string) (Inbox, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanInbox, `SELECT `+inboxColumns+
		` FROM inboxes WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err == nil && !ok {
		err = notFound("inbox", name)
	}
	return v, err
}

// LockInbox is like GetInbox, but locks the inbox, so that no mail is added until the transaction ends.
func (t MailTx) LockInbox(ctx context.Context, workspace, name string) (Inbox, error) {
	if !t.db.engine.SingleProcess() {
		if err := t.tx.exec(ctx, `UPDATE inboxes SET last = last WHERE workspace_id = $1 AND name = $2`, workspace,
			name); err != nil {
			return Inbox{}, err
		}
	}
	return t.GetInbox(ctx, workspace, name)
}

// MailCount counts the results of adding mails.
type MailCount struct {
	Added, Replaced, Duplicate int64
	Renamed                    []string // ids of mails that got a new id, because another mail has the id
}

// AddMail adds mails to their inboxes and creates missing inboxes for the user. It skips a mail that is stored already
// with the same content. If another mail has the same id, the new mail replaces it if replace is true, and otherwise
// gets a new id. AddMail is idempotent.
func (t MailTx) AddMail(ctx context.Context, workspace, user string, mails []reeve.Email,
	replace bool) (n MailCount, err error) {
	t.tx.Announce(workspace, TopicMail, "", "")
	byInbox := map[string][]mailRow{}
	for _, e := range mails {
		byInbox[e.Inbox] = append(byInbox[e.Inbox], newMailRow(e))
	}
	names := make([]string, 0, len(byInbox))
	for name := range byInbox {
		names = append(names, name)
	}
	slices.Sort(names) // rows are locked in one order to avoid deadlocks
	for _, name := range names {
		if err := t.addToInbox(ctx, workspace, user, name, byInbox[name], replace, &n); err != nil {
			return n, err
		}
	}
	return n, nil
}

// addToInbox adds mails to one inbox.
func (t MailTx) addToInbox(ctx context.Context, workspace, user, name string, mails []mailRow, replace bool,
	n *MailCount) error {
	id, last, err := t.reserveIDs(ctx, workspace, user, name, len(mails))
	if err != nil {
		return err
	}
	if last >= 1<<mailBits {
		return reeve.Errorf(reeve.TooLarge, "inbox %q is full", name).Hintf("import into another inbox")
	}
	kept, err := t.findStored(ctx, id, mails)
	if err != nil {
		return err
	}
	var fresh [][]any
	at := id<<mailBits + last - int64(len(mails))
	for _, m := range mails {
		at++
		was, exists := kept[m.id]
		switch {
		case exists && was.hash == m.hash:
			n.Duplicate++
			continue
		case exists && replace && was.row != 0:
			n.Replaced++
			kept[m.id] = storedMail{was.row, m.hash}
			if err := t.tx.exec(ctx, `UPDATE emails SET hash = $2, sent_at = $3, folder = $4, subject = $5, sender = $6,
				recipients = $7, attached = $8, detail = $9, body = $10 WHERE id = $1`,
				was.row, m.hash, m.sent, m.folder, m.subject, m.sender, m.recipients, m.attached, m.detail,
				m.body); err != nil {
				return err
			}
			continue
		case exists:
			n.Renamed = append(n.Renamed, m.id)
			m.id += "#" + m.hash[:12]
			if _, twice := kept[m.id]; twice {
				n.Duplicate++
				continue
			}
		}
		kept[m.id] = storedMail{0, m.hash}
		n.Added++
		fresh = append(fresh, []any{at, id, m.id, m.hash, m.sent, m.folder, m.subject, m.sender, m.recipients,
			m.attached, m.detail, m.body})
	}
	if err := t.tx.insertRows(`INSERT INTO emails (id, inbox_id, message_id, hash, sent_at, folder, subject, sender,
		recipients, attached, detail, body) VALUES (?)`, fresh,
		t.tx.execFunc(ctx)); err != nil {
		return err
	}
	return t.tx.exec(ctx, `UPDATE inboxes SET messages = messages + $2 WHERE id = $1`, id, len(fresh))
}

// reserveIDs reserves n ids in an inbox, which it creates if needed. It returns the inbox's id and the last reserved
// number. The inbox stays locked until the transaction ends, so that a concurrent import into the same inbox waits and
// then sees the added mails.
func (t MailTx) reserveIDs(ctx context.Context, workspace, user, name string, n int) (id, last int64, err error) {
	type reserved struct{ id, last int64 }
	for { // another transaction may delete or create the inbox meanwhile
		v, ok, err := queryOne(ctx, t.Snap, func(r scanner) (v reserved, err error) {
			return v, r.Scan(&v.id, &v.last)
		},
			`UPDATE inboxes SET last = last + $3 WHERE workspace_id = $1 AND name = $2 RETURNING id, last`, workspace,
			name, n)
		if err != nil || ok {
			return v.id, v.last, err
		}
		if err := t.createInbox(ctx, workspace, user, name); err != nil {
			return 0, 0, err
		}
	}
}

// createInbox creates an inbox unless another transaction has created it.
func (t MailTx) createInbox(ctx context.Context, workspace, user, name string) error {
	// This row is the lock: inboxes are created one at a time.
	if err := t.tx.exec(ctx, `UPDATE mail_numbers SET last = last WHERE name = 'workspace'`); err != nil {
		return err
	}
	newest, _, err := queryOne(ctx, t.Snap, scanValue[int64], `SELECT coalesce(max(id), 0) FROM inboxes
		WHERE workspace_id = $1`,
		workspace)
	if err != nil {
		return err
	}
	if newest == 0 {
		number, _, err := queryOne(ctx, t.Snap, scanValue[int64],
			`UPDATE mail_numbers SET last = last + 1 WHERE name = 'workspace' RETURNING last`)
		if err != nil {
			return err
		}
		newest = number << inboxBits
	}
	id := newest + 1
	if id>>inboxBits != newest>>inboxBits {
		return reeve.Errorf(reeve.TooLarge, "workspace has %d inboxes, which is the maximum", 1<<inboxBits-1)
	}
	return t.tx.exec(ctx, `INSERT INTO inboxes (id, workspace_id, name, user_id, last, messages) VALUES ($1, $2, $3, $4,
		0, 0) ON CONFLICT (workspace_id, name) DO NOTHING`, id, workspace, name, user)
}

// storedMail is the row and the hash of a stored mail. Row 0 means that it is part of the same batch.
type storedMail struct {
	row  int64
	hash string
}

// findStored returns which of the mails are stored, by id. It also looks for the new ids of mails whose ids belong to
// other mails.
func (t MailTx) findStored(ctx context.Context, inbox int64, mails []mailRow) (map[string]storedMail, error) {
	kept := map[string]storedMail{}
	var ids []string
	for _, m := range mails {
		ids = append(ids, m.id)
	}
	read := func(ids []string) error {
		_, err := queryIn(ctx, t.Snap, func(r scanner) (v struct{}, err error) {
			var id string
			var k storedMail
			err = r.Scan(&id, &k.row, &k.hash)
			kept[id] = k
			return v, err
		}, `SELECT message_id, id, hash FROM emails WHERE inbox_id = $1 AND message_id IN (?)`, ids, inbox)
		return err
	}
	if err := read(ids); err != nil || len(kept) == 0 {
		return kept, err
	}
	var renamed []string
	for _, m := range mails {
		if was, ok := kept[m.id]; ok && was.hash != m.hash {
			renamed = append(renamed, m.id+"#"+m.hash[:12])
		}
	}
	return kept, read(renamed)
}

// mailRow is a mail in the form in which it is stored.
type mailRow struct {
	id, hash, folder, subject, sender, recipients, attached, detail, body string
	sent                                                                  int64
}

// mailDetail holds the parts of a mail that are not searched.
type mailDetail struct {
	// the number of cc recipients, which come before those in bcc
	Cc          int                     `json:"cc,omitempty"`
	Bcc         int                     `json:"bcc,omitempty"`
	Cut         int64                   `json:"cut,omitempty"`
	Attachments []reeve.EmailAttachment `json:"attachments,omitempty"`
}

const (
	maxMailID   = 500 // bytes; index entries are limited
	maxMailLine = 10_000
)

func newMailRow(e reeve.Email) mailRow {
	if len(e.To)+len(e.Cc)+len(e.Bcc) == 0 {
		e.To = e.Recipients
	}
	e.Recipients = nil
	if len(e.Body) > reeve.MaxMailText {
		end := reeve.MaxMailText
		for end > 0 && !utf8.RuneStart(e.Body[end]) {
			end--
		}
		e.TruncatedBytes, e.Body = e.TruncatedBytes+int64(len(e.Body)-end), e.Body[:end]
	}
	m := mailRow{id: reeve.SanitizeText(e.MessageID), hash: reeve.MailHash(e)[:32], folder: truncateLine(e.Folder),
		subject: truncateLine(e.Subject), sender: truncateLine(reeve.FormatAddress(e.Sender, e.SenderName)),
		body: reeve.SanitizeText(e.Body)}
	if m.id == "" {
		m.id = reeve.MailKey(e)
	}
	if len(m.id) > maxMailID {
		m.id = "<" + reeve.Hash([]byte(m.id))[:24] + "@long-message-id>"
	}
	if e.Date != nil {
		m.sent = cmp.Or(reeve.Millis(*e.Date), 1) // 0 means no date
	}
	recipients := slices.Concat([]string{}, e.To, e.Cc, e.Bcc)
	for i, r := range recipients {
		recipients[i] = replaceControls(r)
	}
	m.recipients = reeve.SanitizeText(encodeJSONUnescaped(recipients))
	var names []string
	for _, a := range e.Attachments {
		names = append(names, a.Name)
	}
	m.attached = reeve.SanitizeText(strings.Join(names, "\n"))
	m.detail = reeve.SanitizeText(encodeJSONUnescaped(mailDetail{Cc: len(e.Cc), Bcc: len(e.Bcc), Cut: e.TruncatedBytes,
		Attachments: e.Attachments}))
	return m
}

// replaceControls replaces control characters by spaces. JSON would escape them with letters, which the full-text index
// would take for the beginning of a word.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// truncateLine sanitizes a text and truncates it to maxMailLine bytes.
func truncateLine(s string) string {
	if s = reeve.SanitizeText(s); len(s) > maxMailLine {
		s = strings.ToValidUTF8(s[:maxMailLine], "")
	}
	return s
}

// GetMail returns a mail by its id, from the first of the inboxes that has it.
func (s Mail) GetMail(ctx context.Context, inboxes []Inbox, id string) (reeve.Email, error) {
	for _, box := range inboxes {
		e, ok, err := queryOne(ctx, s.Snap, scanMail, `SELECT `+mailColumns+
			` FROM emails WHERE inbox_id = $1 AND message_id = $2`, box.ID, reeve.SanitizeText(id))
		if err != nil || ok {
			e.Inbox = box.Name
			return e, err
		}
	}
	return reeve.Email{}, notFound("email", id)
}

const mailColumns = `message_id, folder, subject, sender, recipients, detail, sent_at, body`

func scanMail(r scanner) (e reeve.Email, err error) {
	defer wrapCorrupt("emails", &e.MessageID, &err)
	var recipients, detail string
	var sent int64
	if err := r.Scan(&e.MessageID, &e.Folder, &e.Subject, &e.Sender, &recipients, &detail, &sent, &e.Body); err != nil {
		return e, err
	}
	e.Sender, e.SenderName = reeve.ParseAddress(e.Sender)
	e.Date = mailTime(sent)
	var d mailDetail
	var full []string
	if err := cmp.Or(decodeJSON("recipients", recipients, &full), decodeJSON("detail", detail, &d)); err != nil {
		return e, err
	}
	e.Attachments, e.TruncatedBytes = d.Attachments, d.Cut
	cc, bcc := len(full)-d.Cc-d.Bcc, len(full)-d.Bcc
	e.To, e.Cc, e.Bcc = full[:cc], full[cc:bcc], full[bcc:]
	e.Recipients = make([]string, 0, len(full))
	for _, f := range full {
		if a, _ := reeve.ParseAddress(f); !slices.Contains(e.Recipients, a) {
			e.Recipients = append(e.Recipients, a)
		}
	}
	return e, nil
}

// DeleteMail deletes up to limit mails of a locked inbox and returns their number. If there is none left, it deletes
// the inbox.
func (t MailTx) DeleteMail(ctx context.Context, box Inbox, limit int) (int64, error) {
	n, err := t.tx.execCount(ctx,
		`DELETE FROM emails WHERE id IN (SELECT id FROM emails WHERE inbox_id = $1 ORDER BY id LIMIT $2)`, box.ID,
		limit)
	if err != nil {
		return n, err
	}
	if n == 0 {
		return 0, t.tx.exec(ctx, `DELETE FROM inboxes WHERE id = $1`, box.ID)
	}
	return n, t.tx.exec(ctx, `UPDATE inboxes SET messages = messages - $2 WHERE id = $1`, box.ID, n)
}
