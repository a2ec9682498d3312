package reeve

import (
	"strconv"
	"strings"
	"time"
)

// Email is a mail of an imported mailbox. Its text is untrusted data, never an instruction.
type Email struct {
	MessageID      string            `json:"message_id,omitempty" doc:"Unique within its inbox"`
	Inbox          string            `json:"inbox" doc:"Name of the mailbox"`
	Folder         string            `json:"folder,omitempty"`
	Subject        string            `json:"subject"`
	Sender         string            `json:"sender" doc:"Address of the sender"`
	SenderName     string            `json:"sender_name,omitempty"`
	Recipients     []string          `json:"recipients" doc:"Addresses of all recipients: to, cc and bcc"`
	To             []string          `json:"to,omitempty" doc:"Recipients with names"`
	Cc             []string          `json:"cc,omitempty"`
	Bcc            []string          `json:"bcc,omitempty"`
	Date           *time.Time        `json:"date,omitempty" doc:"Absent if unknown"`
	Body           string            `json:"body"`
	TruncatedBytes int64             `json:"truncated_bytes,omitempty" doc:"Bytes of text that were not stored"`
	Attachments    []EmailAttachment `json:"attachments,omitempty"`
}

// EmailAttachment describes an attachment of a mail. Its content is not stored.
type EmailAttachment struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size" doc:"Decoded size in bytes"`
}

// MaxMailText is the maximum number of bytes of a mail's text that are stored.
const MaxMailText = 1 << 20

// MailHit is a search result.
type MailHit struct {
	MessageID string     `json:"message_id"`
	Inbox     string     `json:"inbox"`
	Folder    string     `json:"folder,omitempty"`
	Subject   string     `json:"subject"`
	Sender    string     `json:"sender"`
	Date      *time.Time `json:"date,omitempty"`
	Snippet   string     `json:"snippet" doc:"Excerpt with matches in <mark>"`
	Score     float64    `json:"-"`
}

// MailSearch selects mail. docs/mail.md describes the query.
type MailSearch struct {
	Query     string `json:"query" doc:"All words must match. \"a phrase\", OR, -word, word*, subject:, from:, to:, body:"`
	Inbox     string `json:"inbox_id,omitempty" doc:"Name or address of a mailbox. Default: all mailboxes"`
	Sender    string `json:"sender,omitempty" doc:"Address or name of the sender, or words of it"`
	Recipient string `json:"recipient,omitempty" doc:"Address or name of a recipient, or words of it"`
	From      string `json:"date_from,omitempty" doc:"Sent at this time or later: 2001-05-15, or RFC 3339"`
	To        string `json:"date_to,omitempty" doc:"Sent before this time: RFC 3339, or 2001-05-15 to include that day"`
	Limit     int    `json:"limit,omitempty" minimum:"1" maximum:"50" doc:"Maximum number of mails. Default: 10"`
	Cursor    string `json:"cursor,omitempty" maxLength:"256" doc:"next_cursor of the previous page; keep all else the same"`
}

// MailPage is a page of search results.
type MailPage struct {
	Total  int       `json:"total" doc:"Number of mails in this page"`
	More   bool      `json:"more" doc:"True if there are more mails"`
	Next   string    `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page"`
	Note   string    `json:"note,omitempty" doc:"Why mails are missing or in another order"`
	Emails []MailHit `json:"emails"` // last, so that truncation of a long result keeps the cursor
}

// MailImport is one import of a mailbox. It may be interrupted and continued.
type MailImport struct {
	ID         string        `json:"id"`
	User       string        `json:"user,omitempty" doc:"User who started it; this user and owners may continue it"`
	Source     string        `json:"source" doc:"Source of the mails"`
	State      string        `json:"state" enum:"open,done"`
	Replace    bool          `json:"replace,omitempty" doc:"Replace existing mails instead of skipping them"`
	Position   string        `json:"position" doc:"Position of the reader in the source"`
	Seen       int64         `json:"seen"`
	Added      int64         `json:"added"`
	Replaced   int64         `json:"replaced"`
	Duplicate  int64         `json:"duplicate" doc:"Mails that existed with the same content"`
	Unreadable int64         `json:"unreadable" doc:"Mails that could not be read"`
	Problems   []MailProblem `json:"problems" doc:"Problems found, with counts"`
	StartedAt  time.Time     `json:"started_at"`
	UpdatedAt  time.Time     `json:"updated_at"`
	FinishedAt *time.Time    `json:"finished_at,omitempty"`
}

// IsDone reports whether the import is complete.
func (m MailImport) IsDone() bool { return m.State == ImportDone }

// The states of an import.
const (
	ImportOpen = "open"
	ImportDone = "done"
)

// MailProblem is a problem found in one or more mails.
type MailProblem struct {
	Reason     string   `json:"reason"`
	Unreadable bool     `json:"unreadable,omitempty" doc:"The mails were not imported"`
	Count      int64    `json:"count"`
	Examples   []string `json:"examples" doc:"Places of the first few"`
}

// MailImportRequest starts an import, or continues an interrupted import of the same source.
type MailImportRequest struct {
	Source  string `json:"source" minLength:"1" maxLength:"4096" doc:"Source of the mails, such as host and path"`
	Replace bool   `json:"replace,omitempty" doc:"Replace existing mails"`
	Restart bool   `json:"restart,omitempty" doc:"Start over instead of continuing"`
}

// MailLine is one line of an import batch: a mail, or the reason why it could not be read.
type MailLine struct {
	Email    *Email   `json:"email,omitempty"`
	Place    string   `json:"place,omitempty" doc:"Place in the source"`
	Error    string   `json:"error,omitempty" doc:"Why the mail could not be read"`
	Problems []string `json:"problems,omitempty" doc:"Problems found in the mail"`
}

// ParseAddress splits "Jane Doe <jane@x.org>" into jane@x.org and Jane Doe.
func ParseAddress(s string) (address, name string) {
	open, end := strings.LastIndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return strings.TrimSpace(s), ""
	}
	return strings.TrimSpace(s[open+1 : end]), strings.Trim(strings.TrimSpace(s[:open]), `"`)
}

// FormatAddress is the inverse of [ParseAddress].
func FormatAddress(address, name string) string {
	if name == "" {
		return address
	}
	return name + " <" + address + ">"
}

// MailKey returns a Message-ID for a mail that has none. It is derived from the content, so it is stable.
func MailKey(e Email) string { return "<" + MailHash(e)[:24] + "@no-message-id>" }

// MailHash returns a hash of the mail's content. It ignores the mailbox, the folder and the Message-ID.
func MailHash(e Email) string {
	var b strings.Builder
	part := func(s string) { b.WriteString(strconv.Itoa(len(s))); b.WriteByte(':'); b.WriteString(s) }
	part(e.Subject)
	part(FormatAddress(e.Sender, e.SenderName))
	for _, list := range [][]string{e.To, e.Cc, e.Bcc, e.Recipients} {
		part(strings.Join(list, "\n"))
	}
	if e.Date != nil {
		part(strconv.FormatInt(e.Date.UnixMilli(), 10))
	}
	part(e.Body)
	for _, a := range e.Attachments {
		part(a.Name + "\n" + strconv.FormatInt(a.Size, 10))
	}
	return Hash([]byte(b.String()))
}

// AddProblem counts a problem found in the mail at place. bad means that the mail was not imported.
func (m *MailImport) AddProblem(reason, place string, bad bool) {
	for i := range m.Problems {
		if n := &m.Problems[i]; n.Reason == reason && n.Unreadable == bad {
			if n.Count++; len(n.Examples) < maxExamples && place != "" {
				n.Examples = append(n.Examples, place)
			}
			return
		}
	}
	if len(m.Problems) >= maxReasons {
		reason = "other reasons" // the last note counts the rest
		if m.Problems[len(m.Problems)-1].Reason == reason {
			m.Problems[len(m.Problems)-1].Count++
			return
		}
	}
	n := MailProblem{Reason: reason, Unreadable: bad, Count: 1, Examples: []string{}}
	if place != "" {
		n.Examples = append(n.Examples, place)
	}
	m.Problems = append(m.Problems, n)
}

const (
	maxReasons  = 100
	maxExamples = 10
)
