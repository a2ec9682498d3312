package httpapi_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"mime/quotedprintable"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"reeve"
	"reeve/toolbox/mail/mailbox"
)

// scanWords splits a text into folded words. It is an independent implementation of the rule in docs/mail.md.
func scanWords(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
	})
	for i, w := range list {
		list[i] = scanFold(w)
	}
	return list
}

// scanFold returns a word in lower case, without accents on Latin letters.
func scanFold(word string) string {
	var out []rune
	for _, r := range norm.NFD.String(word) {
		n := len(out)
		if unicode.Is(unicode.Mn, r) && n > 0 && out[n-1] < 128 && unicode.IsLetter(out[n-1]) {
			continue
		}
		out = append(out, r)
	}
	return strings.ReplaceAll(strings.ToLower(norm.NFC.String(string(out))), "ς", "σ")
}

// scannedMail has the words of a mail by field.
type scannedMail struct {
	id     string
	fields map[string][]string
}

// contains reports whether words follow each other in a field, or in any field if field is empty. With prefix, the last
// word may be the beginning of a longer word.
func (s scannedMail) contains(field string, words []string, prefix bool) bool {
	for name, text := range s.fields {
		if field != "" && field != name {
			continue
		}
		for i := 0; i+len(words) <= len(text); i++ {
			last := i + len(words) - 1
			if slices.Equal(text[i:last], words[:len(words)-1]) &&
				(text[last] == words[len(words)-1] || prefix && strings.HasPrefix(text[last], words[len(words)-1])) {
				return true
			}
		}
	}
	return false
}

var (
	mixedWords = strings.Fields(`pervasive pervasively running runs policies policy happily happiness organization
		organizations meeting meetings meet considered consideration generalised relational conditional hopping agreed
		Café naïveté ÅNGSTRÖM façade résumé re\u0301sume\u0301 Müller São Việt Łódź Straße STRASSE don't O’Brien's
		well-known state-of-the-art co-operate snake_case iPhone MacBook 2026 2026-11-18 1e5abc 2e3e4 12th 0x1F 3.14 v2
		user@example.org https://example.org/running?x=policies Привет привычка ΟΔΟΣ οδός 東京都 हिन्दी हिम 🎉party €100
		50% C++ (bracketed) "quoted" “curly” ½cup x² the a I`)
	mixedNames = []string{"Harry Potter", "Emmylou Harris", "Traci Lords", "Dick Tracy", "Ann Jones", "Jone Olsen",
		"Ms. O'Neil-Núñez", "Jürgen Müller", "MULLER, Hans", "Jean-Luc  Dupont", "Policy\tDesk", "Никита Иванов"}
)

// createMixedMails returns n random mails and their words. The mails are the same in each run. Their bodies are
// quoted-printable, as mail programs send them.
func createMixedMails(t *testing.T, n int) (mails []reeve.Email, words []scannedMail) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 43))
	randomOf := func(list []string) string {
		return strings.ReplaceAll(list[r.IntN(len(list))], `\u0301`, "\u0301")
	}
	randomText := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(randomOf(mixedWords) + []string{" ", " ", "\n", ", ", " – ", "\u00a0"}[r.IntN(6)])
		}
		return b.String()
	}
	randomAddress := func() string {
		name := randomOf(mixedNames)
		parts := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
		box := strings.ToLower(strings.Join(parts, "."))
		return fmt.Sprintf("%s <%s@%s.example>", name, box, []string{"harris", "harry", "policy"}[r.IntN(3)])
	}
	for i := range n {
		var body strings.Builder
		w := quotedprintable.NewWriter(&body)
		if _, err := w.Write([]byte(randomText(r.IntN(25)))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		e, _, err := mailbox.Message(strings.NewReader("MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n" +
			"Content-Transfer-Encoding: quoted-printable\n\n" + body.String()))
		if err != nil {
			t.Fatal(err)
		}
		e.MessageID, e.Inbox, e.Subject = fmt.Sprintf("m%03d", i), "box", strings.TrimSpace(randomText(r.IntN(5)))
		e.Sender, e.SenderName = reeve.ParseAddress(randomAddress())
		e.To, e.Cc = []string{randomAddress()}, []string{randomAddress(), randomAddress()}[:r.IntN(3)]
		if r.IntN(3) == 0 {
			e.Attachments = []reeve.EmailAttachment{{Name: strings.TrimSpace(randomText(2)) + ".pdf"},
				{Name: "running_a.txt"}}
		}
		var files []string
		for _, a := range e.Attachments {
			files = append(files, a.Name)
		}
		mails = append(mails, e)
		// A phrase may span two recipients or two file names, because each list is indexed as one text.
		words = append(words, scannedMail{e.MessageID, map[string][]string{
			"subject": scanWords(e.Subject), "body": scanWords(e.Body),
			"from":       scanWords(e.SenderName + " <" + e.Sender + ">"),
			"to":         scanWords(strings.Join(slices.Concat(e.To, e.Cc), " ")),
			"attachment": scanWords(strings.Join(files, " "))}})
	}
	return mails, words
}

// searchAll returns the sorted ids of all mails that a search finds.
func (srv mailServer) searchAll(args object) []string {
	srv.t.Helper()
	ids := []string{}
	args["limit"] = 50
	for {
		f := srv.search(args)
		ids = append(ids, f.ids()...)
		if f.Next == "" {
			slices.Sort(ids)
			return ids
		}
		args["cursor"] = f.Next
	}
}

// Searches find the same mails as a scan of all mails. A prefix matches the beginning of a word as it is written, and
// names are not stemmed.
func TestI13_PrefixesAndNamesMatchAsWritten(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		t.Parallel()
		srv := newMailServer(t, env)
		mails, words := createMixedMails(t, 120)
		batch := make([]object, len(mails))
		for i, e := range mails {
			batch[i] = object{"message_id": e.MessageID, "inbox": e.Inbox, "subject": e.Subject, "sender": e.Sender,
				"sender_name": e.SenderName, "to": e.To, "cc": e.Cc, "body": e.Body, "attachments": e.Attachments}
		}
		srv.importMails("varied", "", "1", batch...)
		check := func(args object, keep func(scannedMail) bool) {
			t.Helper()
			want := []string{}
			for _, s := range words {
				if keep(s) {
					want = append(want, s.id)
				}
			}
			if got := srv.searchAll(args); !slices.Equal(got, want) {
				t.Errorf("%v found %v, want %v", args, got, want)
			}
		}
		r := rand.New(rand.NewPCG(43, 7))
		name := func(field string) string {
			if field == "" {
				return ""
			}
			return field + ":"
		}
		fields := []string{"", "", "subject", "body", "from", "to", "attachment"}
		for range 250 {
			field := fields[r.IntN(len(fields))]
			text := words[r.IntN(len(words))].fields[cmp.Or(field, "body")]
			if len(text) == 0 {
				continue
			}
			at := r.IntN(len(text))
			letters := []rune(text[at])
			start := string(letters[:1+r.IntN(len(letters))])
			asked := []string{scanFold(start)}
			if r.IntN(5) == 0 && at > 0 { // jane.do* is a phrase of two words
				start, asked = text[at-1]+"."+start, []string{text[at-1], asked[0]}
			}
			if r.IntN(3) == 0 {
				start = strings.ToUpper(start)
			}
			check(object{"query": name(field) + start + "*"},
				func(s scannedMail) bool { return s.contains(field, asked, true) })
		}
		for range 40 { // whole words of names, as from:, as to:, and as arguments
			field, argument := "from", "sender"
			if r.IntN(2) == 0 {
				field, argument = "to", "recipient"
			}
			text := words[r.IntN(len(words))].fields[field]
			asked := text[r.IntN(len(text)):][:1]
			keep := func(s scannedMail) bool { return s.contains(field, asked, false) }
			check(object{"query": field + ":" + asked[0]}, keep)
			check(object{"query": "", argument: strings.ToUpper(asked[0])}, keep)
		}
		// Queries that combine prefixes and names with stemmed words, which are in another index.
		hasAnyWord := func(s scannedMail, words ...string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return s.contains("", []string{w}, false) })
		}
		hasRun := func(s scannedMail) bool { return hasAnyWord(s, "running", "runs") }
		hasPrefix := func(s scannedMail, w string) bool { return s.contains("", []string{w}, true) }
		isFromHarry := func(s scannedMail) bool { return s.contains("from", []string{"harry"}, false) }
		hasRunOrX := func(s scannedMail) bool { return hasRun(s) || hasPrefix(s, "x") }
		for query, keep := range map[string]func(scannedMail) bool{
			"run policie*":         func(s scannedMail) bool { return hasRun(s) && hasPrefix(s, "policie") },
			"policie* run":         func(s scannedMail) bool { return hasRun(s) && hasPrefix(s, "policie") },
			"run OR policie*":      func(s scannedMail) bool { return hasRun(s) || hasPrefix(s, "policie") },
			"run -policie*":        func(s scannedMail) bool { return hasRun(s) && !hasPrefix(s, "policie") },
			"policie* -run":        func(s scannedMail) bool { return !hasRun(s) && hasPrefix(s, "policie") },
			"-policie* -run":       func(s scannedMail) bool { return !hasRun(s) && !hasPrefix(s, "policie") },
			"from:harry run":       func(s scannedMail) bool { return hasRun(s) && isFromHarry(s) },
			"run OR x* from:harry": func(s scannedMail) bool { return hasRunOrX(s) && isFromHarry(s) },
			"run OR x* mull* OR hop": func(s scannedMail) bool {
				return hasRunOrX(s) && (hasPrefix(s, "mull") || hasAnyWord(s, "hopping"))
			},
		} {
			check(object{"query": query}, keep)
		}
	})
}

// A prefix stays a prefix next to punctuation and at the end of a phrase.
func TestI13_PunctuationAroundPrefix(t *testing.T) {
	onBothEngines(t, func(t *testing.T, env testEnv) {
		t.Parallel()
		srv := newMailServer(t, env)
		mail := func(id, body string) object {
			return object{"message_id": id, "inbox": "box", "sender": "s@x.example", "subject": "none", "body": body}
		}
		srv.importMails("one", "", "1", mail("a", "a pervasive smell"), mail("b", "of perva alone"),
			mail("c", "smell pervasive"))
		for _, sign := range strings.Split(". ! ? / : , ; ) ] } > ' ” … - _ + = @ # % & | ~ ` ^ \\ ** *. .* 。 —", " ") {
			for _, before := range []string{"", "(", "[", "{", "<", "“", "#"} {
				srv.wantFound(object{"query": before + "perva*" + sign}, "a", "b", "c")
				srv.wantFound(object{"query": "smell " + before + "perva*" + sign + " -alone"}, "a", "c")
				srv.wantFound(object{"query": "body:" + before + "perva*" + sign}, "a", "b", "c")
			}
			srv.wantFound(object{"query": "-perva*" + sign})
		}
		for _, query := range []string{`"perva*"`, `"perva"*`, `"perva*."`, `"perva* "`, `body:"perva*"`} {
			srv.wantFound(object{"query": query}, "a", "b", "c")
			srv.wantFound(object{"query": "-" + query})
		}
		srv.wantFound(object{"query": `"a perva*"`}, "a")
		srv.wantFound(object{"query": `"smell perva"*`}, "c")
		srv.wantFound(object{"query": `"perva"`}, "b") // a word without a star
		srv.wantFound(object{"query": "perva."}, "b")
		srv.wantFound(object{"query": "perva*x"}) // a star inside separates two words
		srv.wantFound(object{"query": "* perva"}, "b")
	})
}

// The index for prefixes and names follows replaced and deleted mails.
func TestI15_ExactWordIndexFollowsChanges(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		t.Parallel()
		srv := newMailServer(t, env)
		mail := func(id, body string) object {
			return object{"message_id": id, "inbox": "box", "sender": "harris@x.example", "body": body}
		}
		srv.importMails("one", "", "1", mail("a", "a pervasive smell"), mail("b", "all pervading"))
		srv.wantFound(object{"query": "pervasi*"}, "a")
		srv.wantFound(object{"query": "pervad*"}, "b")
		srv.wantFound(object{"query": "from:harris"}, "a", "b")
		srv.wantFound(object{"query": "from:harry"})
		v := decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports",
			object{"source": "two", "replace": true}))
		srv.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1",
			encodeMailLine(mail("a", "an intrusive smell")))
		srv.wantFound(object{"query": "pervasi*"})
		srv.wantFound(object{"query": "intrusi*"}, "a")
		srv.Want(204, nil, "DELETE", "/api/mail/inboxes/box", nil)
		srv.importMails("three", "", "1", mail("c", "a decisive smell"))
		srv.wantFound(object{"query": "intrusi* OR pervad* OR decisi*"}, "c")
		if env.cfg.Database == "" {
			srv.Stop()
			execOffline(t, env, "INSERT INTO emails_written (emails_written, rank) VALUES ('integrity-check', 1)")
		}
	})
}

// execOffline runs a statement on a database while no server uses it.
func execOffline(t *testing.T, env testEnv, statement string) {
	t.Helper()
	if env.cfg.Database == "" {
		execSQLite(t, env, statement)
		return
	}
	c, err := pgx.Connect(t.Context(), env.cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
