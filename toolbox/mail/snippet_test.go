package mail

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"reeve"
	"reeve/internal/store"
)

// TestStem compares stem with the tokenizer of the SQLite index.
func TestStem(t *testing.T) {
	words := strings.Fields(`
		a as is was caress caresses ponies ties cats agreed feed fed plastered bled motoring sing conflated troubled
		sized hopping tanned falling hissing fizzed failing filing happy sky say relational conditional rational
		valenci hesitanci digitizer conformabli radicalli differentli vileli analogousli vietnamization predication
		operator feudalism decisiveness hopefulness callousness formaliti sensitiviti sensibiliti triplicate
		formative formalize electriciti electrical hopeful goodness revival allowance inference airliner gyroscopic
		adjustable defensible irritant replacement adjustment dependent adoption homologou communism activate
		angulariti homologous effective bowdlerize probate rate cease controll roll meeting meetings meet met
		invoice invoices invoicing budget budgeting forecast quarterly reports reporting analogy apologise
		generically general generate yes yellow dying lying eyed employee oed aed ing ed xxxx 12 2001 q3 w3
		thermostat thermostats customer customers delivery delivered delivering university universe organization
		organizations organisation traditional reference references referral colonizer bli logi geologi archaeology
		psychology
		` + strings.Repeat("x", 70) + "s")
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "words.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE VIRTUAL TABLE w USING fts5 (x, tokenize='porter unicode61 remove_diacritics 2')`)
	exec(`CREATE VIRTUAL TABLE v USING fts5vocab ('w', 'instance')`)
	for i, w := range words {
		exec(`INSERT INTO w (rowid, x) VALUES (?, ?)`, i+1, w)
	}
	for i, w := range words {
		var indexed string
		if err := db.QueryRowContext(t.Context(), `SELECT term FROM v WHERE doc = ?`, i+1).Scan(&indexed); err != nil {
			t.Fatal(w, err)
		}
		if got := stem(w); got != indexed {
			t.Errorf("stem of %s is %q, the index has %q", w, got, indexed)
		}
	}
}

func TestSnippets(t *testing.T) {
	long := strings.Repeat("nothing of note here. ", 200)
	for _, c := range []struct{ query, subject, body, want string }{
		{"budget", "Budget 2026", "All is well.", "Subject: <mark>Budget</mark> 2026 | Body: All is well."},
		{"meetings", "x", "We meet. A meeting, MEETINGS!",
			"Subject: x | Body: We <mark>meet</mark>. A <mark>meeting</mark>, <mark>MEETINGS</mark>!"},
		{`"white roses"`, "roses white", "white  roses, white pink roses",
			"Subject: roses white | Body: <mark>white roses</mark>, white pink roses"},
		{"subject:plan", "plan", "plan", "Subject: <mark>plan</mark> | Body: plan"},
		{"fore*", "forest", "before forecasts", "Subject: <mark>forest</mark> | Body: before <mark>forecasts</mark>"},
		{"gruße", "GRUSSE Grüße", "Gru\u0308ße", "Subject: GRUSSE <mark>Grüße</mark> | Body: <mark>Gru\u0308ße</mark>"},
		{"日本語", "日本語", "x", "Subject: <mark>日本語</mark> | Body: x"},
		{"needle", "hay", long + "a needle in it. " + long, "here. a <mark>needle</mark> in it. nothing"},
		{"alpha beta", "x", long + "alpha alpha. " + long + "alpha and beta. " + long,
			"<mark>alpha</mark> and <mark>beta</mark>."},
		{"a", "", "", "Subject:  | Body: "},
		{"x", strings.Repeat("x", 5000), strings.Repeat(" ", 5000), "Body:"},
		{"-x", "<b>", "a\nb\t c", "Subject: &lt;b&gt; | Body: a b c"},
		// PostgreSQL matches this word, which stem does not reduce to the same stem.
		{"generously", "x", "a generous gift", "Body: a <mark>generous</mark> gift"},
	} {
		q := parseQuery(c.query)
		got := newMarker(&reeve.Invocation{}, q).
			snippet(store.MailMatch{MailHit: reeve.MailHit{Subject: c.subject}, Body: c.body})
		if !strings.Contains(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.query, got, c.want)
		}
		if len(got) > 2*maxSnippet+100 || strings.Count(got, "<mark>") != strings.Count(got, "</mark>") {
			t.Errorf("%s: %d bytes: %.200s", c.query, len(got), got)
		}
	}
}

func FuzzSnippet(f *testing.F) {
	f.Add("alpha <b>", "a \x01b\x02 alpha", "<mark>&amp;", 3)
	f.Fuzz(func(t *testing.T, query, subject, body string, _ int) {
		got := newMarker(&reeve.Invocation{}, parseQuery(query)).
			snippet(store.MailMatch{MailHit: reeve.MailHit{Subject: subject}, Body: body})
		plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(got)
		if strings.ContainsAny(plain, "<>\x01\x02") || strings.Count(got, "<mark>") != strings.Count(got, "</mark>") {
			t.Errorf("%q in %q and %q: %q", query, subject, body, got)
		}
	})
}
