package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite"

	"reeve"
	"reeve/api"
)

// measureSearch measures the import and the search of mail on the real server against a bare SQLite index.
func measureSearch(ctx context.Context, c config, t *table) { measureMail(ctx, c, t) }

const (
	reader     = "reader"
	searchTool = "email_search"
)

func measureMail(ctx context.Context, c config, t *table) {
	program, dir, words := buildReeve(ctx, c), filepath.Join(c.dir, "mail"), vocabulary()
	s, _ := startReeve(ctx, program, dir, "")
	defer s.stop()
	s.addAgent(ctx, reader, searchTool)
	total, parts := pick(c, 500_000, 8000), pick(c, 10, 2)
	importMail(ctx, c, program, dir, words, total/parts, parts, t)
	index := openBare(filepath.Join(dir, "reeve.db"))
	defer index.Close()
	var usual, common [][]string
	r := rand.New(rand.NewPCG(3, 3))
	for i := range pick(c, 400, 40) {
		usual = append(usual, []string{rareWord(r, words), rareWord(r, words)}[i%4/3:]) // every fourth is a single word
	}
	for i := range pick(c, 8, 4) {
		common = append(common, words[i:i+1+i%2])
	}
	name := fmt.Sprintf("%s in %d mails, ", searchTool, total)
	compare := func(what string, list [][]string, of func([]float64) float64, want target) {
		times := s.search(ctx, index, list)
		a, b := of(times[0]), of(times[1])
		t.add(row{name: name + what, unit: "ms", against: "bare query, same index", ours: a, peer: b, ratio: a / b,
			target: want})
	}
	// With -short, a search takes less time than the record of its call.
	compare("p50", usual, median, pick(c, atMost(1.3), informational))
	compare("most frequent words, slowest", common, slices.Max[[]float64], pick(c, atMost(1), informational))
}

// openBare opens an SQLite file with the settings of the product.
func openBare(file string) *sql.DB {
	db := must(sql.Open("sqlite", "file:"+file+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-8000)"))
	db.SetMaxOpenConns(1)
	return db
}

const bareSchema = `
CREATE TABLE emails (id INTEGER PRIMARY KEY, message_id TEXT NOT NULL UNIQUE, sent_at BIGINT NOT NULL,
  subject TEXT NOT NULL, sender TEXT NOT NULL, recipients TEXT NOT NULL, attached TEXT NOT NULL, body TEXT NOT NULL);
CREATE VIRTUAL TABLE emails_words USING fts5 (subject, body, sender, recipients, attached, content='emails',
  content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
CREATE TRIGGER emails_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached)
  VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;`

// importMail imports mail with reeve import mail and with bare inserts, part by part, in alternating order.
func importMail(ctx context.Context, c config, program, dir string, words []string, size, parts int, t *table) {
	bare := openBare(filepath.Join(c.dir, "bare.db"))
	defer bare.Close()
	must(bare.ExecContext(ctx, bareSchema))
	file := filepath.Join(c.dir, "part.mbox")
	rates := make([][]float64, 2)
	for part := range parts {
		mails := writeMbox(file, words, part, size)
		for k := range 2 {
			k = (k + part) % 2
			start := time.Now()
			if k == 0 {
				importFile(ctx, program, dir, file, size)
			} else {
				insertMails(ctx, bare, mails)
			}
			rates[k] = append(rates[k], float64(size)/time.Since(start).Seconds())
		}
	}
	name := fmt.Sprintf("import of %d mails", size*parts)
	t.compare(name, "mails/s", rates[0], "bare insert with an index", rates[1], atLeast(0.6))
}

func importFile(ctx context.Context, program, dir, file string, n int) {
	cmd := exec.CommandContext(ctx, program, "import", "mail", file, "--inbox", "person", "--dir", dir, "--json")
	cmd.Stderr = os.Stderr
	var v reeve.MailImport
	check(json.Unmarshal(must(cmd.Output()), &v))
	if v.Added != int64(n) {
		check(fmt.Errorf("%d of %d mails were added", v.Added, n))
	}
}

type mailMessage struct{ id, subject, sender, body string }

// writeMbox generates mails and writes them to an mbox file.
func writeMbox(file string, words []string, part, n int) []mailMessage {
	r := rand.New(rand.NewPCG(uint64(part), 1))
	text := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", ", ", ".\n"}[r.IntN(9)])
			}
			// few words are frequent, most are rare
			b.WriteString(words[int(math.Pow(float64(len(words)), r.Float64()))-1])
		}
		return b.String()
	}
	f := must(os.Create(file))
	w := bufio.NewWriter(f)
	mails := make([]mailMessage, n)
	for i := range mails {
		m := mailMessage{fmt.Sprintf("<%d.%d@bench>", part, i), strings.ReplaceAll(text(3+r.IntN(6)), "\n", " "),
			fmt.Sprintf("Person %d <person%d@bench.example>", i%997, i%997), text(40 + r.IntN(160))}
		mails[i] = m
		fmt.Fprintf(w,
			"From person@bench.example Tue Sep  1 10:00:00 2026\nMessage-ID: %s\nFrom: %s\nTo: "+
				"all@bench.example\n"+
				"Subject: %s\nDate: Tue, 1 Sep 2026 10:00:00 +0200\n\n%s\n\n", m.id, m.sender, m.subject, m.body)
	}
	check(errors.Join(w.Flush(), f.Close()))
	return mails
}

// insertMails inserts mails into the bare database, 500 per transaction.
func insertMails(ctx context.Context, db *sql.DB, mails []mailMessage) {
	for some := range slices.Chunk(mails, 500) {
		tx := must(db.BeginTx(ctx, nil))
		stmt := must(tx.PrepareContext(ctx, `
			INSERT INTO emails (message_id, sent_at, subject, sender, recipients, attached, body)
			VALUES (?, 1788249600000, ?, ?, '["all@bench.example"]', '', ?)`))
		for _, m := range some {
			must(stmt.ExecContext(ctx, m.id, m.subject, m.sender, m.body))
		}
		check(errors.Join(stmt.Close(), tx.Commit()))
	}
}

// vocabulary returns 30,000 random words, the most frequent first.
func vocabulary() []string {
	r := rand.New(rand.NewPCG(7, 7))
	syllables := strings.Fields("ba ke li mo nu ra se ti vo zu pla gre sti dro fen gar hol jin kur lam")
	words := make([]string, 30_000)
	for i := range words {
		for range 2 + r.IntN(3) {
			words[i] += syllables[r.IntN(len(syllables))]
		}
	}
	return words
}

// rareWord returns a random word, but none of the hundred that nearly every mail contains.
func rareWord(r *rand.Rand, words []string) string {
	return words[int(100*math.Pow(float64(len(words))/100, r.Float64()))-1]
}

// search runs searches for mails with all given words: with the tool, over HTTP and through the gate, and with a bare
// query on the server's own index. It returns the times of both in milliseconds.
func (s *server) search(ctx context.Context, index *sql.DB, list [][]string) (times [2][]float64) {
	for i, words := range list {
		for k := range 2 {
			k = (k + i) % 2
			start := time.Now()
			if k == 0 {
				args := fmt.Appendf(nil, `{"query": %q}`, strings.Join(words, " "))
				res := must(s.api.Calls().Call(ctx, reader, api.CallRequest{Tool: searchTool, Args: args}))
				if res.IsError {
					check(errors.New(res.Content))
				}
			} else {
				bareSearch(ctx, index, words)
			}
			times[k] = append(times[k], milliseconds(time.Since(start)))
		}
	}
	return times
}

// bareSearch queries the index for the best ten mails with their snippets.
func bareSearch(ctx context.Context, db *sql.DB, words []string) {
	rows := must(db.QueryContext(ctx, `SELECT e.message_id, e.subject, e.sender, e.sent_at,
		snippet(emails_words, 0, '<mark>', '</mark>', '…', 32), snippet(emails_words, 1, '<mark>', '</mark>', '…', 48)
		FROM emails_words JOIN emails e ON e.id = emails_words.rowid WHERE emails_words MATCH ? ORDER BY rank LIMIT 10`,
		`"`+strings.Join(words, `" AND "`)+`"`))
	defer rows.Close()
	for rows.Next() {
		var id, subject, sender, a, b string
		var at int64
		check(rows.Scan(&id, &subject, &sender, &at, &a, &b))
	}
	check(rows.Err())
}

// measureNotes measures the lookup of the notes that match a message, among many notes of the same user.
