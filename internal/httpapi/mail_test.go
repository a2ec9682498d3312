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

// searchResult is the result of email_search.
type searchResult struct {
	Emails []reeve.MailHit `json:"emails"`
	Total  int             `json:"total"`
	More   bool            `json:"more"`
	Note   string          `json:"note"`
	Next   string          `json:"next_cursor"`
}

func (f searchResult) ids() (ids []string) {
	for _, e := range f.Emails {
		ids = append(ids, strings.TrimSuffix(strings.TrimPrefix(e.MessageID, "<"), ".sample@fernhill.example>"))
	}
	return ids
}

// mailServer is a server with an agent that can search mail.
type mailServer struct {
	*reevetest.Host
	t     *testing.T
	agent string
}

func newMailServer(t *testing.T, env testEnv) mailServer {
	t.Helper()
	srv := mailServer{env.start(t), t, ""}
	srv.agent = srv.Agent("reader", "email_search", "email_get").ID
	return srv
}

// installSample imports the sample mail and returns the server.
func (srv mailServer) installSample() mailServer {
	srv.t.Helper()
	v, err := srv.InstallSampleMail(srv.t.Context(), "default")
	if err != nil || v.Seen != 24 || v.State != reeve.ImportDone {
		srv.t.Fatalf("%+v: %v", v, err)
	}
	return srv
}

func (srv mailServer) search(args object) (f searchResult) {
	srv.t.Helper()
	r := srv.Call(srv.agent, "email_search", args)
	if r.IsError {
		srv.t.Fatalf("email_search %v: %s: %s", args, r.Code, r.Content)
	}
	if err := json.Unmarshal([]byte(r.Content), &f); err != nil {
		srv.t.Fatalf("email_search %v: %v: %s", args, err, r.Content)
	}
	return f
}

// wantFound checks the ids of the mails that a search finds. ids must be sorted.
func (srv mailServer) wantFound(args object, ids ...string) searchResult {
	srv.t.Helper()
	f := srv.search(args)
	got := f.ids()
	slices.Sort(got)
	if !slices.Equal(got, ids) {
		srv.t.Errorf("%v found %v, want %v", args, got, ids)
	}
	return f
}

func (srv mailServer) importMails(source, after, position string, emails ...object) reeve.MailImport {
	srv.t.Helper()
	v := decode[reeve.MailImport](srv.t, srv.Want(201, nil, "POST", "/api/mail/imports", object{"source": source}))
	var lines strings.Builder
	for _, e := range emails {
		lines.WriteString(encodeMailLine(e))
	}
	return decode[reeve.MailImport](srv.t, srv.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?"+
		url.Values{"after": {after}, "position": {position}}.Encode(), lines.String()))
}

func TestI13_Search(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		none := srv.Call(srv.agent, "email_search", object{"query": "invoice"})
		if !none.IsError || none.Code != reeve.ToolFailed ||
			!strings.Contains(none.Content, "no mail has been imported") {
			t.Errorf("without mail: %+v", none)
		}
		srv.installSample()
		srv.wantFound(object{"query": "frost damage"}, "005", "006", "007")
		srv.wantFound(object{"query": "invoices"}, "001", "011", "014") // stemmed
		srv.wantFound(object{"query": "INVOICE overdue"}, "011")
		srv.wantFound(object{"query": `"white climbing roses"`}, "009")
		srv.wantFound(object{"query": `"roses climbing"`})
		srv.wantFound(object{"query": "thermostat OR warranty"}, "005", "006", "012", "014", "019")
		srv.wantFound(object{"query": "thermostat -seedlings"}, "006", "014")
		srv.wantFound(object{"query": "thermostat NOT seedlings"}, "006", "014")
		srv.wantFound(object{"query": "subject:catalogue from:tomas"}, "002", "015", "023")
		srv.wantFound(object{"query": `subject:"catalogue meeting"`}, "015")
		srv.wantFound(object{"query": `-subject:re from:klarglas`}, "001", "011")
		srv.wantFound(object{"query": "therm*"}, "005", "006", "014")
		srv.wantFound(object{"query": "attachment:datasheet"}, "012")
		srv.wantFound(object{"query": "Grüße"}, "016")
		srv.wantFound(object{"query": "grusse mochte"}) // not the same word
		srv.wantFound(object{"query": "mochte"}, "016") // accents are ignored
		srv.wantFound(object{"query": "zebra"})
		if f := srv.search(object{"query": "zebra"}); f.Emails == nil || f.Total != 0 {
			t.Errorf("an empty result is %+v", f)
		}

		// Filters.
		srv.wantFound(object{"query": "catalogue", "inbox_id": "tomas@fernhill.example"}, "021", "022", "023")
		srv.wantFound(object{"query": "catalogue", "inbox_id": "tomas"}, "021", "022", "023")
		srv.wantFound(object{"query": "invoice", "sender": "rau"}, "014")
		srv.wantFound(object{"query": "invoice", "sender": "accounts@klarglas.example"}, "001", "011")
		srv.wantFound(object{"query": "catalogue", "recipient": "quotes@odal.example"}, "023")
		srv.wantFound(object{"query": "", "date_from": "2026-09-16"}, "020", "024")
		srv.wantFound(object{"query": "", "date_to": "2026-09-01", "inbox_id": "mara"}, "001", "002", "003")
		srv.wantFound(object{"query": "", "date_from": "2026-09-07T08:00:00+02:00",
			"date_to": "2026-09-07T13:45:01+02:00"},
			"011", "012")
		if f := srv.search(object{"query": "", "sender": "klarglas"}); fmt.Sprint(f.ids()) != "[011 001]" {
			t.Errorf("results without a query: %v, want the newest first", f.ids())
		}
		if f := srv.wantFound(object{"query": "invoice", "inbox_id": "nobody@else.example"}); !strings.Contains(f.Note,
			"mara@fernhill.example") {
			t.Errorf("unknown inbox: note %q", f.Note)
		}
		for _, bad := range []object{{"query": "x", "date_from": "yesterday"}, {"query": "x", "date_to": "2026-13-01"},
			{"query": "x", "limit": 0}, {"query": "x", "limit": 51}, {"query": "x", "limit": "x"}, {}} {
			if r := srv.Do("POST", "/api/agents/"+srv.agent+"/calls", object{"tool": "email_search", "args": bad}); !strings.Contains(string(r.Body),
				`"code":"VALIDATION_ERROR"`) {
				t.Errorf("%v: %d %s", bad, r.Status, r.Body)
			}
		}

		// A match in the subject ranks higher than one in the body. Matches are marked in snippets.
		f := srv.search(object{"query": "catalogue"})
		if top := f.Emails[0].Subject; !strings.Contains(top, "catalogue") {
			t.Errorf("the best mail about the catalogue is %q", top)
		}
		for _, e := range srv.search(object{"query": "fog orchard", "limit": 1}).Emails {
			if !strings.Contains(e.Snippet, "<mark>orchard</mark> in <mark>fog</mark>") ||
				!strings.HasPrefix(e.Snippet, "Subject: Minutes") || !strings.Contains(e.Snippet, " | Body: ") {
				t.Errorf("snippet %q", e.Snippet)
			}
		}
		for query, want := range map[string]string{"thermostats": "<mark>thermostat</mark>",
			"subject:printing": "<mark>printing</mark>", "from:rau": "<mark>rau</mark>", "to:odal": "<mark>odal</mark>",
			"attachment:datasheet": "<mark>datasheet</mark>", "mochte": "<mark>möchte</mark>",
			"klarglas.example": "<mark>klarglas"} {
			for _, e := range srv.search(object{"query": query}).Emails {
				if !strings.Contains(strings.ToLower(e.Snippet), strings.ToLower(want)) {
					t.Errorf("%s: snippet %q has no %q", query, e.Snippet, want)
				}
			}
		}
	})
}

// oddQueries returns texts with quotes, operators, control characters and other unusual content.
func oddQueries() []string {
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
	r := rand.New(rand.NewPCG(1, 2)) // the same in each run
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

func TestI13_AnyTextIsAValidQuery(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env).installSample()
		for _, q := range oddQueries() {
			srv.search(object{"query": q})
		}
		for _, q := range oddQueries()[:60] {
			srv.search(object{"query": "invoice", "sender": q, "recipient": q, "inbox_id": q})
		}
	})
}

// Every character that is neither a letter nor a digit separates words.
func TestI13_PunctuationSeparatesWords(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		for i, sign := range []string{"\u00a0", "\u2003", "\u200b", "\u3000", "\ufffd", "€", "→", "©", "🎉", "“", "—",
			"÷", "│", "、", "！", "\x00"} {
			word := "walrus" + string(rune('a'+i))
			srv.importMails("s"+word, "", "1", object{"message_id": word, "inbox": "x", "subject": "un" + word + sign +
				word +
				sign, "body": sign + "b" + word + sign + "penguin"})
			srv.wantFound(object{"query": word}, word)
			srv.wantFound(object{"query": "subject:un" + word}, word)
			srv.wantFound(object{"query": `"b` + word + ` penguin"`}, word)
		}
		srv.importMails("letters", "", "1", object{"message_id": "letters", "inbox": "x",
			"body": "naïve Ångström 東京 Привет ½ ² ª µ"})
		for _, word := range []string{"naive", "angstrom", "Привет", "東京"} {
			srv.wantFound(object{"query": word}, "letters")
		}
	})
}

// A mail without a date is outside every date range, including ranges around 1970. Searches without a range find it.
func TestI13_MailWithoutDate(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		srv.importMails("s", "", "1", object{"message_id": "none", "inbox": "x", "body": "penguin"},
			object{"message_id": "epoch", "inbox": "x", "body": "penguin", "date": "1970-01-01T00:00:00Z"},
			object{"message_id": "moon", "inbox": "x", "body": "penguin", "date": "1969-07-20T20:17:00Z"},
			object{"message_id": "new", "inbox": "x", "body": "penguin", "date": "2026-09-01T10:00:00Z"})
		for _, query := range []string{"penguin", "", "-walrus"} { // ranked and by date
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
				srv.wantFound(args, c.ids...)
			}
		}
		srv.wantFound(object{"query": "penguin"}, "epoch", "moon", "new", "none")
		srv.wantFound(object{"query": "-walrus"}, "epoch", "moon", "new", "none")
		if f := srv.search(object{"query": "penguin", "date_to": "1970-01-01", "date_from": "1970-01-01"}); len(f.Emails) != 1 || f.Emails[0].Date == nil ||
			f.Emails[0].Date.UnixMilli() != 0 {
			t.Errorf("%+v", f.Emails)
		}
	})
}

func TestI07_MailLimit(t *testing.T) {
	t.Parallel()
	srv := newMailServer(t, newTestEnv(t)).installSample()
	search := func(agent string, args object) searchResult {
		r := srv.Call(agent, "email_search", args)
		var f searchResult
		if err := json.Unmarshal([]byte(r.Content), &f); r.IsError || err != nil {
			t.Fatal(r.Content, err)
		}
		return f
	}
	srv.Want(201, nil, "POST", "/api/agents", object{"name": "eager"})
	srv.Want(201, nil, "POST", "/api/agents/eager/tools",
		object{"tool_id": "email_search", "config": object{"default_limit": 20}})
	for _, bad := range []any{0, -1, 51, "x"} {
		wantFieldError(t, srv.Do("POST", "/api/agents/reader/tools",
			object{"tool_id": "email_search", "config": object{"default_limit": bad}}), "/config/default_limit")
	}
	all := object{"query": "fernhill"}
	if f := search(srv.agent, all); len(f.Emails) != 10 || f.Total != 10 || !f.More {
		t.Errorf("without settings: %d mails, more %v", len(f.Emails), f.More)
	}
	if f := search("eager", all); len(f.Emails) != 20 {
		t.Errorf("with default_limit 20: %d mails", len(f.Emails))
	}
	if f := search("eager", object{"query": "fernhill", "limit": 5}); len(f.Emails) != 5 {
		t.Errorf("with limit 5: %d mails", len(f.Emails))
	}
	srv.Want(201, nil, "POST", "/api/agents", object{"name": "tomas"})
	srv.Want(201, nil, "POST", "/api/agents/tomas/tools",
		object{"tool_id": "email_search", "config": object{"default_inbox": "tomas@fernhill.example"}})
	if f := search("tomas", object{"query": "catalogue"}); len(f.Emails) != 3 {
		t.Errorf("with default_inbox: %v", f.ids())
	}
}

func TestI14_GetEmail(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env).installSample()
		var e reeve.Email
		if err := json.Unmarshal([]byte(srv.Call(srv.agent, "email_get",
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
			r := srv.Call(srv.agent, "email_get", object{"message_id": id})
			if !r.IsError || r.Code != reeve.ToolFailed || !strings.Contains(r.Content, "Email not found: "+id) {
				t.Errorf("%q: %+v", id, r)
			}
		}
	})
}

// Neither a search nor an id finds mail of another workspace.
func TestI13_MailIsPrivateToWorkspace(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env).installSample()
		srv.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		in := withToken(createToken(t, srv.Host, reeve.Owner, "beta"), "beta")
		srv.Want(201, nil, "POST", "/api/agents", object{"name": "spy"}, in...)
		for _, id := range []string{"email_search", "email_get"} {
			srv.Want(201, nil, "POST", "/api/agents/spy/tools", object{"tool_id": id}, in...)
		}
		call := func(tool string, args object) string {
			return string(srv.Do("POST", "/api/agents/spy/calls", object{"tool": tool, "args": args}, in...).Body)
		}
		if s := call("email_search", object{"query": "invoice"}); !strings.Contains(s, "no mail has been imported") {
			t.Error(s)
		}
		v := decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports", object{"source": "s"}, in...))
		srv.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1",
			encodeMailLine(object{"message_id": "<b@x>", "inbox": "mara@fernhill.example",
				"subject": "invoice of beta"}),
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

// The word index follows added, replaced and deleted mails, and stays correct when the database is vacuumed.
func TestI15_WordIndexFollowsChanges(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env).installSample()
		mail := func(id, body string) object {
			return object{"message_id": id, "inbox": "box", "subject": "letter", "body": body}
		}
		srv.importMails("one", "", "1", mail("a", "walrus"), mail("b", "walrus penguin"))
		srv.wantFound(object{"query": "walrus"}, "a", "b")
		v := decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports",
			object{"source": "two", "replace": true}))
		got := decode[reeve.MailImport](t, srv.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1",
			encodeMailLine(mail("a", "ostrich"))))
		if got.Replaced != 1 || got.Added != 0 {
			t.Errorf("%+v", got)
		}
		srv.wantFound(object{"query": "walrus"}, "b")
		srv.wantFound(object{"query": "ostrich"}, "a")
		srv.Stop()
		vacuum(t, env)
		srv.Host = env.start(t)
		srv.wantFound(object{"query": "penguin"}, "b")
		srv.wantFound(object{"query": "ostrich"}, "a")
		srv.wantFound(object{"query": "frost damage"}, "005", "006", "007")
		srv.Want(204, nil, "DELETE", "/api/mail/inboxes/box", nil)
		srv.wantFound(object{"query": "penguin OR ostrich OR walrus"})
		srv.wantFound(object{"query": "frost damage"}, "005", "006", "007")
		srv.importMails("three", "", "1", mail("c", "heron"))
		srv.wantFound(object{"query": "heron OR penguin"}, "c")
		for _, m := range decode[api.MailboxList](t, srv.Want(200, nil, "GET", "/api/mail/inboxes", nil)).Mailboxes {
			if want := map[string]int64{"box": 1, "mara@fernhill.example": 20, "tomas@fernhill.example": 4}[m.Name]; m.Messages != want {
				t.Errorf("%s has %d mails, want %d", m.Name, m.Messages, want)
			}
		}
		if env.cfg.Database == "" {
			srv.Stop()
			// The statement fails if the index does not match the mails.
			execSQLite(t, env, "INSERT INTO emails_words (emails_words, rank) VALUES ('integrity-check', 1)")
		}
	})
}

// vacuum rewrites the tables with mails.
func vacuum(t *testing.T, env testEnv) {
	t.Helper()
	if env.cfg.Database == "" {
		execOffline(t, env, "VACUUM")
	} else {
		execOffline(t, env, "VACUUM FULL emails")
	}
}

// execSQLite runs a statement on a SQLite database while no server uses it.
func execSQLite(t *testing.T, env testEnv, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(env.cfg.Dir, "reeve.db"))
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
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		id := decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports", object{"source": "s"})).ID
		at := "/api/mail/imports/" + id + "/batches"
		good := encodeMailLine(object{"message_id": "a", "inbox": "x", "subject": "one"})
		for _, text := range []string{"nope", "{}", "[]", "null", `{"email":{}}`, `{"email":{"inbox":""}}`,
			`{"email":{"inbox":"x","form":"y"}}`, `{"email":{"inbox":"x"},"error":"no"}`, `{"email":{"inbox":"x"}} {}`,
			`{"email":{"inbox":"a\nb"}}`,
			`{"email":{"inbox":"x","date":"yesterday"}}`, `{"email":{"inbox":"` + strings.Repeat("x", 301) + `"}}`,
			`{"email":7}`, "\xff", "\x00"} {
			r := srv.Do("POST", at+"?position=1", good+text+"\n")
			if wantClientError(t, text, r, reeve.Validation); !strings.Contains(string(r.Body), "line 2") {
				t.Errorf("%s: %s", text, r.Body)
			}
		}
		wantClientError(t, "too many", srv.Do("POST", at+"?position=1", strings.Repeat(good, 2001)), reeve.TooLarge)
		wantClientError(t, "no position", srv.Do("POST", at, good), reeve.Validation)
		wantClientError(t, "too large", srv.Do("POST", at+"?position=1", strings.Repeat(" ", 17<<20)), reeve.TooLarge)
		if v := decode[reeve.MailImport](t, srv.Want(200, nil, "GET", "/api/mail/imports/"+id, nil)); v.Seen != 0 ||
			v.Position != "" {
			t.Errorf("a refused batch changed the import: %+v", v)
		}

		// Unusual mails are stored as far as possible. A repeated batch is added once.
		odd := encodeMailLine(object{"message_id": "n\x00ul", "inbox": "x", "subject": "a\x00b",
			"body":   "c\x00d penguin",
			"sender": "e\x00@f", "recipients": []string{"g\x00"}}) +
			encodeMailLine(object{"inbox": "x", "subject": "no id", "body": "penguin"}) +
			encodeMailLine(object{"inbox": "x", "subject": "no id", "body": "penguin"}) +
			encodeMailLine(object{"message_id": "twin", "inbox": "x", "body": "penguin"}) +
			encodeMailLine(object{"message_id": "twin", "inbox": "x", "body": "other penguin"}) +
			encodeMailLine(object{"message_id": strings.Repeat("long", 1000), "inbox": "x", "body": "penguin",
				"date": "2040-01-01T00:00:00Z"}) +
			encodeMailLine(object{"message_id": "old", "inbox": "x", "body": "penguin",
				"date": "1970-01-01T00:00:00Z"}) +
			encodeMailLine(object{"message_id": "big", "inbox": "x", "body": "penguin " +
				strings.Repeat("é", reeve.MaxMailText)}) + `{"place":"1.","error":"no header","problems":["odd"]}` + "\n"
		for range 2 {
			v := decode[reeve.MailImport](t, srv.Want(200, nil, "POST", at+"?position=1", odd))
			if v.Seen != 9 || v.Added != 7 || v.Duplicate != 1 || v.Unreadable != 1 || len(v.Problems) != 3 {
				t.Fatalf("%+v", v)
			}
		}
		if f := srv.search(object{"query": "penguin"}); f.Total != 7 {
			t.Errorf("found %v", f.ids())
		}
		wantProblem(t, srv.Do("POST", at+"?position=3&after=2", good), 409, reeve.Conflict)
		wantProblem(t, srv.Do("POST", "/api/mail/imports/"+id+"/finish?position=7", nil), 409, reeve.Conflict)
		for range 2 {
			if v := decode[reeve.MailImport](t, srv.Want(200, nil, "POST", "/api/mail/imports/"+id+"/finish?position=1",
				nil)); !v.IsDone() || v.FinishedAt == nil {
				t.Errorf("%+v", v)
			}
		}
		wantProblem(t, srv.Do("POST", at+"?position=2&after=1", good), 409, reeve.Conflict)
		if v := decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports", object{"source": "s"})); v.ID == id {
			t.Error("a finished import was continued")
		}
	})
}
