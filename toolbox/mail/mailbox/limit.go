package mailbox

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"reeve"
)

// maxMailBytes is the maximum size of an encoded mail. A server accepts 16 MiB per request, so a larger mail would
// block all mails after it.
const maxMailBytes = 8 << 20

const cutNote = "its text is longer than 1 MiB and was cut"

// truncate cuts the text of a mail to the length that is stored. It rejects a mail that is still too large.
func truncate(line *reeve.MailLine) {
	e := line.Email
	if e == nil {
		return
	}
	if len(e.Body) > reeve.MaxMailText {
		end := reeve.MaxMailText
		for end > 0 && !utf8.RuneStart(e.Body[end]) {
			end--
		}
		if e.TruncatedBytes, e.Body = e.TruncatedBytes+int64(len(e.Body)-end),
			e.Body[:end]; !slices.Contains(line.Problems, cutNote) {
			line.Problems = append(line.Problems, cutNote)
		}
	}
	if estimateSize(e) <= maxMailBytes/6 { // JSON encodes a byte in at most 6
		return
	}
	if b, err := json.Marshal(e); err != nil || len(b) > maxMailBytes {
		line.Email, line.Error = nil, "it has more than 8 MiB of subject, addresses and names of attachments"
	}
}

// estimateSize returns the approximate size of a mail without JSON overhead.
func estimateSize(e *reeve.Email) int {
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
