package mailbox

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"reeve"
)

// mostMail is how many bytes a mail may have as it is sent to a server, which takes 16 MiB at once: one that is larger
// would hold up all that come after it, for ever.
const mostMail = 8 << 20

const cutNote = "its text is longer than 1 MiB and was cut"

// fit cuts a mail's text to what is kept of it, and leaves out a mail that is too large all the same.
func fit(line *reeve.MailLine) {
	e := line.Email
	if e == nil {
		return
	}
	if len(e.Body) > reeve.MaxMailText {
		end := reeve.MaxMailText
		for end > 0 && !utf8.RuneStart(e.Body[end]) {
			end--
		}
		if e.Cut, e.Body = e.Cut+int64(len(e.Body)-end), e.Body[:end]; !slices.Contains(line.Notes, cutNote) {
			line.Notes = append(line.Notes, cutNote)
		}
	}
	if size(e) <= mostMail/6 { // which no character takes more than
		return
	}
	if b, err := json.Marshal(e); err != nil || len(b) > mostMail {
		line.Email, line.Bad = nil, "it has more than 8 MiB of subject, addresses and names of attachments"
	}
}

// size is about how many bytes a mail has, without what JSON adds.
func size(e *reeve.Email) int {
	n := len(e.MessageID) + len(e.Inbox) + len(e.Folder) + len(e.Subject) + len(e.Sender) + len(e.SenderName) +
		len(e.Body) + 1000
	for _, list := range [][]string{e.Recipients, e.To, e.Cc, e.Bcc} {
		for _, a := range list {
			n += len(a) + 4
		}
	}
	for _, a := range e.Attachments {
		n += len(a.Name) + len(a.Type) + 64
	}
	return n
}
