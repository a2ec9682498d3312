package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"reeve"
	"reeve/internal/store"
)

// maxGroup bounds how many callers share a commit, and so how long the first of them waits.
const maxGroup = 64

// writer is the one connection that writes. Callers take turns on it within one open transaction, and the caller that
// finds no other waiting commits for all: with a full sync per commit this is what lets many callers be faster than
// one.
//
// A caller that leaves the transaction open relies on those it counted as waiting: each of them takes its turn,
// whatever becomes of its own change, and the last one commits. A savepoint before each change but the first takes back
// a change that fails without touching the others.
type writer struct {
	conn    *conn
	hook    store.CommitHook
	files   *files // looked at before each commit
	turn    sync.Mutex
	waiting atomic.Int32
	group   *group // the open transaction; nil when there is none
	company bool   // the last group was more than one
}

// group is the callers whose changes commit together.
type group struct {
	size int
	done chan struct{}
	err  error
}

var errWithin = reeve.Errorf(reeve.Unsupported,
	"a local tool that writes to this database cannot wait for another transaction, or call another tool that needs one")

// update runs f in the group's transaction and returns when that has been committed. A caller whose own change was
// refused waits as well: the reason may be something another member has written, which nobody can read before the
// commit.
func (w *writer) update(ctx context.Context, f func(store.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if store.InTransaction(ctx) {
		return errWithin
	}
	w.waiting.Add(1)
	w.turn.Lock()
	w.waiting.Add(-1)
	g, err := w.join(ctx, f)
	if g == nil {
		return err
	}
	<-g.done
	if err == nil || g.err != nil {
		return g.err
	}
	return err
}

// join runs f as a member of the open group, or of a new one, and commits the group when no other caller waits. It
// releases the turn that its caller took.
func (w *writer) join(ctx context.Context, f func(store.Conn) error) (_ *group, err error) {
	defer w.turn.Unlock()
	defer func() { // also when f panics or ends its goroutine: the other members wait for a commit
		if g := w.group; g != nil && (g.size >= maxGroup || w.last()) {
			w.commit(g)
		}
	}()
	g := w.group
	if g == nil {
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
		g = &group{done: make(chan struct{})}
		w.group = g
	}
	return g, w.member(g, f)
}

// last tells whether no caller waits. After a group of several others may be about to come: they are let run first.
func (w *writer) last() bool {
	if w.waiting.Load() == 0 && w.company {
		runtime.Gosched()
	}
	return w.waiting.Load() == 0
}

func (w *writer) begin(ctx context.Context) error {
	err := w.conn.run(ctx, "BEGIN IMMEDIATE")
	if errors.Is(err, sql.ErrConnDone) { // given up by a rollback that could not replace it then
		w.renew()
		err = w.conn.run(ctx, "BEGIN IMMEDIATE")
	}
	return err
}

// member runs one caller's change. The first needs no savepoint: if it fails, the transaction holds nothing else yet.
func (w *writer) member(g *group, f func(store.Conn) error) (err error) {
	first := g.size == 0
	if !first {
		if err := w.conn.must("SAVEPOINT member"); err != nil {
			w.fail(g, err)
			return err
		}
	}
	kept := false
	defer func() {
		switch {
		case kept:
		case first:
			w.fail(g, err)
		default:
			if undo := errors.Join(w.conn.must("ROLLBACK TO member"), w.conn.must("RELEASE member")); undo != nil {
				// SQLite has ended the transaction by itself, as it does when the disk is full. The others get the
				// reason.
				if err == nil {
					err = undo
				}
				w.fail(g, err)
			}
		}
	}()
	if err := f(w.conn); err != nil {
		return err
	}
	if !first {
		if err := w.conn.must("RELEASE member"); err != nil {
			return err
		}
	}
	kept = true
	g.size++
	return nil
}

// commit makes the group's changes durable and tells everybody.
func (w *writer) commit(g *group) {
	err := errors.New("the commit was abandoned")
	defer func() { // also when a hook panics
		if err != nil {
			w.rollback()
		}
		w.end(g, err)
	}()
	if gone := w.files.present(); gone != nil {
		err = gone
		return
	}
	w.hook.Before()
	if err = w.conn.must("COMMIT"); err != nil {
		err = unsure(err)
		return
	}
	w.hook.After()
}

// fail throws the transaction away. Whoever waits in it is told why.
func (w *writer) fail(g *group, err error) {
	w.rollback()
	w.end(g, err)
}

func (w *writer) end(g *group, err error) {
	g.err = err
	close(g.done)
	w.group, w.company = nil, g.size > 1
}

// rollback ends the transaction if SQLite has not already done so by itself. A connection on which even that fails is
// given up for a new one.
func (w *writer) rollback() {
	if w.conn.must("ROLLBACK") == nil || w.conn.idle() {
		return
	}
	w.renew()
}

// renew replaces the connection. If it was the only one, SQLite removes the log with it and makes another.
func (w *writer) renew() {
	w.conn.renew()
	w.files.forgetLog()
}

// unsure tells whether a failed commit may yet be found in the log after a crash: after an I/O error nobody can say. A
// full disk or a lock refuses before the commit is written.
func unsure(err error) error {
	var f store.Fault
	if errors.As(err, &f) && (f.Kind == store.FaultOther || f.Kind == store.FaultDisk) {
		return store.Fault{Kind: store.FaultUnsure, Err: f}
	}
	return err
}
