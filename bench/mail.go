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
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite"

	"reeve"
)

// mail imports generated mail with the real binary, and searches it, beside a bare SQLite with the same tables.
func mail(ctx context.Context, c config, t *table) (err error) {
	program, err := buildServer(ctx, c)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, "mail")
	s, _, err := startServer(ctx, program, dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	post := &postOffice{program: program, dir: dir, server: s, words: vocabulary()}
	if post.bare, err = openBare(filepath.Join(c.dir, "bare.db"), "mmap_size(268435456)"); err != nil {
		return err
	}
	defer post.bare.Close()
	if post.made = post.there(ctx); post.made == 0 { // otherwise the directory is that of an earlier run
		if _, err := post.bare.ExecContext(ctx, bareSchema); err != nil {
			return err
		}
		if err := post.imports(ctx, c, t); err != nil {
			return err
		}
	}
	return post.searches(ctx, c, t)
}

// postOffice is a server with mail, and a bare database with the same.
type postOffice struct {
	program string
	dir     string
	server  *server
	bare    *sql.DB
	same    *sql.DB // the server's own file, opened beside it
	words   []string
	made    int
}

// there counts the mails that are there already.
func (p *postOffice) there(ctx context.Context) (n int) {
	if p.bare.QueryRowContext(ctx, "SELECT count(*) FROM emails").Scan(&n) != nil {
		return 0
	}
	return n
}

// vocabulary is 30,000 words that nobody knows.
func vocabulary() []string {
	r := rand.New(rand.NewPCG(7, 7))
	syllables := []string{"ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "pla", "gre", "sti", "dro", "fen", "gar", "hol", "jin", "kur", "lam"}
	words := make([]string, 30_000)
	for i := range words {
		for range 2 + r.IntN(3) {
			words[i] += syllables[r.IntN(len(syllables))]
		}
	}
	return words
}

// word picks one as often as people do: few of them often, most of them seldom.
func (p *postOffice) word(r *rand.Rand) string {
	return p.words[int(math.Pow(float64(len(p.words)), r.Float64()))-1]
}

type letter struct{ id, subject, sender, body string }

func (p *postOffice) letter(r *rand.Rand) letter {
	some := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", ", ", ".\n"}[r.IntN(9)])
			}
			b.WriteString(p.word(r))
		}
		return b.String()
	}
	p.made++
	return letter{fmt.Sprintf("<%d@bench>", p.made), some(3 + r.IntN(6)), fmt.Sprintf("Person %d <person%d@bench.example>", p.made%997, p.made%997), some(40 + r.IntN(160))}
}

const bareSchema = `CREATE TABLE emails (id INTEGER PRIMARY KEY, message_id TEXT NOT NULL UNIQUE, sent_at BIGINT NOT NULL, subject TEXT NOT NULL, sender TEXT NOT NULL, recipients TEXT NOT NULL, attached TEXT NOT NULL, body TEXT NOT NULL);
CREATE VIRTUAL TABLE emails_words USING fts5 (subject, body, sender, recipients, attached, content='emails', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
CREATE TRIGGER emails_inserted AFTER INSERT ON emails BEGIN
  INSERT INTO emails_words (rowid, subject, body, sender, recipients, attached) VALUES (new.id, new.subject, new.body, new.sender, new.recipients, new.attached);
END;`

// openBare opens a database as the product does.
func openBare(file string, more string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=temp_store(MEMORY)&_pragma="+more)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// imports has both take in the same mails, a part each in turn: the index grows, and with it the cost.
func (p *postOffice) imports(ctx context.Context, c config, t *table) error {
	total, parts := pick(c, 500_000, 20_000), pick(c, 10, 4)
	var ours, bare series
	var first, last, importer float64
	var oursCPU, bareCPU time.Duration
	for part := range parts {
		file := filepath.Join(c.dir, fmt.Sprintf("part%d.mbox", part))
		list, err := p.write(file, total/parts, uint64(part))
		if err != nil {
			return err
		}
		mine := func() error {
			start, used := time.Now(), cpuTime()
			cmd := exec.CommandContext(ctx, p.program, "import", "mail", file, "--inbox", "person", "--dir", p.dir, "--json")
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				return err
			}
			most := make(chan float64)
			go func() { most <- watchMemory(cmd.Process.Pid) }()
			err := cmd.Wait()
			importer = max(importer, <-most)
			if err != nil {
				return fmt.Errorf("import: %w", err)
			}
			ours.rates = append(ours.rates, float64(len(list))/time.Since(start).Seconds())
			oursCPU += cpuTime() - used + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			var v reeve.MailImport
			if err := json.Unmarshal(out.Bytes(), &v); err != nil || v.Added != int64(len(list)) {
				return errors.Join(err, fmt.Errorf("%d of %d mails were added", v.Added, len(list)))
			}
			last, err = p.server.resident()
			if part == 0 {
				first = last
			}
			return err
		}
		theirs := func() error {
			start, used := time.Now(), cpuTime()
			if err := p.insert(ctx, list); err != nil {
				return err
			}
			bare.rates = append(bare.rates, float64(len(list))/time.Since(start).Seconds())
			bareCPU += cpuTime() - used
			return nil
		}
		both := []func() error{mine, theirs}
		if part%2 == 1 {
			both[0], both[1] = theirs, mine
		}
		for _, f := range both {
			if err := f(); err != nil {
				return err
			}
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	ours.cpu, bare.cpu = float64(oursCPU.Microseconds())/float64(p.made), float64(bareCPU.Microseconds())/float64(p.made)
	t.add(compare(row{Section: "mail", Name: fmt.Sprintf("import of %d mails, mbox", total), Unit: "mails/s", Against: "bare insert", Target: 0.6}, ours, bare))
	t.add(row{Section: "mail", Name: "server's memory after all of it", Unit: "MB", Ours: last, Against: "after the first part", Peer: first, Ratio: last / first, Target: 1.3, AtMost: true})
	t.add(row{Section: "mail", Name: "most memory of the importer", Unit: "MB", Ours: importer, Against: "limit", Peer: 100, Ratio: importer / 100, Target: 1, AtMost: true})
	return nil
}

// watchMemory gives the most memory that a process held while it ran, in MB. What the kernel counts for a child that has ended includes what its parent held.
func watchMemory(pid int) (most float64) {
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || !strings.Contains(string(b), "VmHWM:") { // it has ended
			return most
		}
		_, rest, _ := strings.Cut(string(b), "VmHWM:")
		if kb, err := strconv.Atoi(strings.Fields(rest)[0]); err == nil {
			most = max(most, float64(kb)/1024)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// write makes some mails, and an mbox of them.
func (p *postOffice) write(file string, n int, seed uint64) ([]letter, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	list := make([]letter, n)
	for i := range list {
		l := p.letter(r)
		list[i] = l
		fmt.Fprintf(w, "From person@bench.example Tue Sep  1 10:00:00 2026\nMessage-ID: %s\nFrom: %s\nTo: everybody@bench.example\nSubject: %s\nDate: Tue, 1 Sep 2026 10:00:00 +0200\n\n%s\n\n", l.id, l.sender, l.subject, l.body)
	}
	return list, errors.Join(w.Flush(), f.Close())
}

// insert writes mails as barely as can be, 500 to a transaction.
func (p *postOffice) insert(ctx context.Context, list []letter) error {
	for len(list) > 0 {
		tx, err := p.bare.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		stmt, err := tx.PrepareContext(ctx, `INSERT INTO emails (message_id, sent_at, subject, sender, recipients, attached, body) VALUES (?, ?, ?, ?, ?, '', ?)`)
		if err != nil {
			return err
		}
		for _, l := range list[:min(500, len(list))] {
			if _, err := stmt.ExecContext(ctx, l.id, 1788249600000, l.subject, l.sender, `["everybody@bench.example"]`, l.body); err != nil {
				return err
			}
		}
		if err := errors.Join(stmt.Close(), tx.Commit()); err != nil {
			return err
		}
		list = list[min(500, len(list)):]
	}
	return nil
}
