package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// drawer is an engine with a settled table and another.
type drawer struct {
	*sqlite.Engine
	t    *testing.T
	file string
}

func newDrawer(t *testing.T) drawer {
	t.Helper()
	d := drawer{t: t, file: filepath.Join(t.TempDir(), "reeve.db")}
	var err error
	if d.Engine, err = sqlite.Open(t.Context(), sqlite.Config{File: d.file, Readers: 3}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	d.change("CREATE TABLE emails (body)")
	d.change("CREATE TABLE others (body)")
	return d
}

func (d drawer) change(statement string, args ...any) {
	d.t.Helper()
	if err := d.Update(d.t.Context(), func(c store.Conn) error { return c.Exec(d.t.Context(), nil, statement, args...) }); err != nil {
		d.t.Fatal(err)
	}
}

// read counts the rows that one who reads for long is shown, and then does what else there is to do.
func (d drawer) read(then func(ctx context.Context) error) (emails, others int, err error) {
	ctx := store.Stoppable(d.t.Context())
	err = d.View(ctx, func(c store.Conn) error {
		rows, err := c.Query(ctx, "SELECT (SELECT count(*) FROM emails), (SELECT count(*) FROM others)")
		if err != nil {
			return err
		}
		for rows.Next() {
			if err := rows.Scan(&emails, &others); err != nil {
				return err
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || then == nil {
			return err
		}
		return then(ctx)
	})
	return emails, others, err
}

func (d drawer) shows(what string, emails, others int) {
	d.t.Helper()
	if a, b, err := d.read(nil); err != nil || a != emails || b != others {
		d.t.Fatalf("%s: %d emails and %d others, %v; want %d and %d", what, a, b, err, emails, others)
	}
}

// Who reads for long keeps a snapshot while others write elsewhere, and always sees what was committed to the settled tables.
func TestKeptSnapshot(t *testing.T) {
	t.Parallel()
	d := newDrawer(t)
	d.shows("at first", 0, 0)
	d.change("INSERT INTO others VALUES ($1)", "x")
	d.shows("kept", 0, 0)
	d.change("INSERT INTO emails VALUES ($1)", "x")
	d.shows("after mail came", 1, 1)
	for range 260 {
		d.change("INSERT INTO others VALUES ($1)", "x")
	}
	if _, n, err := d.read(nil); err != nil || n < 200 {
		t.Fatalf("after many commits %d others are shown, %v", n, err)
	}
	d.change("INSERT INTO others VALUES ($1)", make([]byte, 5<<20))
	d.shows("after a large one", 1, 262)
	d.change("INSERT INTO others VALUES ($1)", "x")
	failed := errors.New("failed")
	if _, n, err := d.read(func(context.Context) error { return failed }); !errors.Is(err, failed) || n != 262 {
		t.Fatal(n, err)
	}
	d.shows("after one that failed", 1, 263)
	// What is committed while somebody reads is seen by who reads next, on the same connection and on others.
	if _, _, err := d.read(func(context.Context) error {
		d.change("DELETE FROM emails")
		d.shows("beside one that reads", 0, 263)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	d.shows("on the first again", 0, 263)
	d.shows("and once more", 0, 263)
}

// However many keep snapshots, the log is begun anew as it would be without them.
func TestKeptSnapshotsAndTheLog(t *testing.T) {
	t.Parallel()
	d := newDrawer(t)
	body := make([]byte, 40_000)
	var most int64
	for range 60 {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, _, err := d.read(nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for range 40 {
			d.change("INSERT INTO others VALUES ($1)", body)
		}
		s, err := os.Stat(d.file + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, s.Size())
	}
	if most > 32<<20 { // of 96 MB that were written
		t.Errorf("the log grew to %d MB", most>>20)
	}
}

// Whoever has been told that mail is there finds it, however many add and look at once.
func TestKeptSnapshotsSeeWhatWasTold(t *testing.T) {
	t.Parallel()
	d := newDrawer(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := 0
			for range 150 {
				before, _, err := d.read(nil)
				if err != nil {
					t.Error(err)
					return
				}
				d.change("INSERT INTO emails VALUES ($1)", "x")
				after, _, err := d.read(nil)
				if err != nil || after <= before || before < last {
					t.Errorf("%d before, %d after, %d at first: %v", before, after, last, err)
					return
				}
				last = after
			}
		})
	}
	all.Wait()
	d.shows("in the end", 600, 0)
}
