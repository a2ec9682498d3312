package mailbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reeve"
)

// names are what columns and keys are called, by what they hold.
var names = map[string]string{
	"message_id": "id", "messageid": "id", "id": "id", "message-id": "id",
	"inbox": "inbox", "mailbox": "inbox", "inbox_id": "inbox", "user": "inbox", "owner": "inbox", "account": "inbox",
	"folder": "folder", "label": "folder", "labels": "folder",
	"subject": "subject", "title": "subject",
	"from": "from", "sender": "from", "from_address": "from", "sender_email": "from", "from_email": "from",
	"from_name": "name", "sender_name": "name",
	"to": "to", "recipients": "to", "recipient": "to", "to_address": "to", "to_addresses": "to",
	"cc": "cc", "cc_addresses": "cc", "bcc": "bcc", "bcc_addresses": "bcc",
	"date": "date", "sent_at": "date", "sent": "date", "timestamp": "date", "datetime": "date",
	"body": "body", "text": "body", "content": "body", "plain": "body", "body_text": "body",
	"html": "html", "body_html": "html",
	"message": "message", "raw": "message", "rfc822": "message", "eml": "message",
	"file": "file", "path": "file", "filename": "file",
	"attachments": "attachments",
}

// meaning is what a column or key holds.
func meaning(column string) string {
	return names[strings.ToLower(strings.Trim(strings.TrimPrefix(column, "\ufeff"), " \t\""))]
}

// record is a mail in fields.
type record struct {
	text        map[string]string   // by meaning
	list        map[string][]string // to, cc and bcc where they were lists
	attachments []reeve.EmailAttachment
	notes       []string
}

// email makes a mail of a record: of the message it holds whole, or of its fields.
func (f *file) email(r record) (e reeve.Email, notes []string, err error) {
	raw := r.text["message"]
	whole := raw != "" && (r.text["body"] == "" || r.text["file"] != "")
	if !whole && r.text["body"] == "" {
		r.text["body"] = raw
	}
	l := &letter{notes: r.notes}
	if whole {
		var more []string
		if e, more, err = Message(strings.NewReader(raw)); err != nil && r.text["subject"]+r.text["from"] == "" {
			return e, more, err
		}
		l.notes = append(l.notes, more...)
		if err != nil { // the other columns are a header
			r.text["body"], whole = raw, false
		}
	}
	if !whole {
		if r.text["subject"]+r.text["from"]+r.text["body"]+r.text["html"]+r.text["id"] == "" && len(r.list["to"]) == 0 {
			return e, nil, errors.New("it has no subject, sender or text")
		}
		e = l.fields(r)
	}
	e.Inbox, e.Folder = r.text["inbox"], r.text["folder"]
	folders := f.folders
	if name := r.text["file"]; name != "" { // dasovich-j/sent/1.
		if parts := strings.Split(strings.TrimPrefix(name, "maildir/"), "/"); len(parts) > 1 {
			if e.Inbox == "" {
				e.Inbox = parts[0]
			}
			folders = parts[1 : len(parts)-1]
		}
	}
	f.address(&e, folders)
	return e, l.notes, nil
}

// fields makes a mail of its columns.
func (l *letter) fields(r record) reeve.Email {
	e := &l.email
	e.MessageID, e.Subject, e.Body, e.Attachments = strings.TrimSpace(r.text["id"]), l.words(r.text["subject"]),
		r.text["body"], r.attachments
	if e.MessageID == "" {
		l.note("it has no Message-ID, and was given one")
	}
	if from := l.addresses(r.text["from"]); len(from) > 0 {
		e.Sender, e.SenderName = reeve.ParseAddress(from[0])
	}
	if e.SenderName == "" {
		e.SenderName = r.text["name"]
	}
	for name, to := range map[string]*[]string{"to": &e.To, "cc": &e.Cc, "bcc": &e.Bcc} {
		if list, ok := r.list[name]; ok {
			*to = list
			continue
		}
		text := strings.TrimSpace(r.text[name])
		if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), to) == nil {
			continue
		}
		*to = l.addresses(strings.ReplaceAll(text, ";", ","))
	}
	if e.Body == "" && r.text["html"] != "" {
		e.Body = htmlText(r.text["html"])
	}
	e.Date = l.date(r.text["date"], "")
	return *e
}

// columns reads the head of a CSV file.
func columns(head []string) ([]string, error) {
	var known []string
	out := make([]string, len(head))
	for i, c := range head {
		if out[i] = meaning(c); out[i] != "" {
			known = append(known, out[i])
		}
	}
	has := func(name string) bool { return strings.Contains(" "+strings.Join(known, " ")+" ", " "+name+" ") }
	if !has("message") && !has("body") && !has("subject") {
		return nil, fmt.Errorf("its first line names no column of mail: it has %s, and should have message, or "+
			"subject, from, to, date and body", reeve.Truncate(strings.Join(head, ", "), 200))
	}
	return out, nil
}
