package main

import (
	"bufio"
	"bytes"
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
	"reeve/internal/store"
)

// measureSearch imports mail into the real server and searches it, beside a bare SQLite index, and looks up notes.
func measureSearch(ctx context.Context, c config, t *table) error {
	if err := measureMail(ctx, c, t); err != nil {
		return err
	}
	for _, engine := range engines() {
		if err := measureNotes(ctx, c, engine, t); err != nil {
			return err
		}
	}
	return nil
}

const (
	reader     = "reader"
	searchTool = "email_search"
)

func measureMail(ctx context.Context, c config, t *table) (err error) {
	program, err := buildReeve(ctx, c)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, "mail")
	s, _, err := startReeve(ctx, program, dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.addAgent(ctx, reader, searchTool); err != nil {
		return err
	}
	bare, err := openBare(filepath.Join(c.dir, "bare.db"))
	if err != nil {
		return err
	}
	defer bare.Close()
	words := vocabulary()
	total, parts := pick(c, 500_000, 8000), pick(c, 10, 2)
	if err := importMail(ctx, program, dir, bare, words, total/parts, parts, t); err != nil {
		return err
	}
	index, err := openBare(filepath.Join(dir, "reeve.db"))
	if err != nil {
		return err
	}
	defer index.Close()
	var usual, common [][]string
	r := rand.New(rand.NewPCG(3, 3))
	for i := range pick(c, 400, 40) {
		usual = append(usual, []string{rareWord(r, words), rareWord(r, words)}[i%4/3:]) // every fourth is a single word
	}
	for i := range pick(c, 8, 4) {
		common = append(common, words[i:i+1+i%2])
	}
	ours, theirs, err := s.search(ctx, index, usual)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s in %d mails, ", searchTool, total)
	a, b := median(ours), median(theirs)
	want := pick(c, atMost(1.3), informs) // few mails are found faster than any call is recorded
	t.add(row{name: name + "p50", unit: "ms", against: "bare query, same index", ours: a, peer: b, ratio: a / b, target: want})
	if ours, theirs, err = s.search(ctx, index, common); err != nil {
		return err
	}
	a, b = slices.Max(ours), slices.Max(theirs)
	t.add(row{name: name + "commonest words, slowest", unit: "ms", against: "bare query, same index", ours: a, peer: b, ratio: a / b,
		target: pick(c, atMost(1), informs)})
	return nil
}

// openBare opens an SQLite file with the settings of the product.
func openBare(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-8000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

const bareSchema = `
CREATE TABLE emails (id INTEGER PRIMARY KEY, message_id TEXT NOT NULL UNIQUE, sent_at BIGINT NOT NULL, subject TEXT NOT NULL,
  sender TEXT NOT NULL, recipients TEXT NOT NULL, attached TEXT NOT NULL, body TEXT NOT NULL);
CREATE VIRTUAL TABLE emails_words USING fts5 (subject, body, sender, recipients, attached, content='emails', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2');
CREATE TRIGGER emails_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached)
  VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;`

// importMail has reeve import mail and a bare insert take in the same mails, part by part, in alternating order.
func importMail(ctx context.Context, program, dir string, bare *sql.DB, words []string, size, parts int, t *table) error {
	if _, err := bare.ExecContext(ctx, bareSchema); err != nil {
		return err
	}
	file := filepath.Join(dir, "part.mbox")
	var ours, theirs []float64
	for part := range parts {
		mails, err := writeMbox(file, words, part, size)
		if err != nil {
			return err
		}
		timed := func(rates *[]float64, work func() error) func() error {
			return func() error {
				start := time.Now()
				err := work()
				*rates = append(*rates, float64(size)/time.Since(start).Seconds())
				return err
			}
		}
		both := []func() error{
			timed(&ours, func() error { return importFile(ctx, program, dir, file, size) }),
			timed(&theirs, func() error { return insertMails(ctx, bare, mails) }),
		}
		if part%2 == 1 {
			slices.Reverse(both)
		}
		for _, work := range both {
			if err := work(); err != nil {
				return err
			}
		}
	}
	t.compare(fmt.Sprintf("import of %d mails", size*parts), "mails/s", ours, "bare insert with an index", theirs, atLeast(0.6))
	return os.Remove(file)
}

func importFile(ctx context.Context, program, dir, file string, n int) error {
	cmd := exec.CommandContext(ctx, program, "import", "mail", file, "--inbox", "person", "--dir", dir, "--json")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	var v reeve.MailImport
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		return err
	}
	if v.Added != int64(n) {
		return fmt.Errorf("%d of %d mails were added", v.Added, n)
	}
	return nil
}

type mail struct{ id, subject, sender, body string }

// writeMbox makes mails and writes them to an mbox file.
func writeMbox(file string, words []string, part, n int) ([]mail, error) {
	r := rand.New(rand.NewPCG(uint64(part), 1))
	text := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", ", ", ".\n"}[r.IntN(9)])
			}
			b.WriteString(words[int(math.Pow(float64(len(words)), r.Float64()))-1]) // few words often, most seldom
		}
		return b.String()
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	mails := make([]mail, n)
	for i := range mails {
		m := mail{fmt.Sprintf("<%d.%d@bench>", part, i), strings.ReplaceAll(text(3+r.IntN(6)), "\n", " "),
			fmt.Sprintf("Person %d <person%d@bench.example>", i%997, i%997), text(40 + r.IntN(160))}
		mails[i] = m
		fmt.Fprintf(w, "From person@bench.example Tue Sep  1 10:00:00 2026\nMessage-ID: %s\nFrom: %s\nTo: everybody@bench.example\n"+
			"Subject: %s\nDate: Tue, 1 Sep 2026 10:00:00 +0200\n\n%s\n\n", m.id, m.sender, m.subject, m.body)
	}
	return mails, errors.Join(w.Flush(), f.Close())
}

// insertMails writes mails to the bare database, 500 to a transaction.
func insertMails(ctx context.Context, db *sql.DB, mails []mail) error {
	for some := range slices.Chunk(mails, 500) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		stmt, err := tx.PrepareContext(ctx, `INSERT INTO emails (message_id, sent_at, subject, sender, recipients, attached, body)
			VALUES (?, ?, ?, ?, ?, '', ?)`)
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		for _, m := range some {
			if _, err := stmt.ExecContext(ctx, m.id, 1788249600000, m.subject, m.sender, `["everybody@bench.example"]`, m.body); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		if err := errors.Join(stmt.Close(), tx.Commit()); err != nil {
			return err
		}
	}
	return nil
}

// vocabulary returns 30,000 invented words, the commonest first.
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

// rareWord picks a word that somebody may look for: not one of the hundred that nearly every mail has.
func rareWord(r *rand.Rand, words []string) string {
	return words[int(100*math.Pow(float64(len(words))/100, r.Float64()))-1]
}

// search looks for words that must all be there: with the tool, over HTTP and through the gate, and with a bare query on
// the server's own index. It returns both times of each search in milliseconds.
func (s *server) search(ctx context.Context, index *sql.DB, list [][]string) (ours, theirs []float64, err error) {
	for i, words := range list {
		both := []func() error{func() error {
			args, err := json.Marshal(map[string]string{"query": strings.Join(words, " ")})
			if err != nil {
				return err
			}
			start := time.Now()
			res, err := s.api.Call(ctx, reader, reeve.CallRequest{Tool: searchTool, Args: args})
			ours = append(ours, milliseconds(time.Since(start)))
			if err == nil && res.IsError {
				err = errors.New(res.Content)
			}
			return err
		}, func() error {
			start := time.Now()
			err := bareSearch(ctx, index, words)
			theirs = append(theirs, milliseconds(time.Since(start)))
			return err
		}}
		if i%2 == 1 {
			slices.Reverse(both)
		}
		for _, look := range both {
			if err := look(); err != nil {
				return nil, nil, err
			}
		}
	}
	return ours, theirs, nil
}

// bareSearch asks the index for the best ten mails with their snippets.
func bareSearch(ctx context.Context, db *sql.DB, words []string) error {
	rows, err := db.QueryContext(ctx, `SELECT e.message_id, e.subject, e.sender, e.sent_at,
		snippet(emails_words, 0, '<mark>', '</mark>', '…', 32), snippet(emails_words, 1, '<mark>', '</mark>', '…', 48)
		FROM emails_words JOIN emails e ON e.id = emails_words.rowid WHERE emails_words MATCH ? ORDER BY rank LIMIT 10`,
		`"`+strings.Join(words, `" AND "`)+`"`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, subject, sender, a, b string
		var at int64
		if err := rows.Scan(&id, &subject, &sender, &at, &a, &b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// measureNotes looks up the notes that fit a message, among many notes of the same user.
func measureNotes(ctx context.Context, c config, engine string, t *table) (err error) {
	w, err := newWorld(ctx, c, engine, "notes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	const user = "ann"
	many, words := pick(c, 100_000, 10_000), vocabulary()
	r := rand.New(rand.NewPCG(5, 5))
	some := func(n int) string {
		picked := make([]string, n)
		for i := range picked {
			picked[i] = rareWord(r, words)
		}
		return strings.Join(picked, " ")
	}
	for from := 0; from < many; from += 1000 {
		err := w.db.Update(ctx, func(tx *store.Tx) error {
			for range 1000 {
				n := reeve.Note{ID: tx.NewID(reeve.PrefixNote), UserID: user, AgentID: w.agent, Content: some(12)}
				if err := tx.InsertNote(ctx, workspace, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var took []float64
	for range pick(c, 200, 40) {
		text, start := some(10), time.Now()
		err := w.db.View(ctx, func(s *store.Snap) error {
			_, err := s.RecallNotes(ctx, workspace, w.agent, user, text, 10, 10)
			return err
		})
		if err != nil {
			return err
		}
		took = append(took, milliseconds(time.Since(start)))
	}
	t.limit(fmt.Sprintf("%s, notes that fit a message, among %d, p95", engine, many), "ms", percentile(took, 95), 50)
	return nil
}
