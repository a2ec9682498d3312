package mailbox

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines joins the lines of a mail with CRLF.
func lines(s ...string) string { return strings.Join(s, "\r\n") + "\r\n" }

// TestZones checks that zone abbreviations have the meaning of RFC 5322 and do not depend on the local time zone.
func TestZones(t *testing.T) {
	const utc = "2001-05-14T23:39:00Z"
	for _, s := range []string{
		"Mon, 14 May 2001 23:39:00 +0000", "Mon, 14 May 2001 16:39:00 -0700 (PDT)", "Mon, 14 May 2001 16:39:00 PDT",
		"14 May 2001 15:39:00 PST", "14 May 01 15:39:00 PST", "Mon, 14 May 2001 16:39:00 MST",
		"Mon, 14 May 2001 17:39:00 MDT",
		"Mon, 14 May 2001 17:39:00 CST", "Mon, 14 May 2001 18:39:00 CDT", "Mon, 14 May 2001 18:39 EST",
		"Mon, 14 May 2001 19:39:00 EDT", "Mon, 14 May 2001 23:39:00 UT", "Mon, 14 May 2001 23:39:00 GMT",
		"Mon, 14 May 2001 23:39:00 Z",
		"Mon, 14 May 2001 23:39:00 A", "Mon, 14 May 2001 16:39:00 PDT (Pacific Daylight Time)",
		"Mon May 14 16:39:00 PDT 2001", "Mon May 14 23:39:00 2001", "Mon, 14 May 2001 16:39:00 pdt",
		"2001-05-14 23:39:00", "Mon, 14 May 2001 23:39:00",
		"989883540", "989883540000",
	} {
		got, ok := parseDate(s)
		if !ok || got.UTC().Format(time.RFC3339) != utc {
			t.Errorf("%q is %v, %v; want %s", s, got.UTC(), ok, utc)
		}
	}
	for _, s := range []string{"", "()", "PDT", "A", "soon PDT", "12345", "20010514", "-989883540000",
		"Mon, 32 May 2001 16:39:00 PDT"} {
		if got, ok := parseDate(s); ok {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestMessages(t *testing.T) {
	const head = "Message-ID: <1@x>\r\nFrom: a@x\r\nDate: Tue, 1 Sep 2026 10:00:00 +0200\r\n"
	for name, c := range map[string]struct {
		mail  string
		check string // subject|sender|body|attachments
		notes string
	}{
		"plain":  {head + "Subject: hello\r\n\r\none\r\ntwo\r\n", "hello|a@x|one\ntwo|", ""},
		"folded": {head + "Subject: hello\r\n  world\r\n\r\nx", "hello world|a@x|x|", ""},
		"words": {head + "Subject: =?iso-8859-1?q?gr=FC=DFe?= =?utf-8?b?IMOgIGxhIGNhcnRl?=\r\n\r\nx",
			"grüße à la carte|a@x|x|", ""},
		"words, no charset": {head + "Subject: =?x-none?q?gr=FC=DFe?=\r\n\r\nx", "grüße|a@x|x|",
			`the charset "x-none" is unknown`},
		"raw latin 1": {head + "Subject: gr\xfc\xdfe\r\n\r\nx", "grüße|a@x|x|", ""},
		"qp": {head +
			"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: " +
			"quoted-printable\r\n\r\ngr=FC=DFe=\r\n!", "|a@x|grüße!|", ""},
		"base64": {head +
			"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nZ3LD\r\nvMOfZQ==\r\n",
			"|a@x|grüße|", ""},
		"cyrillic": {head + "Content-Type: text/plain; charset=koi8-r\r\n\r\n\xf0\xd2\xc9\xd7\xc5\xd4",
			"|a@x|Привет|", ""},
		"japanese": {head + "Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$BF|K\\\x1b(B", "|a@x|日本|", ""},
		"wrong charset": {head + "Content-Type: text/plain; charset=utf-8\r\n\r\ngr\xfc\xdfe", "|a@x|grüße|",
			"its text is not in the charset it says"},
		"cut in a word": {head + "Content-Type: text/plain; charset=utf-8\r\n\r\ngr\xc3\xbc\xc3", "|a@x|grü|", ""},
		"unknown charset": {head + "Content-Type: text/plain; charset=klingon\r\n\r\ngr\xfc\xdfe", "|a@x|grüße|",
			`the charset "klingon" is unknown`},
		"html": {head +
			"Content-Type: text/html\r\n\r\n<html><head><title>t</title><style>p{}</style></head>" +
			"<body><p>Dear&nbsp;<b>Jane</b>,</p><script>x()</script><ul><li>one<li>two</ul>5 &lt; 6</body>",
			"|a@x|Dear Jane,\n\none\ntwo\n5 < 6|", ""},
		"alternative": {head + "Content-Type: multipart/alternative; boundary=b\r\n\r\n" +
			lines("--b", "Content-Type: text/plain", "", "plain", "--b", "Content-Type: text/html", "", "<p>html</p>",
				"--b--"),
			"|a@x|plain|", ""},
		"html only": {head + "Content-Type: multipart/alternative; boundary=b\r\n\r\n" +
			lines("--b", "Content-Type: text/plain", "", " ", "--b", "Content-Type: text/html", "", "<p>html</p>",
				"--b--"), "|a@x|html|", ""},
		"nested": {head + "Content-Type: multipart/mixed; boundary=a\r\n\r\n" + lines("preamble", "--a",
			"Content-Type: multipart/alternative; boundary=b", "", "--b", "", "text", "--b", "Content-Type: text/html",
			"", "<i>text</i>", "--b--",
			"--a", `Content-Type: application/pdf; name="=?utf-8?q?r=C3=A9sum=C3=A9?=.pdf"`,
			"Content-Transfer-Encoding: base64", "Content-Disposition: attachment", "", "QUJDRA==",
			"--a", "Content-Disposition: attachment; filename*=utf-8''gr%C3%BC%C3%9Fe.txt", "", "hello", "--a",
			"Content-Type: text/plain", "", "footer", "--a--"),
			"|a@x|text\n\nfooter|résumé.pdf application/pdf 4, grüße.txt text/plain 5", ""},
		"never closed": {head + "Content-Type: multipart/mixed; boundary=a\r\n\r\n" + lines("--a", "", "text"),
			"|a@x|text|", "its parts are broken: they end too early"},
		"no boundary": {head + "Content-Type: multipart/mixed\r\n\r\ntext", "|a@x|text|", ""},
		"broken base64": {head + "Content-Transfer-Encoding: base64\r\n\r\naGVsbG8h!!!!", "|a@x|hello!|",
			"its parts are broken: illegal base64"},
		"unknown coding": {head + "Content-Transfer-Encoding: zip\r\n\r\ntext", "|a@x|text|",
			"an encoding is not known; the part was taken as it is"},
		"broken type": {head + "Content-Type: ;;;\r\n\r\ntext", "|a@x|text|", ""},
		"stray header": {head + "this is no header\r\nSubject: s\r\n\r\ntext", "s|a@x|text|",
			"the header has lines that belong to none"},
		"header only": {head + "Subject: s", "s|a@x||", ""},
		"NUL":         {head + "Subject: a\x00b\r\n\r\nc\x00d", "a\x00b|a@x|c\x00d|", ""},
		"no id, no date": {"From: Jane Doe <a@x>\r\n\r\ntext", "|a@x|text|",
			"it has no Message-ID, and was given one; it has no date"},
		"no sender": {"Message-ID: 1\r\nDate: 1 Sep 2026 10:00:00 +0200\r\n\r\ntext", "||text|", "it has no sender"},
		"bad date":  {"Message-ID: 1\r\nFrom: a@x\r\nDate: soon\r\n\r\ntext", "|a@x|text|", "its date cannot be read"},
		"odd zone": {"Message-ID: 1\r\nFrom: a@x\r\nDate: Tue, 1 Sep 2026 10:00:00 QQT\r\n\r\ntext",
			"|a@x|text|", "its time zone is not known, and was taken for UTC"},
		"1970": {"Message-ID: 1\r\nFrom: a@x\r\nDate: Thu, 1 Jan 1970 00:00:00 +0000\r\n\r\ntext",
			"|a@x|text|", "its date is before there was mail: 1970"},
		"2040": {"Message-ID: 1\r\nFrom: a@x\r\nDate: Sun, 1 Jan 2040 00:00:00 +0000\r\n\r\ntext",
			"|a@x|text|", "its date is in the future: 2040"},
		"attached letter": {head + "Content-Type: multipart/mixed; boundary=a\r\n\r\n" + lines("--a", "", "see below",
			"--a", "Content-Type: message/rfc822", "", "From: b@x", "", "inner", "--a--"),
			"|a@x|see below| message/rfc822 18", ""},
	} {
		e, notes, err := Message(strings.NewReader(c.mail))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var files []string
		for _, a := range e.Attachments {
			files = append(files, fmt.Sprintf("%s %s %d", a.Name, a.Type, a.Size))
		}
		if got := e.Subject + "|" + e.Sender + "|" + e.Body + "|" + strings.Join(files, ", "); got != c.check {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.check)
		}
		if got := strings.Join(notes, "; "); got != c.notes {
			t.Errorf("%s: notes %q, want %q", name, got, c.notes)
		}
	}
	for _, text := range []string{"", "\r\n", "no header here", "\x00\x01\x02", "PK\x03\x04zip",
		strings.Repeat("\n", 100)} {
		if e, _, err := Message(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted as a mail: %+v", text, e)
		}
	}
}

func TestAddresses(t *testing.T) {
	e, _, err := Message(strings.NewReader("From: \"Doe, Jane\" <jane@x.org>\r\nTo: a@x, =?utf-8?q?J=C3=B6rg?= " +
		"<j@x>,\r\n  team: b@x, c@x;\r\nCc: 'not, quite right <d@x\r\nBcc: e@x\r\n\r\n"))
	if err != nil || e.Sender != "jane@x.org" || e.SenderName != "Doe, Jane" ||
		fmt.Sprint(e.To) != "[a@x Jörg <j@x> b@x c@x]" || len(e.Cc) != 2 || fmt.Sprint(e.Bcc) != "[e@x]" {
		t.Errorf("%+v %v", e, err)
	}
}

// TestLargeMail checks that reading large mails does not use much memory.
func TestLargeMail(t *testing.T) {
	const size = 50 << 20
	for name, head := range map[string]string{
		"text": "From: a@x\r\n\r\n",
		"attachment": "From: a@x\r\nContent-Type: multipart/mixed; " +
			"boundary=b\r\n\r\n--b\r\n\r\nhello\r\n--b\r\nContent-Type: application/zip; name=z.zip\r\n\r\n",
		"header": "From: a@x\r\nX-Long: ",
		"html":   "From: a@x\r\nContent-Type: text/html\r\n\r\n<p>",
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		e, notes, err := Message(io.MultiReader(strings.NewReader(head), io.LimitReader(wordReader{}, size),
			strings.NewReader("\r\n--b--\r\n")))
		runtime.ReadMemStats(&after)
		if name == "header" { // the line does not end
			if err != nil || len(notes) == 0 {
				t.Errorf("%s: %v %v", name, notes, err)
			}
		} else if err != nil || name != "attachment" &&
			(e.TruncatedBytes < size-3<<20 || !slices.Contains(notes, "its text is longer than 1 MiB and was cut")) ||
			name == "attachment" && (e.Attachments[0].Size != size || e.Body != "hello") {
			t.Errorf("%s: %d bytes of text, %d cut, %v, %v", name, len(e.Body), e.TruncatedBytes, notes, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 60<<20 {
			t.Errorf("%s: reading allocated %d MB", name, used>>20)
		}
	}
}

// wordReader is an endless reader of text.
type wordReader struct{}

func (wordReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = "word after word\n"[i%16]
	}
	return len(b), nil
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("From: a@x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; " +
		"charset=koi8-r\r\n\r\n<p>x\r\n--b--"))
	f.Add([]byte("Subject: =?x?q?a?=\n\nb"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := Message(strings.NewReader(string(b)))
		if err == nil && len(e.Body) > 4<<20 {
			t.Errorf("%d bytes of text", len(e.Body))
		}
	})
}

// endlessReader is a reader of 64 MiB of zeros. It counts the bytes that are read.
type endlessReader struct{ read int }

func (n *endlessReader) Read(b []byte) (int, error) {
	if n.read += len(b); n.read > 64<<20 {
		return 0, io.EOF
	}
	clear(b)
	return len(b), nil
}

// TestOtherFilesAreNotReadWhole checks that a file without line breaks, such as a disk image, is refused early.
func TestOtherFilesAreNotReadWhole(t *testing.T) {
	var in endlessReader
	if _, _, err := Message(&in); err == nil || in.read > 4<<20 {
		t.Errorf("%d bytes were read: %v", in.read, err)
	}
}

// TestLongHeaderTakesLinearMemory reads a header field of very many lines. The memory must not grow with the square of
// the number of lines.
func TestLongHeaderTakesLinearMemory(t *testing.T) {
	const lines = 50_000
	text := "Subject: a\n" + strings.Repeat(" x\n", lines) + "\nhello\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, _, err := Message(strings.NewReader(text))
	runtime.ReadMemStats(&after)
	if err != nil || e.Subject != "a"+strings.Repeat(" x", lines) || e.Body != "hello" {
		t.Errorf("a subject of %d bytes, %q, %v", len(e.Subject), e.Body, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
		t.Errorf("reading a header of %d bytes allocated %d", len(text), used)
	}
}

// TestOmittedRecipientsAreNoted checks the note on a mail with more recipients than the limit.
func TestOmittedRecipientsAreNoted(t *testing.T) {
	e, notes, err := Message(strings.NewReader("To: " + strings.Repeat("a@x, ", maxRecipients) + "b@x\r\n\r\n"))
	if err != nil || len(e.To) != maxRecipients ||
		!slices.Contains(notes, "it has more than 10000 recipients; the rest was left out") {
		t.Errorf("%d recipients, %q, %v", len(e.To), notes, err)
	}
}
