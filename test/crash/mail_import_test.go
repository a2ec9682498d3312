package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve/api"
)

// crashMails is the number of mails, a third in each of three formats.
const crashMails = 6000

// writeMailboxes writes a mailbox of each format.
func writeMailboxes(dir string) error {
	var box, lines strings.Builder
	for i := range crashMails {
		mail := fmt.Sprintf("Message-ID: <%d@x>\nFrom: a@x\nSubject: mail %d\nDate: Tue, 1 Sep 2026 10:00:00 "+
			"+0200\n\n%s\n", i, i, strings.Repeat(fmt.Sprintf("word%d ", i), 20))
		switch i % 3 {
		case 0:
			file := filepath.Join(dir, "files", "in", fmt.Sprintf("%05d.", i))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
				os.WriteFile(file, []byte(mail), 0o644)); err != nil {
				return err
			}
		case 1:
			fmt.Fprintf(&box, "From a@x Tue Sep  1 10:00:00 2026\n%s\n", mail)
		case 2:
			fmt.Fprintf(&lines, "{\"message_id\":\"<%d@x>\",\"subject\":\"mail "+
				"%d\",\"sender\":\"a@x\",\"date\":\"2026-09-01T08:00:00Z\",\"body\":\"text\"}\n", i, i)
		}
	}
	for name, text := range map[string]string{"box/in/mail.mbox": box.String(), "lines/in/mail.jsonl": lines.String()} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// TestCrashImport_I16 kills the server and the importer at random moments until the import is done. Every mail exists
// once and was counted once.
func TestCrashImport_I16(t *testing.T) {
	t.Parallel()
	kills, engines := 8, []*engine{sqliteEngine(t), postgresEngine(t)}
	if *crashFull {
		kills = 200
	}
	r := newRig(t)
	mail := t.TempDir()
	if err := writeMailboxes(mail); err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		for left := kills; left > 0; {
			killed, err := r.killDuringImport(e, mail, left)
			if err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
			left -= killed
		}
	}
}

// reserveAddress returns one address for all servers of a test, so that a client finds the next. Its port is outside
// the range that the kernel assigns, so that no other process gets it while a server is dead.
func reserveAddress() (string, error) {
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.N(10_000))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no port is free below 30000")
}

// killDuringImport imports once into its own world and returns the number of kills.
func (r *rig) killDuringImport(e *engine, mail string, kills int) (killed int, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute+time.Duration(kills)*10*time.Second)
	defer cancel()
	listen, err := reserveAddress()
	if err != nil {
		return killed, err
	}
	w, err := e.newEmptyWorld()
	if err != nil {
		return killed, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	var server, importer *process
	servers := 0
	for done := false; !done; {
		if server == nil {
			if server, err = r.serve(w, "REEVE_LISTEN="+listen); err != nil {
				return killed, err
			}
			if err := server.waitUntilReady(ctx); err != nil {
				return killed, err
			}
		}
		if importer == nil {
			if importer, err = r.family.start(r.serverEnv(w), r.program, "import", "mail", mail, "--json"); err != nil {
				return killed, err
			}
		}
		moment := time.NewTimer(20*time.Millisecond + rand.N(400*time.Millisecond))
		if killed >= kills {
			moment.Stop()
		}
		select {
		case <-importer.gone:
			if done = importer.err == nil; !done && !strings.Contains(importer.log.String(), `"code":"UNAVAILABLE"`) {
				return killed, fmt.Errorf("the importer failed: %w: %s", importer.err, &importer.log)
			}
			if !done {
				importer = nil // it found no server to begin with; a person would start it again
			}
		case <-moment.C:
			killed++
			if rand.N(2) == 0 {
				server.kill()
				server, servers = nil, servers+1
			} else {
				importer.kill()
				importer = nil
			}
		case <-ctx.Done():
			return killed, fmt.Errorf("the import did not end: %s", &importer.log)
		}
	}
	c, err := w.owner(server, unlimited)
	if err != nil {
		return killed, err
	}
	var boxes api.MailboxList
	var imports api.MailImportList
	if err := errors.Join(c.do(ctx, "GET", "/api/mail/inboxes", nil, &boxes), c.do(ctx, "GET", "/api/mail/imports", nil,
		&imports)); err != nil {
		return killed, err
	}
	for _, b := range boxes.Mailboxes {
		if b.Messages != crashMails/3 {
			err = errors.Join(err, fmt.Errorf("%s has %d mails, want %d", b.Name, b.Messages, crashMails/3))
		}
	}
	// the first: one that was killed when all was in, and could not say so, was begun anew
	last := len(imports.Imports) - 1
	for i, v := range imports.Imports {
		if n := [2]int64{v.Added, v.Duplicate}; v.Seen != crashMails || v.Unreadable+v.Replaced != 0 || !v.IsDone() ||
			i == last && n != [2]int64{crashMails, 0} || i < last && n != [2]int64{0, crashMails} {
			err = errors.Join(err, fmt.Errorf("import %d of %d: %+v", i, last, v))
		}
	}
	if last < 0 || len(boxes.Mailboxes) != 3 {
		err = errors.Join(err, fmt.Errorf("%d inboxes, %d imports", len(boxes.Mailboxes), last+1))
	}
	if err := errors.Join(err, server.stop()); err != nil {
		return killed, err
	}
	db, err := w.open()
	if err != nil {
		return killed, err
	}
	defer func() { _ = db.Close() }()
	var rows, ids int
	if err := db.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT message_id) FROM emails`).
		Scan(&rows, &ids); err != nil {
		return killed, err
	}
	if rows != crashMails || ids != crashMails {
		return killed, fmt.Errorf("%d mails with %d ids are kept, want %d", rows, ids, crashMails)
	}
	r.t.Logf("%s: %d mails through %d kills, %d of them of the server: none lost, none doubled", e.name, crashMails,
		killed, servers)
	return killed, nil
}
