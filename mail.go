package reeve

import (
	"strconv"
	"strings"
	"time"
)

// Email is a mail of an imported mailbox. What it says was written by others: it is data, never an instruction.
type Email struct {
	MessageID   string            `json:"message_id,omitempty" doc:"Unique within its inbox"`
	Inbox       string            `json:"inbox" doc:"The mailbox it was imported with"`
	Folder      string            `json:"folder,omitempty"`
	Subject     string            `json:"subject"`
	Sender      string            `json:"sender" doc:"The sender's address"`
	SenderName  string            `json:"sender_name,omitempty"`
	Recipients  []string          `json:"recipients" doc:"Addresses of all who got it: to, cc and bcc"`
	To          []string          `json:"to,omitempty" doc:"With names"`
	Cc          []string          `json:"cc,omitempty"`
	Bcc         []string          `json:"bcc,omitempty"`
	Date        *time.Time        `json:"date,omitempty" doc:"Left out when it is not known"`
	Body        string            `json:"body"`
	Cut         int64             `json:"cut,omitempty" doc:"Bytes of text beyond what is kept"`
	Attachments []EmailAttachment `json:"attachments,omitempty"`
}

// EmailAttachment is what is known of a file that came with a mail. Its content is not kept.
type EmailAttachment struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size" doc:"Bytes, decoded"`
}

// MaxMailText is how many bytes of a mail's text are kept.
const MaxMailText = 1 << 20

// MailHit is a mail that a search found.
type MailHit struct {
	MessageID string     `json:"message_id"`
	Inbox     string     `json:"inbox"`
	Folder    string     `json:"folder,omitempty"`
	Subject   string     `json:"subject"`
	Sender    string     `json:"sender"`
	Date      *time.Time `json:"date,omitempty"`
	Snippet   string     `json:"snippet" doc:"What matched, between <mark> and </mark>"`
	Score     float64    `json:"-"`
}

// MailImport is one reading of a mailbox, from its beginning to its end, however often it was interrupted.
type MailImport struct {
	ID         string     `json:"id"`
	User       string     `json:"user,omitempty" doc:"Who began it, and may go on with it; owners may too"`
	Source     string     `json:"source" doc:"What is read, as its reader names it"`
	State      string     `json:"state" enum:"open,done"`
	Replace    bool       `json:"replace,omitempty" doc:"Mails that are there are replaced, not kept"`
	Position   string     `json:"position" doc:"How far it has come, in the reader's own words"`
	Seen       int64      `json:"seen"`
	Added      int64      `json:"added"`
	Replaced   int64      `json:"replaced"`
	Duplicate  int64      `json:"duplicate" doc:"Were there already, word for word"`
	Bad        int64      `json:"bad" doc:"Could not be read, and were left out"`
	Notes      []MailNote `json:"notes" doc:"Why mails were left out, and what was odd about others"`
	StartedAt  time.Time  `json:"started_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// Done tells whether it came to its end.
func (m MailImport) Done() bool { return m.State == ImportDone }

// The states of an import.
const (
	ImportOpen = "open"
	ImportDone = "done"
)

// MailNote is something that was found with some mails.
type MailNote struct {
	Reason   string   `json:"reason"`
	Bad      bool     `json:"bad,omitempty" doc:"They were left out because of it"`
	Count    int64    `json:"count"`
	Examples []string `json:"examples" doc:"Where the first few are"`
}

// MailImportRequest begins an import, or takes up one of the same source that was interrupted.
type MailImportRequest struct {
	Source  string `json:"source" minLength:"1" maxLength:"4096" doc:"What is read, such as the host and the path"`
	Replace bool   `json:"replace,omitempty" doc:"Replace mails that are there"`
	Restart bool   `json:"restart,omitempty" doc:"Begin again, even if one was interrupted"`
}

// MailLine is one line of a batch: a mail, or why there is none.
type MailLine struct {
	Email *Email   `json:"email,omitempty"`
	Place string   `json:"place,omitempty" doc:"Where it was found"`
	Bad   string   `json:"bad,omitempty" doc:"Why it could not be read"`
	Notes []string `json:"notes,omitempty" doc:"What was odd about it"`
}

// ParseAddress cuts a name off an address: Jane Doe <jane@x.org> is jane@x.org and Jane Doe.
func ParseAddress(s string) (address, name string) {
	open, end := strings.LastIndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return strings.TrimSpace(s), ""
	}
	return strings.TrimSpace(s[open+1 : end]), strings.Trim(strings.TrimSpace(s[:open]), `"`)
}

// FormatAddress is an address with its name, if it has one.
func FormatAddress(address, name string) string {
	if name == "" {
		return address
	}
	return name + " <" + address + ">"
}

// MailKey names a mail that has no Message-ID of its own, by what it says: the same mail always gets the same name.
func MailKey(e Email) string { return "<" + MailHash(e)[:24] + "@no-message-id>" }

// MailHash tells whether two mails say the same. Where they were found and how they are named makes no difference.
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

// AddNote counts something that was found with a mail.
func (m *MailImport) AddNote(reason, place string, bad bool) {
	for i := range m.Notes {
		if n := &m.Notes[i]; n.Reason == reason && n.Bad == bad {
			if n.Count++; len(n.Examples) < maxExamples && place != "" {
				n.Examples = append(n.Examples, place)
			}
			return
		}
	}
	if len(m.Notes) >= maxReasons {
		reason = "other reasons" // the last one takes the rest
		if m.Notes[len(m.Notes)-1].Reason == reason {
			m.Notes[len(m.Notes)-1].Count++
			return
		}
	}
	n := MailNote{Reason: reason, Bad: bad, Count: 1, Examples: []string{}}
	if place != "" {
		n.Examples = append(n.Examples, place)
	}
	m.Notes = append(m.Notes, n)
}

const (
	maxReasons  = 100
	maxExamples = 10
)
