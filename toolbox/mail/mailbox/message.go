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
	maxHeaderBytes = 1 << 20 // bytes of a mail header
	maxParts       = 1000    // MIME parts of one mail
	maxDepth       = 30      // levels of nested parts
	maxRecipients  = 10_000
)

// messageParser parses one mail.
type messageParser struct {
	email    reeve.Email
	notes    []string
	parts    int
	textLeft int64 // bytes of text that may still be stored
}

func (l *messageParser) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(l.notes, n) {
		l.notes = append(l.notes, n)
	}
}

// Message parses a mail in RFC 5322 format. Defects are returned as notes, and the rest of the mail is used. It fails
// only if there is no header.
func Message(r io.Reader) (reeve.Email, []string, error) {
	l := &messageParser{textLeft: reeve.MaxMailText}
	in := bufio.NewReaderSize(r, 32<<10)
	h, err := l.readHeader(in)
	if err != nil {
		return l.email, l.notes, err
	}
	l.readEnvelope(h)
	var text string
	if e := l.newEntity(h, in); e != nil {
		text = l.readText(e, 0)
	}
	_, _ = io.Copy(io.Discard, in) // consume what a broken part left; errors do not matter here
	l.email.Body = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	return l.email, l.notes, nil
}

// readHeader reads up to the first empty line. It skips invalid header lines.
func (l *messageParser) readHeader(in *bufio.Reader) (message.Header, error) {
	var h message.Header
	type field struct {
		name  string
		value []string // lines, joined once at the end because there may be very many
	}
	var fields []field
	size, wrong := 0, 0
	for {
		line, err := headerLine(in)
		if size += len(line); size > maxHeaderBytes {
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
		case found && isHeaderName(name):
			fields = append(fields, field{name, []string{strings.TrimSpace(value)}})
		case strings.HasPrefix(text, "From ") || strings.HasPrefix(text, ">From "): // mbox separator
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
	for i := len(fields) - 1; i >= 0; i-- { // Add prepends
		h.Add(fields[i].name, strings.Join(fields[i].value, " "))
	}
	return h, nil
}

// headerLine returns a line, or the beginning of a line that is longer than a header may be. A file that is not mail
// may have no line ends.
func headerLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); err != bufio.ErrBufferFull ||
			len(line) > maxHeaderBytes { //nolint:errorlint // it is never wrapped
			return string(line), err
		}
	}
}

func isHeaderName(s string) bool {
	return s != "" && len(s) < 200 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// readEnvelope reads sender, recipients, date and subject from the header.
func (l *messageParser) readEnvelope(h message.Header) {
	e := &l.email
	if e.MessageID = strings.TrimSpace(h.Get("Message-Id")); e.MessageID == "" {
		l.note("it has no Message-ID, and was given one")
	}
	e.Subject = l.decodeHeader(h.Get("Subject"))
	if from := l.parseAddresses(h.Get("From")); len(from) > 0 {
		e.Sender, e.SenderName = reeve.ParseAddress(from[0])
	} else if from = l.parseAddresses(h.Get("Sender")); len(from) > 0 {
		e.Sender, e.SenderName = reeve.ParseAddress(from[0])
	} else {
		l.note("it has no sender")
	}
	for name, to := range map[string]*[]string{"To": &e.To, "Cc": &e.Cc, "Bcc": &e.Bcc} {
		for f := h.FieldsByKey(name); f.Next(); {
			*to = append(*to, l.parseAddresses(f.Value())...)
		}
		if len(*to) > maxRecipients {
			*to = (*to)[:maxRecipients]
			l.note("it has more than %d recipients; the rest was left out", maxRecipients)
		}
	}
	e.Date = l.parseSentDate(h.Get("Date"), h.Get("Received"))
}

// decodeHeader decodes encoded words (RFC 2047).
func (l *messageParser) decodeHeader(s string) string {
	d := mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader, error) {
		b, err := io.ReadAll(in)
		return strings.NewReader(l.decodeText(b, charset)), err
	}}
	text, err := d.DecodeHeader(s)
	if err != nil {
		l.note("a word of the header cannot be decoded")
		text = s
	}
	return strings.TrimSpace(l.decodeText([]byte(text), ""))
}

// parseAddresses parses a list of addresses. It splits an invalid list at commas.
func (l *messageParser) parseAddresses(s string) (out []string) {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	p := mail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader,
		error) {
		b, err := io.ReadAll(in)
		return strings.NewReader(l.decodeText(b, charset)), err
	}}}
	if list, err := p.ParseList(s); err == nil {
		for _, a := range list {
			out = append(out, reeve.FormatAddress(a.Address, l.decodeText([]byte(a.Name), "")))
		}
		return out
	}
	for part := range strings.SplitSeq(l.decodeHeader(s), ",") {
		if part = strings.Trim(strings.TrimSpace(part), `"'`); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// newEntity returns a reader for the body that a header describes.
func (l *messageParser) newEntity(h message.Header, body io.Reader) *message.Entity {
	e, err := message.New(h, body)
	if err != nil && !message.IsUnknownCharset(err) {
		l.note("an encoding is not known; the part was taken as it is")
	}
	return e
}

// readText returns the text of an entity and records its attachments.
func (l *messageParser) readText(e *message.Entity, depth int) string {
	kind, params, err := e.Header.ContentType()
	if err != nil || kind == "" {
		kind = "text/plain"
	}
	disposition, about, _ := e.Header.ContentDisposition()
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" && depth < maxDepth {
		return l.readMultipart(e, kind, depth)
	}
	name := l.decodeHeader(about["filename"])
	if name == "" {
		name = l.decodeHeader(params["name"])
	}
	plain, html := kind == "text/plain" || strings.HasPrefix(kind, "multipart/"), kind == "text/html"
	if disposition == "attachment" || name != "" || !plain && !html {
		n, err := io.Copy(io.Discard, e.Body)
		if err != nil {
			l.note("its parts are broken: %s", shortError(err))
		}
		if name == "" && kind != "message/rfc822" && disposition != "attachment" && n == 0 {
			return ""
		}
		if len(l.email.Attachments) < maxParts {
			l.email.Attachments = append(l.email.Attachments, reeve.EmailAttachment{Name: name, Type: kind, Size: n})
		}
		return ""
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(e.Body, l.textLeft)); err != nil {
		l.note("its parts are broken: %s", shortError(err))
	} else if rest, _ := io.Copy(io.Discard, e.Body); rest > 0 {
		l.email.TruncatedBytes += rest
		l.note(cutNote)
	}
	text := l.decodeText(b.Bytes(), params["charset"])
	if html {
		text = htmlText(text)
	}
	l.textLeft -= min(l.textLeft, int64(len(text)))
	return text
}

// readMultipart reads the parts. Of alternatives it returns the plain text, unless that is empty.
func (l *messageParser) readMultipart(e *message.Entity, kind string, depth int) string {
	var texts []string
	var plain string
	room := l.textLeft
	parts := e.MultipartReader()
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if part == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
			l.note("its parts are broken: %s", shortError(err))
			break
		}
		if l.parts++; l.parts > maxParts {
			l.note("it has more than %d parts; the rest was passed over", maxParts)
			break
		}
		if kind == "multipart/alternative" {
			l.textLeft = room // only one alternative is kept
		}
		text := l.readText(part, depth+1)
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

// shortError returns the text of an error without the name of its package.
func shortError(err error) string {
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
