package mailbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reeve"
)

// writeFiles writes files into a new folder.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mailText(id, subject string) string {
	return "Message-ID: <" + id + ">\nFrom: a@x\nDate: 1 Sep 2026 10:00:00 +0200\nSubject: " + subject +
		"\n\nText of " + subject + ".\n"
}

// readItems reads the items of a source after a position. It returns a line for each item, "inbox/folder subject" or
// "! reason", and the positions of the items.
func readItems(t *testing.T, name string, opt Options, from string) (out []string, positions []string) {
	t.Helper()
	s, err := Open(name, opt)
	if err != nil {
		t.Fatal(err)
	}
	for item, err := range s.Items(from) {
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, item.Position)
		if e := item.Line.Email; e != nil {
			out = append(out, e.Inbox+"/"+e.Folder+" "+e.Subject)
		} else {
			out = append(out, "! "+item.Line.Error)
		}
		if item.Bytes > s.Size() {
			t.Errorf("%d of %d bytes", item.Bytes, s.Size())
		}
	}
	return out, positions
}

func wantItems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkResume reads a source from its start and again from each position. Each time it must read exactly the items
// after the position.
func checkResume(t *testing.T, name string, opt Options) {
	t.Helper()
	all, positions := readItems(t, name, opt, "")
	if len(slices.Compact(slices.Sorted(slices.Values(positions)))) != len(positions) {
		t.Errorf("two positions are equal: %v", positions)
	}
	for i, p := range positions {
		rest, _ := readItems(t, name, opt, p)
		if !slices.Equal(rest, all[i+1:]) {
			t.Errorf("after %s: %v, want %v", p, rest, all[i+1:])
		}
	}
}

func TestI16_Maildir(t *testing.T) {
	files := map[string]string{"allen-p/sent/1.": mailText("1", "one"), "allen-p/sent/10.": mailText("2", "two"),
		"allen-p/inbox/deep/1.": mailText("3", "three"), "beck-s/inbox/1.": mailText("4", "four"),
		"beck-s/inbox/2.":        "nothing",
		"beck-s/inbox/.DS_Store": "x", "beck-s/tmp/5": mailText("5", "being delivered")}
	dir := writeFiles(t, files)
	want := []string{"allen-p/inbox/deep three", "allen-p/sent one", "allen-p/sent two", "beck-s/inbox four",
		"! it does not begin with a header, so it is no mail"}
	got, _ := readItems(t, dir, Options{}, "")
	wantItems(t, got, want...)
	checkResume(t, dir, Options{})
	got, _ = readItems(t, filepath.Join(dir, "allen-p"), Options{}, "")
	wantItems(t, got, "allen-p/inbox/deep three", "allen-p/sent one", "allen-p/sent two")
	got, _ = readItems(t, dir, Options{Inbox: "me"}, "")
	wantItems(t, got, "me/inbox/deep three", "me/sent one", "me/sent two", "me/inbox four",
		"! it does not begin with a header, so it is no mail")
	got, _ = readItems(t, filepath.Join(dir, "allen-p", "sent", "1."), Options{Inbox: "me"}, "")
	wantItems(t, got, "me/ one")

	// The standard layout, with subfolders as Dovecot names them.
	dir = writeFiles(t, map[string]string{"cur/1:2,S": mailText("1", "one"), "new/2": mailText("2", "two"),
		"tmp/3": mailText("3", "three"), ".Sent/cur/4:2,": mailText("4", "four"), "dovecot.index": "x",
		".git/config": "x"})
	got, _ = readItems(t, dir, Options{Inbox: "me"}, "")
	wantItems(t, got, "me/Sent four", "me/ one", "me/ two")
	checkResume(t, dir, Options{})

	// Links are not followed.
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "cur", "9")); err != nil {
		t.Fatal(err)
	}
	got, _ = readItems(t, dir, Options{Inbox: "me"}, "")
	wantItems(t, got, "me/Sent four", "me/ one", "! it is a link or no file, and was not followed", "me/ two")
}

func TestI16_Mbox(t *testing.T) {
	long := strings.Repeat("x", 200_000) // a line longer than the buffers
	dir := writeFiles(t, map[string]string{"Inbox.mbox": "text before the first mail\n\nFrom a@x Tue Sep  1 10:00:00 " +
		"2026\n" +
		mailText("1", "one") + "From the start of a line, but not after an empty one\n>From quoted\n>>From quoted " +
		"twice\n\nFrom here on it is text\n" + long + "\n\n" +
		"From MAILER-DAEMON Tue Sep  1 10:00:00 2026\r\n" + mailText("2", "two") +
		"\nFrom - Tue Sep 01 10:00:00 2026\nno header\n\n\nFrom b@x Tue Sep  1 10:00:00 2026 +0000\n" +
		strings.TrimRight(mailText("3", "three"), "\n")})
	file := filepath.Join(dir, "Inbox.mbox")
	got, positions := readItems(t, file, Options{}, "")
	wantItems(t, got, "Inbox/ one", "Inbox/ two", "! it does not begin with a header, so it is no mail", "Inbox/ three")
	checkResume(t, file, Options{})
	s, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for item := range s.Items("") {
		if want := "Text of one.\nFrom the start of a line, but not after an empty one\nFrom quoted\n>From quoted " +
			"twice\n\nFrom here on it is text\n" + long; item.Line.Email.Body != want {
			t.Errorf("%.200q", item.Line.Email.Body)
		}
		break
	}

	// The file grows, and then another file replaces it.
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\n\nFrom c@x Tue Sep  1 10:00:00 2026\n" + mailText("4", "four")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	rest, _ := readItems(t, file, Options{}, positions[1])
	wantItems(t, rest, "! it does not begin with a header, so it is no mail", "Inbox/ three", "Inbox/ four")
	if err := os.WriteFile(file, []byte("From d@x Tue Sep  1 10:00:00 2026\n"+mailText("5", "five")), 0o644); err != nil {
		t.Fatal(err)
	}
	rest, _ = readItems(t, file, Options{}, positions[1])
	wantItems(t, rest, "Inbox/ five")
}

func TestI16_CSV(t *testing.T) {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	dir := writeFiles(t, map[string]string{
		"enron.csv": "\"file\",\"message\"\n\"allen-p/_sent_mail/1.\"," +
			quote(mailText("1", `a "quoted" one, really`)) + "\r\nbeck-s/inbox/2.," + quote(mailText("2", "two")) +
			"\n\nbeck-s/inbox/3.,nothing\nonly one field\nbeck-s/inbox/4.," + quote(mailText("4", "four")),
		"fields.csv": "\ufeffMessage_ID,Inbox,Folder,Subject,From,To,Date,Body\n<1>,me,in,one,Jane <j@x>,\"a@x, " +
			"b@x\",2026-09-01T10:00:00Z,text\n<2>,me,in,two,j@x,a@x;b@x,,\"text\nmore\"\n,,,,,,,\n",
		"other.csv": "name,age\nx,1\n",
		"empty.csv": "",
		"open.csv":  "file,message\na/b/1.,\"" + mailText("1", "never closed"),
	})
	got, _ := readItems(t, filepath.Join(dir, "enron.csv"), Options{}, "")
	wantItems(t, got, `allen-p/_sent_mail a "quoted" one, really`, "beck-s/inbox two",
		"! it does not begin with a header, so it is no mail", "! the row has fewer fields than there are columns",
		"beck-s/inbox four")
	got, _ = readItems(t, filepath.Join(dir, "fields.csv"), Options{}, "")
	wantItems(t, got, "me/in one", "me/in two", "! it has no subject, sender or text")
	got, _ = readItems(t, filepath.Join(dir, "other.csv"), Options{}, "")
	wantItems(t, got, "! its first line names no column of mail: it has name, age, and should have message, or "+
		"subject, "+
		"from, to, date and body")
	got, _ = readItems(t, filepath.Join(dir, "empty.csv"), Options{}, "")
	wantItems(t, got, "! it is empty")
	got, _ = readItems(t, filepath.Join(dir, "open.csv"), Options{}, "")
	wantItems(t, got, "a/b never closed")
	for _, name := range []string{"enron.csv", "fields.csv", "other.csv", "open.csv"} {
		checkResume(t, filepath.Join(dir, name), Options{})
	}
	checkResume(t, dir, Options{}) // the folder with all files
	s, err := Open(filepath.Join(dir, "fields.csv"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var second reeve.Email
	for item := range s.Items("") {
		if item.Line.Email != nil {
			second = *item.Line.Email
		}
	}
	if fmt.Sprint(second.To) != "[a@x b@x]" || second.Body != "text\nmore" || second.Date != nil {
		t.Errorf("%+v", second)
	}
}

// TestI16_CSVQuotes checks that a missing quote makes only its own row invalid, in files with and without other quotes,
// and if the rest of the file is larger than the limit of a row.
func TestI16_CSVQuotes(t *testing.T) {
	const head, broken = "id,subject,from,body\n",
		"! a quote in the row is never closed, or closed where no field ends; reading went on at the next row that " +
			"is whole"
	row := func(id string) string { return id + ",s" + id + ",j@x,text\n" }
	quoted := func(id string) string {
		return `"` + id + `","s` + id + `","j@x","text, of` + "\n" + `two lines"` + "\n"
	}
	many := strings.Builder{}
	many.WriteString(head + "1,\"s1,j@x,text\n")
	for i := range 200_000 { // more than 8 MiB
		many.WriteString(row("number" + strconv.Itoa(i) + strings.Repeat("x", 20)))
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing else is quoted": {head + row("1") + "2,\"s2,j@x,text\n" + row("3") + row("4"),
			[]string{"mail/ s1", broken, "mail/ s3", "mail/ s4"}},
		"all else is quoted": {head + quoted("1") + "\"2\",\"s2,\"j@x\",\"text\"\n" + quoted("3") + quoted("4"),
			[]string{"mail/ s1", "mail/ s2,j@x\"", "mail/ s3", "mail/ s4"}},
		"before quoted ones": {head + "1,\"s1,j@x,text\n" + quoted("2") + quoted("3"),
			[]string{broken, "mail/ s2", "mail/ s3"}},
		"with lines of its own": {head + "1,s1,j@x,\"text,\nwith more,\nof it\n" + row("2"),
			[]string{broken, "mail/ s2"}},
		"several": {head + "1,\"s1,j@x,text\n" + row("2") + "3,\"s3,j@x,text\n" + row("4") +
			"5,\"s5,j@x,text\n" + row("6"), []string{broken, "mail/ s2", broken, "mail/ s4", broken, "mail/ s6"}},
		"where the file ends":     {head + row("1") + "2,s2,j@x,\"text\nand", []string{"mail/ s1", "mail/ s2"}},
		"where a row is too long": {many.String(), nil},
	} {
		file := filepath.Join(writeFiles(t, map[string]string{"mail.csv": c.text}), "mail.csv")
		got, _ := readItems(t, file, Options{}, "")
		if c.want == nil {
			if len(got) != 200_001 || got[0] != broken || got[200_000] != "mail/ snumber199999"+
				strings.Repeat("x", 20) {
				t.Errorf("%s: %d mails, the first %q, the last %q", name, len(got), got[0], got[len(got)-1])
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
		checkResume(t, file, Options{})
	}
}

func TestI16_JSONL(t *testing.T) {
	dir := writeFiles(t, map[string]string{"mail.jsonl": `{"message_id":"1","inbox":"me","subject":"one",` +
		`"sender":"Jane <j@x>","recipients":["a@x"],"to":["A <a@x>","b@x"],"date":"2026-09-01T10:00:00Z",` +
		`"body":"text","attachments":[{"name":"a.pdf","type":"application/pdf","size":3}]}
{"id":"2","subject":"two","from":{"name":"Jane","email":"j@x"},"to":"a@x, b@x","text":"hello"}

nothing
{"unknown":1}
[1]
{"raw":` + strconv.Quote(mailText("3", "three")) + `,"folder":"sent"}
{"id":"4","subject":"four","from":"j@x","timestamp":1788249600,"text":"a date in seconds"}
{"subject":"half`})
	file := filepath.Join(dir, "mail.jsonl")
	got, _ := readItems(t, file, Options{}, "")
	wantItems(t, got, "me/ one", "mail/ two", "! the line is not a JSON object", "! it has no subject, sender or text",
		"! the line is not a JSON object", "mail/sent three", "mail/ four", "! the line is not a JSON object")
	checkResume(t, file, Options{})
	s, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var first []reeve.Email
	for item := range s.Items("") {
		if item.Line.Email != nil {
			first = append(first, *item.Line.Email)
		}
	}
	if e := first[0]; e.Sender != "j@x" || e.SenderName != "Jane" || fmt.Sprint(e.To) != "[A <a@x> b@x]" ||
		len(e.Attachments) != 1 {
		t.Errorf("%+v", e)
	}
	if e := first[1]; e.Sender != "j@x" || e.SenderName != "Jane" || fmt.Sprint(e.To) != "[a@x b@x]" ||
		e.Body != "hello" {
		t.Errorf("%+v", e)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a/x": "x"})
	for name, opt := range map[string]Options{filepath.Join(dir, "none"): {}, dir: {Format: "pst"}, "/dev/null": {}} {
		if _, err := Open(name, opt); err == nil {
			t.Errorf("%s was opened", name)
		} else if e := reeve.AsError(err); e.Code == reeve.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Items("elsewhere") {
		if reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("an invalid position: %v", err)
		}
	}
	if got, _ := readItems(t, t.TempDir(), Options{}, ""); len(got) != 0 {
		t.Errorf("an empty folder: %v", got)
	}
}

// TestLargeMailDoesNotBlockImport checks that a large mail is shortened or reported as bad. The server refuses requests
// over 16 MiB, so the import could not continue after a larger one.
func TestLargeMailDoesNotBlockImport(t *testing.T) {
	long := strings.Repeat("\xff", 7<<20) // each byte becomes a character of three bytes
	dir := writeFiles(t, map[string]string{
		"a.jsonl": `{"id":"1","subject":"text","body":"` + long + `"}` + "\n" + `{"id":"2","subject":"` + long + `"}` +
			"\n" + `{"id":"3","subject":"small","body":"x"}` + "\n",
	})
	s, err := Open(filepath.Join(dir, "a.jsonl"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for item, err := range s.Items("") {
		b, bad := json.Marshal(item.Line)
		if err != nil || bad != nil || len(b) > 15<<20 {
			t.Errorf("a line of %d bytes, %v, %v", len(b), err, bad)
		}
		if e := item.Line.Email; e != nil {
			got = append(got, fmt.Sprintf("%s: %d bytes, %d cut, %q", e.Subject, len(e.Body), e.TruncatedBytes,
				item.Line.Problems[len(item.Line.Problems)-1]))
		} else {
			got = append(got, "! "+item.Line.Error)
		}
	}
	wantItems(t, got, `text: 1048575 bytes, 20971521 cut, "its text is longer than 1 MiB and was cut"`,
		"! it has more than 8 MiB of subject, addresses and names of attachments",
		`small: 1 bytes, 0 cut, "it has no date"`)
}
