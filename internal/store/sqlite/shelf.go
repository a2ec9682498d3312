package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"reeve/internal/store"
)

// shelf holds the connections of those who read for long. They hold up nobody but each other.
//
// A connection that begins to read after anybody's commit throws away all it has read before, and reading it again costs a third of a search. So these keep their snapshot
// from one reading to the next, for as long as nothing was changed in the tables that they may read. As the log cannot begin anew while a snapshot needs it, they are given up
// all together once enough was written.
type shelf struct {
	db   *sql.DB
	free chan struct{} // one for each that may read
	mu   sync.Mutex
	idle []*conn // the last was used last: it has the most to go on with

	age     atomic.Int64 // counts up when snapshots are to be given up
	commits int          // since then. These two are the writer's
	bytes   int
}

// How much may be written before snapshots are given up.
const (
	keptCommits = 256
	keptBytes   = 4 << 20
)

func newShelf(db *sql.DB, readers int) *shelf {
	s := &shelf{db: db, free: make(chan struct{}, readers)}
	s.age.Store(1) // a connection that keeps nothing has 0
	for range readers {
		s.free <- struct{}{}
	}
	return s
}

// view runs f on a snapshot that has all that was committed to the settled tables.
func (s *shelf) view(ctx context.Context, f func(store.Conn) error) (err error) {
	select {
	case <-s.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.free <- struct{}{} }()
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	sound := false
	defer func() { err = errors.Join(err, s.put(c, sound)) }() // also when f panics
	if age := s.age.Load(); c.age != age {
		if err := c.settle(); err != nil {
			return err
		}
		if err := c.run(ctx, "BEGIN"); err != nil {
			return err
		}
		c.kept, c.age = true, age // the snapshot is taken with the first statement: it may be younger, and never older
	}
	err = f(c)
	sound = err == nil
	return err
}

func (s *shelf) take(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		defer s.mu.Unlock()
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c, nil
	}
	s.mu.Unlock()
	return open(ctx, s.db)
}

// put lays a connection back. Its snapshot stays only if it may be used again.
func (s *shelf) put(c *conn, sound bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sound || c.age != s.age.Load() {
		err = c.settle()
	}
	s.idle = append(s.idle, c)
	return err
}

// written is told of every commit, after it and before those are who asked for it.
func (s *shelf) written(settled bool, bytes int) {
	s.commits, s.bytes = s.commits+1, s.bytes+bytes
	if !settled && s.commits < keptCommits && s.bytes < keptBytes {
		return
	}
	s.commits, s.bytes = 0, 0
	s.age.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		_ = c.settle() // if it cannot be now, it will be before the next reading, which says so
	}
}

func (s *shelf) close() (err error) {
	for range cap(s.free) {
		<-s.free
	}
	for _, c := range s.idle {
		err = errors.Join(err, c.close())
	}
	return errors.Join(err, s.db.Close())
}

// settle gives a kept snapshot up.
func (c *conn) settle() error {
	c.age = 0
	if !c.kept {
		return nil
	}
	err := c.must("ROLLBACK")
	c.kept = err != nil
	return err
}

// settled tells whether a statement names one of the settled tables.
func settled(text string) bool {
	for _, name := range store.Settled {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}
