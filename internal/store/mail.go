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

// A mail's id is its inbox's id and 28 bits of its own; an inbox's id is its workspace's number and 16 bits of its own.
// So the mails of a workspace, or of an inbox, are a range of ids.
const (
	mailBits  = 28
	inboxBits = 16
)

// Inbox is a mailbox that was imported.
type Inbox struct {
	ID       int64
	Name     string
	User     string // who brought it in; nobody if that is not known
	Messages int64
}

// span is the range of ids of its mails.
func (i Inbox) span() span { return span{i.ID << mailBits, (i.ID+1)<<mailBits - 1} }

// span is a range of mails' ids, both ends included.
type span struct{ first, last int64 }

// ListInboxes lists a workspace's inboxes by name.
func (s Mail) ListInboxes(ctx context.Context, workspace string) ([]Inbox, error) {
	return all(ctx, s.Snap, scanInbox, `SELECT `+inboxColumns+` FROM inboxes WHERE workspace_id = $1 ORDER BY name`,
		workspace)
}

const inboxColumns = `id, name, user_id, messages`

func scanInbox(r scanner) (v Inbox, err error) {
	defer wrapCorrupt("inboxes", &v.Name, &err)
	return v, r.Scan(&v.ID, &v.Name, &v.User, &v.Messages)
}

// GetInbox gives an inbox by its name.
func (s Mail) GetInbox(ctx context.Context, workspace, name string) (Inbox, error) {
	v, ok, err := one(ctx, s.Snap, scanInbox, `SELECT `+inboxColumns+
		` FROM inboxes WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err == nil && !ok {
		err = notFound("inbox", name)
	}
	return v, err
}

// LockInbox is GetInbox for a transaction that removes mail of it: whoever adds some waits until it is over, and was
// waited for.
func (t MailTx) LockInbox(ctx context.Context, workspace, name string) (Inbox, error) {
	if !t.db.engine.SingleProcess() {
		if err := t.tx.exec(ctx, `UPDATE inboxes SET last = last WHERE workspace_id = $1 AND name = $2`, workspace,
			name); err != nil {
			return Inbox{}, err
		}
	}
	return t.GetInbox(ctx, workspace, name)
}

// MailCount is what became of some mails.
type MailCount struct {
	Added, Replaced, Duplicate int64
	Renamed                    []string // ids that were taken by a mail that says something else
}

// AddMail adds mails to their inboxes. One that is there, word for word, is left alone. One whose id is taken by a mail
// that says something else takes its place if replace says so, and otherwise gets an id of its own: nothing is lost.
// Doing it twice is doing it once. An inbox that is not there is made, for the user.
func (t MailTx) AddMail(ctx context.Context, workspace, user string, mails []reeve.Email,
	replace bool) (n MailCount, err error) {
	byInbox := map[string][]mailRow{}
	for _, e := range mails {
		byInbox[e.Inbox] = append(byInbox[e.Inbox], newMailRow(e))
	}
	names := make([]string, 0, len(byInbox))
	for name := range byInbox {
		names = append(names, name)
	}
	slices.Sort(names) // rows are locked in one order
	for _, name := range names {
		if err := t.addTo(ctx, workspace, user, name, byInbox[name], replace, &n); err != nil {
			return n, err
		}
	}
	return n, nil
}

// addTo adds mails to one inbox.
func (t MailTx) addTo(ctx context.Context, workspace, user, name string, mails []mailRow, replace bool,
	n *MailCount) error {
	id, last, err := t.reserve(ctx, workspace, user, name, len(mails))
	if err != nil {
		return err
	}
	if last >= 1<<mailBits {
		return reeve.Errorf(reeve.TooLarge, "the inbox %q is full", name).Hintf("import into another one")
	}
	kept, err := t.keptMail(ctx, id, mails)
	if err != nil {
		return err
	}
	var fresh [][]any
	at := id<<mailBits + last - int64(len(mails))
	for _, m := range mails {
		at++
		was, there := kept[m.id]
		switch {
		case there && was.hash == m.hash:
			n.Duplicate++
			continue
		case there && replace && was.row != 0:
			n.Replaced++
			kept[m.id] = keptMail{was.row, m.hash}
			if err := t.tx.exec(ctx, `UPDATE emails SET hash = $2, sent_at = $3, folder = $4, subject = $5, sender = $6, recipients = $7, attached = $8, detail = $9, body = $10 WHERE id = $1`,
				was.row, m.hash, m.sent, m.folder, m.subject, m.sender, m.recipients, m.attached, m.detail,
				m.body); err != nil {
				return err
			}
			continue
		case there:
			n.Renamed = append(n.Renamed, m.id)
			m.id += "#" + m.hash[:12]
			if _, twice := kept[m.id]; twice {
				n.Duplicate++
				continue
			}
		}
		kept[m.id] = keptMail{0, m.hash}
		n.Added++
		fresh = append(fresh, []any{at, id, m.id, m.hash, m.sent, m.folder, m.subject, m.sender, m.recipients,
			m.attached, m.detail, m.body})
	}
	if err := t.tx.insert(`INSERT INTO emails (id, inbox_id, message_id, hash, sent_at, folder, subject, sender, recipients, attached, detail, body) VALUES (?)`, fresh,
		t.tx.unheard(ctx)); err != nil {
		return err
	}
	return t.tx.exec(ctx, `UPDATE inboxes SET messages = messages + $2 WHERE id = $1`, id, len(fresh))
}

// reserve takes n numbers for mails of an inbox, which is made if it is not there, and gives its id and the last of
// them. The row stays locked until the transaction ends: whoever adds to the same inbox waits, and then sees what was
// added.
func (t MailTx) reserve(ctx context.Context, workspace, user, name string, n int) (id, last int64, err error) {
	type taken struct{ id, last int64 }
	for { // others may remove it, or make it, while we wait for them
		v, ok, err := one(ctx, t.Snap, func(r scanner) (v taken, err error) { return v, r.Scan(&v.id, &v.last) },
			`UPDATE inboxes SET last = last + $3 WHERE workspace_id = $1 AND name = $2 RETURNING id, last`, workspace,
			name, n)
		if err != nil || ok {
			return v.id, v.last, err
		}
		if err := t.makeInbox(ctx, workspace, user, name); err != nil {
			return 0, 0, err
		}
	}
}

// makeInbox makes an inbox, unless somebody else has just done so.
func (t MailTx) makeInbox(ctx context.Context, workspace, user, name string) error {
	// One at a time: this row is the lock.
	if err := t.tx.exec(ctx, `UPDATE mail_numbers SET last = last WHERE name = 'workspace'`); err != nil {
		return err
	}
	newest, _, err := one(ctx, t.Snap, value[int64], `SELECT coalesce(max(id), 0) FROM inboxes WHERE workspace_id = $1`,
		workspace)
	if err != nil {
		return err
	}
	if newest == 0 {
		number, _, err := one(ctx, t.Snap, value[int64],
			`UPDATE mail_numbers SET last = last + 1 WHERE name = 'workspace' RETURNING last`)
		if err != nil {
			return err
		}
		newest = number << inboxBits
	}
	id := newest + 1
	if id>>inboxBits != newest>>inboxBits {
		return reeve.Errorf(reeve.TooLarge, "the workspace has %d inboxes, and cannot have more", 1<<inboxBits-1)
	}
	return t.tx.exec(ctx, `INSERT INTO inboxes (id, workspace_id, name, user_id, last, messages) VALUES ($1, $2, $3, $4, 0, 0) ON CONFLICT (workspace_id, name) DO NOTHING`, id, workspace, name, user)
}

// keptMail is a mail that is there: where, and what it says. Row 0 means that it came with the same batch.
type keptMail struct {
	row  int64
	hash string
}

// keptMail looks which of these mails are there, under their own id or under one that they were given because theirs
// was taken.
func (t MailTx) keptMail(ctx context.Context, inbox int64, mails []mailRow) (map[string]keptMail, error) {
	kept := map[string]keptMail{}
	var ids []string
	for _, m := range mails {
		ids = append(ids, m.id)
	}
	read := func(ids []string) error {
		_, err := among(ctx, t.Snap, func(r scanner) (v struct{}, err error) {
			var id string
			var k keptMail
			err = r.Scan(&id, &k.row, &k.hash)
			kept[id] = k
			return v, err
		}, `SELECT message_id, id, hash FROM emails WHERE inbox_id = $1 AND message_id IN (?)`, ids, inbox)
		return err
	}
	if err := read(ids); err != nil || len(kept) == 0 {
		return kept, err
	}
	var given []string
	for _, m := range mails {
		if was, ok := kept[m.id]; ok && was.hash != m.hash {
			given = append(given, m.id+"#"+m.hash[:12])
		}
	}
	return kept, read(given)
}

// mailRow is a mail as it is kept.
type mailRow struct {
	id, hash, folder, subject, sender, recipients, attached, detail, body string
	sent                                                                  int64
}

// mailDetail is what nobody searches for.
type mailDetail struct {
	Cc          int                     `json:"cc,omitempty"` // how many of the recipients, from the end, before bcc
	Bcc         int                     `json:"bcc,omitempty"`
	Cut         int64                   `json:"cut,omitempty"`
	Attachments []reeve.EmailAttachment `json:"attachments,omitempty"`
}

const (
	mostMailID   = 500 // bytes; an index entry has a limit
	mostMailLine = 10_000
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
		e.Cut, e.Body = e.Cut+int64(len(e.Body)-end), e.Body[:end]
	}
	m := mailRow{id: reeve.SanitizeText(e.MessageID), hash: reeve.MailHash(e)[:32], folder: line(e.Folder),
		subject: line(e.Subject), sender: line(reeve.FormatAddress(e.Sender, e.SenderName)),
		body: reeve.SanitizeText(e.Body)}
	if m.id == "" {
		m.id = reeve.MailKey(e)
	}
	if len(m.id) > mostMailID {
		m.id = "<" + reeve.Hash([]byte(m.id))[:24] + "@long-message-id>"
	}
	if e.Date != nil {
		m.sent = cmp.Or(reeve.Millis(*e.Date), 1) // 0 means that there is none
	}
	recipients := slices.Concat([]string{}, e.To, e.Cc, e.Bcc)
	for i, r := range recipients {
		recipients[i] = spaced(r)
	}
	m.recipients = reeve.SanitizeText(verbatim(recipients))
	var names []string
	for _, a := range e.Attachments {
		names = append(names, a.Name)
	}
	m.attached = reeve.SanitizeText(strings.Join(names, "\n"))
	m.detail = reeve.SanitizeText(verbatim(mailDetail{Cc: len(e.Cc), Bcc: len(e.Bcc), Cut: e.Cut,
		Attachments: e.Attachments}))
	return m
}

// spaced puts spaces in the place of tabs and other control characters. JSON would write letters for them, which the
// indexes would take for the beginning of a word.
func spaced(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// line is a text that belongs on one line.
func line(s string) string {
	if s = reeve.SanitizeText(s); len(s) > mostMailLine {
		s = strings.ToValidUTF8(s[:mostMailLine], "")
	}
	return s
}

// GetMail gives a mail by its id: of these inboxes, the first that has it.
func (s Mail) GetMail(ctx context.Context, inboxes []Inbox, id string) (reeve.Email, error) {
	for _, box := range inboxes {
		e, ok, err := one(ctx, s.Snap, scanMail, `SELECT `+mailColumns+
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
	e.Date = moment(sent)
	var d mailDetail
	var full []string
	if err := cmp.Or(decode("recipients", recipients, &full), decode("detail", detail, &d)); err != nil {
		return e, err
	}
	e.Attachments, e.Cut = d.Attachments, d.Cut
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

// RemoveMail removes some mails of an inbox that is held and gives how many; when there are none left it removes the
// inbox.
func (t MailTx) RemoveMail(ctx context.Context, box Inbox, most int) (int64, error) {
	n, err := t.tx.affect(ctx,
		`DELETE FROM emails WHERE id IN (SELECT id FROM emails WHERE inbox_id = $1 ORDER BY id LIMIT $2)`, box.ID, most)
	if err != nil {
		return n, err
	}
	if n == 0 {
		return 0, t.tx.exec(ctx, `DELETE FROM inboxes WHERE id = $1`, box.ID)
	}
	return n, t.tx.exec(ctx, `UPDATE inboxes SET messages = messages - $2 WHERE id = $1`, box.ID, n)
}
