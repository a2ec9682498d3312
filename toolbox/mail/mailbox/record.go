package mailbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reeve"
)

// columnKinds maps the names of columns and keys to what they contain.
var columnKinds = map[string]string{
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

// columnKind returns what a column or key contains, or "" if it is unknown.
func columnKind(column string) string {
	return columnKinds[strings.ToLower(strings.Trim(strings.TrimPrefix(column, "\ufeff"), " \t\""))]
}

// record is a mail as separate fields.
type record struct {
	text        map[string]string   // text by kind
	list        map[string][]string // to, cc and bcc, if they are lists
	attachments []reeve.EmailAttachment
	notes       []string
}

// parseRecord converts a record to a mail, from the whole message that it contains or from its fields.
func (f *file) parseRecord(r record) (e reeve.Email, notes []string, err error) {
	raw := r.text["message"]
	whole := raw != "" && (r.text["body"] == "" || r.text["file"] != "")
	if !whole && r.text["body"] == "" {
		r.text["body"] = raw
	}
	l := &messageParser{notes: r.notes}
	if whole {
		var more []string
		if e, more, err = Message(strings.NewReader(raw)); err != nil && r.text["subject"]+r.text["from"] == "" {
			return e, more, err
		}
		l.notes = append(l.notes, more...)
		if err != nil { // use the other columns as the header
			r.text["body"], whole = raw, false
		}
	}
	if !whole {
		if r.text["subject"]+r.text["from"]+r.text["body"]+r.text["html"]+r.text["id"] == "" && len(r.list["to"]) == 0 {
			return e, nil, errors.New("it has no subject, sender or text")
		}
		e = l.buildEmail(r)
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
	f.setInbox(&e, folders)
	return e, l.notes, nil
}

// buildEmail builds a mail from the fields of a record.
func (l *messageParser) buildEmail(r record) reeve.Email {
	e := &l.email
	e.MessageID, e.Subject, e.Body, e.Attachments = strings.TrimSpace(r.text["id"]), l.decodeHeader(r.text["subject"]),
		r.text["body"], r.attachments
	if e.MessageID == "" {
		l.note("it has no Message-ID, and was given one")
	}
	if from := l.parseAddresses(r.text["from"]); len(from) > 0 {
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
		*to = l.parseAddresses(strings.ReplaceAll(text, ";", ","))
	}
	if e.Body == "" && r.text["html"] != "" {
		e.Body = htmlText(r.text["html"])
	}
	e.Date = l.parseSentDate(r.text["date"], "")
	return *e
}

// parseColumns returns the kinds of the columns of a CSV file.
func parseColumns(head []string) ([]string, error) {
	var known []string
	out := make([]string, len(head))
	for i, c := range head {
		if out[i] = columnKind(c); out[i] != "" {
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
