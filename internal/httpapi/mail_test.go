package httpapi_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// found is what email_search gives.
type found struct {
	Emails []reeve.MailHit `json:"emails"`
	Total  int             `json:"total"`
	More   bool            `json:"more"`
	Note   string          `json:"note"`
	Next   string          `json:"next_cursor"`
}

func (f found) ids() (ids []string) {
	for _, e := range f.Emails {
		ids = append(ids, strings.TrimSuffix(strings.TrimPrefix(e.MessageID, "<"), ".sample@fernhill.example>"))
	}
	return ids
}

// post is a workspace with mail and an agent that reads it.
type post struct {
	*reevetest.Host
	t     *testing.T
	agent string
}

func newPost(t *testing.T, w world) post {
	t.Helper()
	p := post{w.start(t), t, ""}
	p.agent = p.Agent("reader", "email_search", "email_get").ID
	return p
}

// sampled is a post with the sample's mail.
func (p post) sampled() post {
	p.t.Helper()
	v, err := p.InstallSampleMail(p.t.Context(), "default")
	if err != nil || v.Seen != 24 || v.State != reeve.ImportDone {
		p.t.Fatalf("%+v: %v", v, err)
	}
	return p
}

func (p post) search(args object) (f found) {
	p.t.Helper()
	r := p.Call(p.agent, "email_search", args)
	if r.IsError {
		p.t.Fatalf("email_search %v: %s: %s", args, r.Code, r.Content)
	}
	if err := json.Unmarshal([]byte(r.Content), &f); err != nil {
		p.t.Fatalf("email_search %v: %v: %s", args, err, r.Content)
	}
	return f
}

// finds checks which mails a search gives, in any order.
func (p post) finds(args object, ids ...string) found {
	p.t.Helper()
	f := p.search(args)
	got := f.ids()
	slices.Sort(got)
	if !slices.Equal(got, ids) {
		p.t.Errorf("%v found %v, want %v", args, got, ids)
	}
	return f
}

func (p post) add(source, after, position string, emails ...object) reeve.MailImport {
	p.t.Helper()
	v := decode[reeve.MailImport](p.t, p.Want(201, nil, "POST", "/api/mail/imports", object{"source": source}))
	var lines strings.Builder
	for _, e := range emails {
		lines.WriteString(mailLine(e))
	}
	return decode[reeve.MailImport](p.t, p.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?"+
		url.Values{"after": {after}, "position": {position}}.Encode(), lines.String()))
}

func TestI13_Search(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w)
		none := p.Call(p.agent, "email_search", object{"query": "invoice"})
		if !none.IsError || none.Code != reeve.ToolFailed ||
			!strings.Contains(none.Content, "no mail has been imported") {
			t.Errorf("without a corpus: %+v", none)
		}
		p.sampled()
		p.finds(object{"query": "frost damage"}, "005", "006", "007")
		p.finds(object{"query": "invoices"}, "001", "011", "014") // stemmed
		p.finds(object{"query": "INVOICE overdue"}, "011")
		p.finds(object{"query": `"white climbing roses"`}, "009")
		p.finds(object{"query": `"roses climbing"`})
		p.finds(object{"query": "thermostat OR warranty"}, "005", "006", "012", "014", "019")
		p.finds(object{"query": "thermostat -seedlings"}, "006", "014")
		p.finds(object{"query": "thermostat NOT seedlings"}, "006", "014")
		p.finds(object{"query": "subject:catalogue from:tomas"}, "002", "015", "023")
		p.finds(object{"query": `subject:"catalogue meeting"`}, "015")
		p.finds(object{"query": `-subject:re from:klarglas`}, "001", "011")
		p.finds(object{"query": "therm*"}, "005", "006", "014")
		p.finds(object{"query": "attachment:datasheet"}, "012")
		p.finds(object{"query": "Grüße"}, "016")
		p.finds(object{"query": "grusse mochte"}) // not the same word
		p.finds(object{"query": "mochte"}, "016") // marks do not matter
		p.finds(object{"query": "zebra"})
		if f := p.search(object{"query": "zebra"}); f.Emails == nil || f.Total != 0 {
			t.Errorf("an empty result is %+v", f)
		}

		// Filters.
		p.finds(object{"query": "catalogue", "inbox_id": "tomas@fernhill.example"}, "021", "022", "023")
		p.finds(object{"query": "catalogue", "inbox_id": "tomas"}, "021", "022", "023")
		p.finds(object{"query": "invoice", "sender": "rau"}, "014")
		p.finds(object{"query": "invoice", "sender": "accounts@klarglas.example"}, "001", "011")
		p.finds(object{"query": "catalogue", "recipient": "quotes@odal.example"}, "023")
		p.finds(object{"query": "", "date_from": "2026-09-16"}, "020", "024")
		p.finds(object{"query": "", "date_to": "2026-09-01", "inbox_id": "mara"}, "001", "002", "003")
		p.finds(object{"query": "", "date_from": "2026-09-07T08:00:00+02:00", "date_to": "2026-09-07T13:45:01+02:00"},
			"011", "012")
		if f := p.search(object{"query": "", "sender": "klarglas"}); fmt.Sprint(f.ids()) != "[011 001]" {
			t.Errorf("filters alone give the newest first: %v", f.ids())
		}
		if f := p.finds(object{"query": "invoice", "inbox_id": "nobody@else.example"}); !strings.Contains(f.Note,
			"mara@fernhill.example") {
			t.Errorf("an inbox that is not there: %q", f.Note)
		}
		for _, bad := range []object{{"query": "x", "date_from": "yesterday"}, {"query": "x", "date_to": "2026-13-01"},
			{"query": "x", "limit": 0}, {"query": "x", "limit": 51}, {"query": "x", "limit": "x"}, {}} {
			if r := p.Do("POST", "/api/agents/"+p.agent+"/calls",
				object{"tool": "email_search", "args": bad}); !strings.Contains(string(r.Body),
				`"code":"VALIDATION_ERROR"`) {
				t.Errorf("%v: %d %s", bad, r.Status, r.Body)
			}
		}

		// What is said in the subject counts for more, and what matched is marked.
		f := p.search(object{"query": "catalogue"})
		if top := f.Emails[0].Subject; !strings.Contains(top, "catalogue") {
			t.Errorf("the best mail about the catalogue is %q", top)
		}
		for _, e := range p.search(object{"query": "fog orchard", "limit": 1}).Emails {
			if !strings.Contains(e.Snippet, "<mark>orchard</mark> in <mark>fog</mark>") ||
				!strings.HasPrefix(e.Snippet, "Subject: Minutes") || !strings.Contains(e.Snippet, " | Body: ") {
				t.Errorf("snippet %q", e.Snippet)
			}
		}
		for query, want := range map[string]string{"thermostats": "<mark>thermostat</mark>",
			"subject:printing": "<mark>printing</mark>", "from:rau": "<mark>rau</mark>", "to:odal": "<mark>odal</mark>",
			"attachment:datasheet": "<mark>datasheet</mark>", "mochte": "<mark>möchte</mark>",
			"klarglas.example": "<mark>klarglas"} {
			for _, e := range p.search(object{"query": query}).Emails {
				if !strings.Contains(strings.ToLower(e.Snippet), strings.ToLower(want)) {
					t.Errorf("%s: snippet %q has no %q", query, e.Snippet, want)
				}
			}
		}
	})
}

// queries are texts that somebody or something may search for.
func queries() []string {
	list := []string{"", " ", `"`, `""`, `"""`, `" " "`, `'`, "''", `\`, "*", "**", "a*", "*a", "a**b*", "-", "--",
		"- -", "-a", "--a", "-\"", "-\"a", `-"a b`, "OR", "OR OR", "a OR", "OR a", "a OR OR b", "AND", "a AND", "NOT",
		"NOT NOT a", "a NOT",
		"NEAR", "NEAR(", "NEAR(a b, 2)", "a NEAR/2 b", "(", ")", "((((", "(a", "a)", "{", "{subject}: a", "subject:",
		"subject: a", "subject:subject:a", `subject:"`, `subject:"a`, `-subject:"a b"`, "-from:", "from:a@b.c",
		"nofield:a", "a:b:c", ":", ":a", "a:",
		"^a", "a + b", "+a", "a & b", "a && b", "a | b", "a || b", "!a", "a ! b", "a <-> b", "a <2> b", "a:*", "a:A",
		"'a':B", "a;b", "a--b", "/* a */", "$1", "$$", "%", "_", "?", "a?b", "\x00", "a\x00b", "\x01\x02", "\ufffd",
		"\u202e",
		"é", "日本語", "日本 語", "😀", "😀 a", "👩‍👩‍👧", "ﬁ", "ß", "İ", "ı", "\u0301", "a\u0301", "\u0301a", "١٢٣", "½", "²",
		"１２", "\U0001f1e9\U0001f1ea", "\ue000", "the", "the and of", "to be or not to be", "1e5", "3.14", "-1", "1/2",
		"0x1f", "a_b", "user@host.example",
		"http://a.example/b?c=d&e=f#g", "C:\\a\\b", "/etc/passwd", "<b>bold</b>", "&amp;", "<mark>",
		"'; DROP TABLE emails; --", `") OR 1=1`, "emails_words MATCH 'a'", "rank", "rowid", "AND AND OR NOT", "- OR -",
		`"" OR ""`, `"a" "b" OR "c" -"d" e*`,
		strings.Repeat("a ", 5000), strings.Repeat("word ", 2000), strings.Repeat("(", 10240),
		strings.Repeat(`"`, 10241), strings.Repeat("OR ", 3400), strings.Repeat("-a ", 3400),
		strings.Repeat("x", 10240), strings.Repeat("x", 100_000),
		strings.Repeat("a OR ", 2000), strings.Repeat("ä", 5000), strings.Repeat("*", 10240),
		strings.Repeat("subject:", 1300), strings.Repeat(`"a b" `, 1700)}
	r := rand.New(rand.NewPCG(1, 2)) // the same each time
	bits := []string{"a", "invoice", `"`, "-", "*", "(", ")", " ", " ", "OR", "AND", "NOT", ":", "subject:", "from:",
		"'", "\\", "\x00", "é", "日", "😀", "&", "|", "!", "<->", "NEAR/3", "{", "}", "^", "+", "1", ".", "@", "\n", "\t",
		"%", "$1", ",", ";"}
	for range 300 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(bits[r.IntN(len(bits))])
		}
		list = append(list, b.String())
	}
	return list
}

func TestI13_AnyTextIsAQuery(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w).sampled()
		for _, q := range queries() {
			p.search(object{"query": q})
		}
		for _, q := range queries()[:60] {
			p.search(object{"query": "invoice", "sender": q, "recipient": q, "inbox_id": q})
		}
	})
}

// What is no letter and no digit is between words, whatever it is.
func TestI13_PunctuationIsNoWord(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w)
		for i, sign := range []string{"\u00a0", "\u2003", "\u200b", "\u3000", "\ufffd", "€", "→", "©", "🎉", "“", "—",
			"÷", "│", "、", "！", "\x00"} {
			word := "walrus" + string(rune('a'+i))
			p.add("s"+word, "", "1", object{"message_id": word, "inbox": "x", "subject": "un" + word + sign + word +
				sign, "body": sign + "b" + word + sign + "penguin"})
			p.finds(object{"query": word}, word)
			p.finds(object{"query": "subject:un" + word}, word)
			p.finds(object{"query": `"b` + word + ` penguin"`}, word)
		}
		p.add("letters", "", "1", object{"message_id": "letters", "inbox": "x",
			"body": "naïve Ångström 東京 Привет ½ ² ª µ"})
		for _, word := range []string{"naive", "angstrom", "Привет", "東京"} {
			p.finds(object{"query": word}, "letters")
		}
	})
}

// A mail that does not say when it was sent was sent in no span of time, the year 1970 included. Without dates it is
// found as any other.
func TestI13_MailWithoutADate(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w)
		p.add("s", "", "1", object{"message_id": "none", "inbox": "x", "body": "penguin"},
			object{"message_id": "epoch", "inbox": "x", "body": "penguin", "date": "1970-01-01T00:00:00Z"},
			object{"message_id": "moon", "inbox": "x", "body": "penguin", "date": "1969-07-20T20:17:00Z"},
			object{"message_id": "new", "inbox": "x", "body": "penguin", "date": "2026-09-01T10:00:00Z"})
		for _, query := range []string{"penguin", "", "-walrus"} { // ranked, and by date
			for _, c := range []struct {
				from, to string
				ids      []string
			}{
				{"1970-01-01", "1970-12-31", []string{"epoch"}},
				{"1960-01-01", "1980-01-01", []string{"epoch", "moon"}},
				{"", "2030-01-01", []string{"epoch", "moon", "new"}},
				{"1900-01-01", "", []string{"epoch", "moon", "new"}}, {"2000-01-01", "2001-01-01", nil},
			} {
				args := object{"query": query}
				for name, v := range map[string]string{"date_from": c.from, "date_to": c.to} {
					if v != "" {
						args[name] = v
					}
				}
				p.finds(args, c.ids...)
			}
		}
		p.finds(object{"query": "penguin"}, "epoch", "moon", "new", "none")
		p.finds(object{"query": "-walrus"}, "epoch", "moon", "new", "none")
		if f := p.search(object{"query": "penguin", "date_to": "1970-01-01",
			"date_from": "1970-01-01"}); len(f.Emails) != 1 || f.Emails[0].Date == nil ||
			f.Emails[0].Date.UnixMilli() != 0 {
			t.Errorf("%+v", f.Emails)
		}
	})
}

func TestI07_MailLimit(t *testing.T) {
	t.Parallel()
	p := newPost(t, newWorld(t)).sampled()
	ask := func(agent string, args object) found {
		r := p.Call(agent, "email_search", args)
		var f found
		if err := json.Unmarshal([]byte(r.Content), &f); r.IsError || err != nil {
			t.Fatal(r.Content, err)
		}
		return f
	}
	p.Want(201, nil, "POST", "/api/agents", object{"name": "eager"})
	p.Want(201, nil, "POST", "/api/agents/eager/tools",
		object{"tool_id": "email_search", "config": object{"default_limit": 20}})
	for _, bad := range []any{0, -1, 51, "x"} {
		refusedAt(t, p.Do("POST", "/api/agents/reader/tools",
			object{"tool_id": "email_search", "config": object{"default_limit": bad}}), "/config/default_limit")
	}
	all := object{"query": "fernhill"}
	if f := ask(p.agent, all); len(f.Emails) != 10 || f.Total != 10 || !f.More {
		t.Errorf("without settings: %d mails, more %v", len(f.Emails), f.More)
	}
	if f := ask("eager", all); len(f.Emails) != 20 {
		t.Errorf("with default_limit 20: %d mails", len(f.Emails))
	}
	if f := ask("eager", object{"query": "fernhill", "limit": 5}); len(f.Emails) != 5 {
		t.Errorf("with 5 asked for: %d mails", len(f.Emails))
	}
	p.Want(201, nil, "POST", "/api/agents", object{"name": "tomas"})
	p.Want(201, nil, "POST", "/api/agents/tomas/tools",
		object{"tool_id": "email_search", "config": object{"default_inbox": "tomas@fernhill.example"}})
	if f := ask("tomas", object{"query": "catalogue"}); len(f.Emails) != 3 {
		t.Errorf("with an inbox of its own: %v", f.ids())
	}
}

func TestI14_Get(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w).sampled()
		var e reeve.Email
		if err := json.Unmarshal([]byte(p.Call(p.agent, "email_get",
			object{"message_id": "<012.sample@fernhill.example>"}).Content), &e); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(e.Recipients) != "[mara@fernhill.example tomas@fernhill.example]" ||
			e.Sender != "sales@lumentrade.example" || e.SenderName != "Lumen Trade" || len(e.Attachments) != 2 ||
			fmt.Sprint(e.Cc) != "[Tomas Berg <tomas@fernhill.example>]" ||
			!strings.HasPrefix(e.Body, "Dear Ms Lindt,\n\nas discussed") || e.Inbox != "mara@fernhill.example" ||
			e.Date == nil || e.Date.Format("2006-01-02") != "2026-09-07" {
			t.Errorf("%+v", e)
		}
		for _, id := range []string{"<none@x>", "nothing", "' OR 1=1 --", "\x01"} {
			r := p.Call(p.agent, "email_get", object{"message_id": id})
			if !r.IsError || r.Code != reeve.ToolFailed || !strings.Contains(r.Content, "Email not found: "+id) {
				t.Errorf("%q: %+v", id, r)
			}
		}
	})
}

// Mail is its workspace's: neither a search nor an id finds another's.
func TestI13_MailOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w).sampled()
		p.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		in := as(token(t, p.Host, reeve.Owner, "beta"), "beta")
		p.Want(201, nil, "POST", "/api/agents", object{"name": "spy"}, in...)
		for _, id := range []string{"email_search", "email_get"} {
			p.Want(201, nil, "POST", "/api/agents/spy/tools", object{"tool_id": id}, in...)
		}
		call := func(tool string, args object) string {
			return string(p.Do("POST", "/api/agents/spy/calls", object{"tool": tool, "args": args}, in...).Body)
		}
		if s := call("email_search", object{"query": "invoice"}); !strings.Contains(s, "no mail has been imported") {
			t.Error(s)
		}
		v := decode[reeve.MailImport](t, p.Want(201, nil, "POST", "/api/mail/imports", object{"source": "s"}, in...))
		p.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1",
			mailLine(object{"message_id": "<b@x>", "inbox": "mara@fernhill.example", "subject": "invoice of beta"}),
			in...)
		for _, args := range []object{{"query": "invoice"}, {"query": "invoice", "inbox_id": "mara"}, {"query": ""},
			{"query": "-zebra"}} {
			if s := call("email_search", args); strings.Contains(s, "klarglas") || !strings.Contains(s, "invoice") ||
				!strings.Contains(s, "b@x") {
				t.Errorf("%v: %s", args, s)
			}
		}
		if s := call("email_get", object{"message_id": "<001.sample@fernhill.example>"}); !strings.Contains(s,
			"Email not found") {
			t.Error(s)
		}
	})
}

// TestI15_IndexFollows adds, changes and removes mails, and compacts the database.
func TestI15_IndexFollows(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w).sampled()
		mail := func(id, body string) object {
			return object{"message_id": id, "inbox": "box", "subject": "letter", "body": body}
		}
		p.add("one", "", "1", mail("a", "walrus"), mail("b", "walrus penguin"))
		p.finds(object{"query": "walrus"}, "a", "b")
		v := decode[reeve.MailImport](t, p.Want(201, nil, "POST", "/api/mail/imports",
			object{"source": "two", "replace": true}))
		got := decode[reeve.MailImport](t, p.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1",
			mailLine(mail("a", "ostrich"))))
		if got.Replaced != 1 || got.Added != 0 {
			t.Errorf("%+v", got)
		}
		p.finds(object{"query": "walrus"}, "b")
		p.finds(object{"query": "ostrich"}, "a")
		p.Stop()
		compact(t, w)
		p.Host = w.start(t)
		p.finds(object{"query": "penguin"}, "b")
		p.finds(object{"query": "ostrich"}, "a")
		p.finds(object{"query": "frost damage"}, "005", "006", "007")
		p.Want(204, nil, "DELETE", "/api/mail/inboxes/box", nil)
		p.finds(object{"query": "penguin OR ostrich OR walrus"})
		p.finds(object{"query": "frost damage"}, "005", "006", "007")
		p.add("three", "", "1", mail("c", "heron"))
		p.finds(object{"query": "heron OR penguin"}, "c")
		for _, m := range decode[api.MailboxList](t, p.Want(200, nil, "GET", "/api/mail/inboxes", nil)).Mailboxes {
			if want := map[string]int64{"box": 1, "mara@fernhill.example": 20,
				"tomas@fernhill.example": 4}[m.Name]; m.Messages != want {
				t.Errorf("%s has %d mails, want %d", m.Name, m.Messages, want)
			}
		}
		if w.cfg.Database == "" {
			p.Stop()
			// compares the index with the mails
			file(t, w, "INSERT INTO emails_words (emails_words, rank) VALUES ('integrity-check', 1)")
		}
	})
}

// compact lets the engine write its tables anew.
func compact(t *testing.T, w world) {
	t.Helper()
	if w.cfg.Database == "" {
		execute(t, w, "VACUUM")
	} else {
		execute(t, w, "VACUUM FULL emails")
	}
}

// file runs a statement on a database that no server uses.
func file(t *testing.T, w world, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.cfg.Dir, "reeve.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestBadInput_MailLines(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		p := newPost(t, w)
		id := decode[reeve.MailImport](t, p.Want(201, nil, "POST", "/api/mail/imports", object{"source": "s"})).ID
		at := "/api/mail/imports/" + id + "/batches"
		good := mailLine(object{"message_id": "a", "inbox": "x", "subject": "one"})
		for _, text := range []string{"nope", "{}", "[]", "null", `{"email":{}}`, `{"email":{"inbox":""}}`,
			`{"email":{"inbox":"x","form":"y"}}`, `{"email":{"inbox":"x"},"bad":"no"}`, `{"email":{"inbox":"x"}} {}`,
			`{"email":{"inbox":"a\nb"}}`,
			`{"email":{"inbox":"x","date":"yesterday"}}`, `{"email":{"inbox":"` + strings.Repeat("x", 301) + `"}}`,
			`{"email":7}`, "\xff", "\x00"} {
			r := p.Do("POST", at+"?position=1", good+text+"\n")
			if bad(t, text, r, reeve.Validation); !strings.Contains(string(r.Body), "line 2") {
				t.Errorf("%s: %s", text, r.Body)
			}
		}
		bad(t, "too many", p.Do("POST", at+"?position=1", strings.Repeat(good, 2001)), reeve.TooLarge)
		bad(t, "no position", p.Do("POST", at, good), reeve.Validation)
		bad(t, "too large", p.Do("POST", at+"?position=1", strings.Repeat(" ", 17<<20)), reeve.TooLarge)
		if v := decode[reeve.MailImport](t, p.Want(200, nil, "GET", "/api/mail/imports/"+id, nil)); v.Seen != 0 ||
			v.Position != "" {
			t.Errorf("something was taken: %+v", v)
		}

		// What is odd is kept as it can be, and the same batch is taken once.
		odd := mailLine(object{"message_id": "n\x00ul", "inbox": "x", "subject": "a\x00b", "body": "c\x00d penguin",
			"sender": "e\x00@f", "recipients": []string{"g\x00"}}) +
			mailLine(object{"inbox": "x", "subject": "no id", "body": "penguin"}) +
			mailLine(object{"inbox": "x", "subject": "no id", "body": "penguin"}) +
			mailLine(object{"message_id": "twin", "inbox": "x", "body": "penguin"}) +
			mailLine(object{"message_id": "twin", "inbox": "x", "body": "other penguin"}) +
			mailLine(object{"message_id": strings.Repeat("long", 1000), "inbox": "x", "body": "penguin",
				"date": "2040-01-01T00:00:00Z"}) +
			mailLine(object{"message_id": "old", "inbox": "x", "body": "penguin", "date": "1970-01-01T00:00:00Z"}) +
			mailLine(object{"message_id": "big", "inbox": "x", "body": "penguin " +
				strings.Repeat("é", reeve.MaxMailText)}) + `{"place":"1.","bad":"no header","notes":["odd"]}` + "\n"
		for range 2 {
			v := decode[reeve.MailImport](t, p.Want(200, nil, "POST", at+"?position=1", odd))
			if v.Seen != 9 || v.Added != 7 || v.Duplicate != 1 || v.Unreadable != 1 || len(v.Problems) != 3 {
				t.Fatalf("%+v", v)
			}
		}
		if f := p.search(object{"query": "penguin"}); f.Total != 7 {
			t.Errorf("found %v", f.ids())
		}
		refused(t, p.Do("POST", at+"?position=3&after=2", good), 409, reeve.Conflict)
		refused(t, p.Do("POST", "/api/mail/imports/"+id+"/finish?position=7", nil), 409, reeve.Conflict)
		for range 2 {
			if v := decode[reeve.MailImport](t, p.Want(200, nil, "POST", "/api/mail/imports/"+id+"/finish?position=1",
				nil)); !v.IsDone() || v.FinishedAt == nil {
				t.Errorf("%+v", v)
			}
		}
		refused(t, p.Do("POST", at+"?position=2&after=1", good), 409, reeve.Conflict)
		if v := decode[reeve.MailImport](t, p.Want(201, nil, "POST", "/api/mail/imports",
			object{"source": "s"})); v.ID == id {
			t.Error("an import that is done was taken up")
		}
	})
}
