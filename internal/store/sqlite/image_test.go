package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"reeve/internal/store/sqlite"
)

// hand is a connection to a database, through the layer or as any other program's.
type hand struct {
	*sql.Conn
	t *testing.T
}

func newHand(t *testing.T, file string, pragmas string, layer bool) hand {
	t.Helper()
	if layer {
		pragmas += "&vfs=" + sqlite.Layer()
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)&_pragma=journal_mode(WAL)"+pragmas)
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); db.Close() })
	return hand{c, t}
}

func (h hand) do(query string, args ...any) {
	h.t.Helper()
	if _, err := h.ExecContext(context.Background(), query, args...); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
}

// sees is what it reads.
func (h hand) sees() map[int][]byte {
	h.t.Helper()
	rows, err := h.QueryContext(context.Background(), "SELECT id, b FROM t")
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	got := map[int][]byte{}
	for rows.Next() {
		var id int
		var b []byte
		if err := rows.Scan(&id, &b); err != nil {
			h.t.Fatal(err)
		}
		got[id] = b
	}
	if err := rows.Err(); err != nil {
		h.t.Fatal(err)
	}
	return got
}

func (h hand) mustSee(want map[int][]byte, who string) {
	h.t.Helper()
	if !maps.EqualFunc(h.sees(), want, bytes.Equal) {
		h.t.Fatalf("%s does not see what was committed", who)
	}
}

// play has several write to a database, take back what they wrote, copy the log into the database, and read, in any order; some of them know nothing of the layer. Everybody sees what was
// committed and nothing else, and so does who finds the files after a crash.
func play(t *testing.T, seed uint64, direct bool, size int) {
	r := rand.New(rand.NewPCG(seed, 0))
	file := filepath.Join(t.TempDir(), "it.db")
	few := "&_pragma=cache_size(10)&_pragma=wal_autocheckpoint(60)"
	ours := newHand(t, file, few, true)
	ours.do("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB, n INTEGER UNIQUE)")
	if !direct && !sqlite.Undirected(file) || size > 0 && !sqlite.Small(file, size) {
		t.Fatal("the layer does not know the file")
	}
	writers := []hand{ours, ours, ours, newHand(t, file, few, true), newHand(t, file, few, false)}
	readers := []hand{newHand(t, file, "&_pragma=cache_size(1)", true), newHand(t, file, "&_pragma=cache_size(1)&_pragma=mmap_size(10000000)", true), newHand(t, file, "&_pragma=cache_size(1)", false)}
	patient := newHand(t, file, "&_pragma=cache_size(1)", true)
	var seen map[int][]byte // by who is patient, since its transaction began

	is, n := map[int][]byte{}, 0
	change := func(h hand, to map[int][]byte) {
		many := 1 + r.IntN(6)
		if r.IntN(20) == 0 {
			many = 120
		}
		for range many {
			id := r.IntN(60)
			if r.IntN(5) == 0 {
				h.do("DELETE FROM t WHERE id = ?", id)
				delete(to, id)
				continue
			}
			b := make([]byte, 1+r.IntN(9000))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			n++
			h.do("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET b = excluded.b, n = excluded.n", id, b, n*7919%100003)
			to[id] = b
		}
	}
	for step := range 400 {
		w := r.IntN(len(writers))
		h, to := writers[w], maps.Clone(is)
		h.do("BEGIN IMMEDIATE")
		change(h, to)
		if r.IntN(4) == 0 {
			h.do("SAVEPOINT s")
			lost := maps.Clone(to)
			change(h, lost)
			if r.IntN(2) == 0 {
				h.do("ROLLBACK TO s")
			} else {
				to = lost
			}
			change(h, to)
		}
		who := fmt.Sprintf("seed %d, step %d, writer %d", seed, step, w)
		h.mustSee(to, who+": who writes")
		readers[r.IntN(len(readers))].mustSee(is, who+": who reads meanwhile")
		if r.IntN(4) == 0 {
			h.do("ROLLBACK")
		} else {
			h.do("COMMIT")
			is = to
		}
		for i, reader := range readers {
			reader.mustSee(is, fmt.Sprint(who, ": reader ", i))
		}
		switch {
		case seen == nil && r.IntN(10) == 0:
			patient.do("BEGIN")
			seen = patient.sees()
		case seen != nil && r.IntN(5) == 0:
			patient.mustSee(seen, who+": who is patient")
			patient.do("COMMIT")
			seen = nil
		}
		if seen == nil && r.IntN(8) == 0 {
			mode := []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"}[r.IntN(4)]
			writers[r.IntN(len(writers))].do("PRAGMA wal_checkpoint(" + mode + ")")
		}
		if r.IntN(10) == 0 {
			found(t, file, is, who)
		}
	}
	found(t, file, is, fmt.Sprint("seed ", seed, ": at the end"))
}

// found checks what somebody finds who has the files and nothing else.
func found(t *testing.T, file string, want map[int][]byte, who string) {
	t.Helper()
	dir := t.TempDir()
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(file + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "it.db"+end), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newHand(t, filepath.Join(dir, "it.db"), "", false)
	h.mustSee(want, who+": who finds the files")
	var verdict string
	if err := h.QueryRowContext(context.Background(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("%s: %s (%v)", who, verdict, err)
	}
}

func TestEverybodySeesWhatIsInTheLog(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{true, false} {
		for seed, size := range []int{0, 0, 0, 40 << 12, 41 << 12, 99 << 12} { // of what is kept of the log in memory: a log of 60 pages is more than some
			t.Run(fmt.Sprint("direct ", direct, ", seed ", seed), func(t *testing.T) {
				t.Parallel()
				play(t, uint64(seed), direct, size)
			})
		}
	}
}

// A log of the same name is another one, also while somebody still has the first.
func TestALogOfTheSameName(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "it.db")
	const table, row = "CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)", "INSERT INTO t VALUES (?, ?)"
	before := newHand(t, file, "", true)
	before.do(table)
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(file+end, file+".before"+end); err != nil {
			t.Fatal(err)
		}
	}
	now := newHand(t, file, "", true)
	now.do(table)
	is, was := map[int][]byte{}, map[int][]byte{}
	for i := range 3 {
		is[i], was[i] = []byte{1, byte(i)}, []byte{2, byte(i)}
		now.do(row, i, is[i])
		before.do(row, i, was[i])
	}
	now.mustSee(is, "who came later")
	before.mustSee(was, "who was there before")
	found(t, file, is, "what is there now")
	found(t, file+".before", was, "what was there before")
}
