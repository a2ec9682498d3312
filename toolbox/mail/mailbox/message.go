package mailbox

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"slices"
	"strings"

	"github.com/emersion/go-message"

	"reeve"
)

const (
	mostHeader     = 1 << 20 // bytes of a header
	mostParts      = 1000    // of one mail
	mostDepth      = 30      // parts within parts
	mostRecipients = 10_000
)

// letter is a mail that is being read.
type letter struct {
	email reeve.Email
	notes []string
	parts int
	room  int64 // bytes of text that it may still have
}

func (l *letter) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(l.notes, n) {
		l.notes = append(l.notes, n)
	}
}

// Message reads one mail as it was sent: a header, and parts. What is broken about it is noted, and the rest is kept.
// Only what has no header at all is refused.
func Message(r io.Reader) (reeve.Email, []string, error) {
	l := &letter{room: reeve.MaxMailText}
	in := bufio.NewReaderSize(r, 32<<10)
	h, err := l.header(in)
	if err != nil {
		return l.email, l.notes, err
	}
	l.envelope(h)
	var text string
	if e := l.entity(h, in); e != nil {
		text = l.text(e, 0)
	}
	_, _ = io.Copy(io.Discard, in) // what a broken part left; whatever its fault is, the mail is read
	l.email.Body = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	return l.email, l.notes, nil
}

// header reads the lines up to the first empty one. Lines that are none of a header are passed over.
func (l *letter) header(in *bufio.Reader) (message.Header, error) {
	var h message.Header
	type field struct {
		name  string
		value []string // by lines, to be put together once: a header may have hundreds of thousands
	}
	var fields []field
	size, wrong := 0, 0
	for {
		line, err := headerLine(in)
		if size += len(line); size > mostHeader {
			l.note("the header is longer than 1 MiB; the rest was taken for text")
			break
		}
		text := strings.TrimRight(line, "\r\n")
		if text == "" {
			if err != nil || len(fields) > 0 {
				break
			}
			if wrong++; wrong > 20 { // empty lines before the header
				break
			}
			continue
		}
		name, value, found := strings.Cut(text, ":")
		name = strings.TrimRight(name, " \t")
		switch {
		case text[0] == ' ' || text[0] == '\t':
			if n := len(fields); n > 0 {
				fields[n-1].value = append(fields[n-1].value, strings.TrimSpace(text))
			}
		case found && isName(name):
			fields = append(fields, field{name, []string{strings.TrimSpace(value)}})
		case strings.HasPrefix(text, "From ") || strings.HasPrefix(text, ">From "): // of an mbox
		default:
			l.note("the header has lines that belong to none")
			if len(fields) == 0 {
				return h, fmt.Errorf("it does not begin with a header, so it is no mail")
			}
		}
		if err != nil {
			break
		}
	}
	if len(fields) == 0 {
		return h, fmt.Errorf("it does not begin with a header, so it is no mail")
	}
	for i := len(fields) - 1; i >= 0; i-- { // Add puts each first
		h.Add(fields[i].name, strings.Join(fields[i].value, " "))
	}
	return h, nil
}

// headerLine reads a line, or the beginning of one that is longer than a header may be: what is no mail need not have
// any.
func headerLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); err != bufio.ErrBufferFull ||
			len(line) > mostHeader { //nolint:errorlint // it is never wrapped
			return string(line), err
		}
	}
}

func isName(s string) bool {
	return s != "" && len(s) < 200 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// envelope takes from the header who wrote to whom, when and about what.
func (l *letter) envelope(h message.Header) {
	e := &l.email
	if e.MessageID = strings.TrimSpace(h.Get("Message-Id")); e.MessageID == "" {
		l.note("it has no Message-ID, and was given one")
	}
	e.Subject = l.words(h.Get("Subject"))
	if from := l.addresses(h.Get("From")); len(from) > 0 {
		e.Sender, e.SenderName = reeve.ParseAddress(from[0])
	} else if from = l.addresses(h.Get("Sender")); len(from) > 0 {
		e.Sender, e.SenderName = reeve.ParseAddress(from[0])
	} else {
		l.note("it has no sender")
	}
	for name, to := range map[string]*[]string{"To": &e.To, "Cc": &e.Cc, "Bcc": &e.Bcc} {
		for f := h.FieldsByKey(name); f.Next(); {
			*to = append(*to, l.addresses(f.Value())...)
		}
		if len(*to) > mostRecipients {
			*to = (*to)[:mostRecipients]
			l.note("it has more than %d recipients; the rest was left out", mostRecipients)
		}
	}
	e.Date = l.date(h.Get("Date"), h.Get("Received"))
}

// words decodes a header's words (RFC 2047).
func (l *letter) words(s string) string {
	d := mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader, error) {
		b, err := io.ReadAll(in)
		return strings.NewReader(l.decode(b, charset)), err
	}}
	text, err := d.DecodeHeader(s)
	if err != nil {
		l.note("a word of the header cannot be decoded")
		text = s
	}
	return strings.TrimSpace(l.decode([]byte(text), ""))
}

// addresses reads a list of addresses. What does not follow the rules is cut at its commas.
func (l *letter) addresses(s string) (out []string) {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	p := mail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader,
		error) {
		b, err := io.ReadAll(in)
		return strings.NewReader(l.decode(b, charset)), err
	}}}
	if list, err := p.ParseList(s); err == nil {
		for _, a := range list {
			out = append(out, reeve.FormatAddress(a.Address, l.decode([]byte(a.Name), "")))
		}
		return out
	}
	for part := range strings.SplitSeq(l.words(s), ",") {
		if part = strings.Trim(strings.TrimSpace(part), `"'`); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// entity begins reading what a header announces.
func (l *letter) entity(h message.Header, body io.Reader) *message.Entity {
	e, err := message.New(h, body)
	if err != nil && !message.IsUnknownCharset(err) {
		l.note("an encoding is not known; the part was taken as it is")
	}
	return e
}

// text gives the text of an entity and lists its attachments.
func (l *letter) text(e *message.Entity, depth int) string {
	kind, params, err := e.Header.ContentType()
	if err != nil || kind == "" {
		kind = "text/plain"
	}
	disposition, about, _ := e.Header.ContentDisposition()
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" && depth < mostDepth {
		return l.multipart(e, kind, depth)
	}
	name := l.words(about["filename"])
	if name == "" {
		name = l.words(params["name"])
	}
	plain, html := kind == "text/plain" || strings.HasPrefix(kind, "multipart/"), kind == "text/html"
	if disposition == "attachment" || name != "" || !plain && !html {
		n, err := io.Copy(io.Discard, e.Body)
		if err != nil {
			l.note("its parts are broken: %s", plainError(err))
		}
		if name == "" && kind != "message/rfc822" && disposition != "attachment" && n == 0 {
			return ""
		}
		if len(l.email.Attachments) < mostParts {
			l.email.Attachments = append(l.email.Attachments, reeve.EmailAttachment{Name: name, Type: kind, Size: n})
		}
		return ""
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(e.Body, l.room)); err != nil {
		l.note("its parts are broken: %s", plainError(err))
	} else if rest, _ := io.Copy(io.Discard, e.Body); rest > 0 {
		l.email.Cut += rest
		l.note(cutNote)
	}
	text := l.decode(b.Bytes(), params["charset"])
	if html {
		text = htmlText(text)
	}
	l.room -= min(l.room, int64(len(text)))
	return text
}

// multipart reads the parts. Of alternatives the plain one is taken, if it says anything.
func (l *letter) multipart(e *message.Entity, kind string, depth int) string {
	var texts []string
	var plain string
	room := l.room
	parts := e.MultipartReader()
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if part == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
			l.note("its parts are broken: %s", plainError(err))
			break
		}
		if l.parts++; l.parts > mostParts {
			l.note("it has more than %d parts; the rest was passed over", mostParts)
			break
		}
		if kind == "multipart/alternative" {
			l.room = room // only one of them is kept
		}
		text := l.text(part, depth+1)
		if strings.TrimSpace(text) == "" {
			continue
		}
		if k, _, _ := part.Header.ContentType(); plain == "" && (k == "text/plain" || k == "") {
			plain = text
		}
		texts = append(texts, text)
	}
	switch {
	case len(texts) == 0:
		return ""
	case kind == "multipart/alternative" && plain != "":
		return plain
	case kind == "multipart/alternative":
		return texts[len(texts)-1] // the richest comes last
	}
	return strings.Join(texts, "\n\n")
}

// plainError is a reader's error without its package's name.
func plainError(err error) string {
	if err == nil {
		return "they end too early"
	}
	s := err.Error()
	for _, prefix := range []string{"multipart: ", "message: ", "mime: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	switch {
	case strings.Contains(s, "illegal base64"):
		return "illegal base64"
	case strings.HasSuffix(s, "EOF"):
		return "they end too early"
	}
	return s
}
