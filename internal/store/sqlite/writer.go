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

// maxGroup bounds the number of callers that share a commit, and so how long the first of them waits.
const maxGroup = 64

// writer is the only connection that writes. Concurrent callers run one after another within one open transaction. The
// caller that finds no other caller waiting commits for all of them. Because each commit is synced to disk, this makes
// many callers faster than one.
//
// A caller that leaves the transaction open relies on the callers that it counted as waiting: each of them runs, even
// if its own change fails, and the last one commits. A savepoint before each change but the first undoes a failed
// change without affecting the others.
type writer struct {
	conn          *conn
	hook          store.CommitHook
	files         *watchedFiles // checked before each commit
	turn          sync.Mutex
	waiting       atomic.Int32
	group         *group // the open transaction; nil if there is none
	lastWasShared bool   // the last group had several members
}

// group is a set of callers whose changes commit together.
type group struct {
	size int
	done chan struct{}
	err  error
}

var errNestedTransaction = reeve.Errorf(reeve.Unsupported,
	"a local tool that writes to this database cannot wait for another transaction or call a tool that needs one")

// update runs f in the group's transaction and returns after the commit. A caller whose own change was refused waits
// too, because the reason may be another member's change, which is visible only after the commit.
func (w *writer) update(ctx context.Context, f func(store.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if store.InTransaction(ctx) {
		return errNestedTransaction
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

// join runs f as a member of the open group or of a new one. It commits the group if no other caller waits. The caller
// must hold w.turn; join releases it.
func (w *writer) join(ctx context.Context, f func(store.Conn) error) (_ *group, err error) {
	defer w.turn.Unlock()
	defer func() { // also if f panics or exits its goroutine, because the other members wait for the commit
		if g := w.group; g != nil && (g.size >= maxGroup || w.isLast()) {
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
	return g, w.runMember(g, f)
}

// isLast reports whether no caller waits. If the last group had several members, it lets other goroutines run first,
// because more callers are likely to come.
func (w *writer) isLast() bool {
	if w.waiting.Load() == 0 && w.lastWasShared {
		runtime.Gosched()
	}
	return w.waiting.Load() == 0
}

func (w *writer) begin(ctx context.Context) error {
	err := w.conn.run(ctx, "BEGIN IMMEDIATE")
	if errors.Is(err, sql.ErrConnDone) { // a failed rollback closed it and could not open a new one
		w.renew()
		err = w.conn.run(ctx, "BEGIN IMMEDIATE")
	}
	return err
}

// runMember runs one caller's change. The first needs no savepoint, because the transaction contains nothing else if it
// fails.
func (w *writer) runMember(g *group, f func(store.Conn) error) (err error) {
	first := g.size == 0
	if !first {
		if err := w.conn.runUncanceled("SAVEPOINT member"); err != nil {
			w.abort(g, err)
			return err
		}
	}
	ok := false
	defer func() {
		switch {
		case ok:
		case first:
			w.abort(g, err)
		default:
			if undo := errors.Join(w.conn.runUncanceled("ROLLBACK TO member"),
				w.conn.runUncanceled("RELEASE member")); undo != nil {
				// SQLite has rolled back the transaction itself, for example because the disk is full. The others get
				// the error.
				if err == nil {
					err = undo
				}
				w.abort(g, err)
			}
		}
	}()
	if err := f(w.conn); err != nil {
		return err
	}
	if !first {
		if err := w.conn.runUncanceled("RELEASE member"); err != nil {
			return err
		}
	}
	ok = true
	g.size++
	return nil
}

// commit makes the group's changes durable and notifies its members.
func (w *writer) commit(g *group) {
	err := errors.New("commit was aborted")
	defer func() { // also if a hook panics
		if err != nil {
			w.rollback()
		}
		w.finish(g, err)
	}()
	if absent := w.files.checkPresent(); absent != nil {
		err = absent
		return
	}
	w.hook.Before()
	if err = w.conn.runUncanceled("COMMIT"); err != nil {
		err = uncertainIfWritten(err)
		return
	}
	w.hook.After()
}

// abort rolls back the transaction and returns the error to all members.
func (w *writer) abort(g *group, err error) {
	w.rollback()
	w.finish(g, err)
}

func (w *writer) finish(g *group, err error) {
	g.err = err
	close(g.done)
	w.group, w.lastWasShared = nil, g.size > 1
}

// rollback ends the transaction unless SQLite has ended it already. If that fails, it replaces the connection.
func (w *writer) rollback() {
	if w.conn.runUncanceled("ROLLBACK") == nil || w.conn.isIdle() {
		return
	}
	w.renew()
}

// renew replaces the connection. If it was the only connection to the database, SQLite deletes the log and later
// creates a new one.
func (w *writer) renew() {
	w.conn.renew()
	w.files.forgetWAL()
}

// uncertainIfWritten converts the error of a failed commit to FaultUncertain if the commit may be in the log, which is
// the case after an I/O error. A full disk or a lock fails before the commit is written.
func uncertainIfWritten(err error) error {
	var f store.Fault
	if errors.As(err, &f) && (f.Kind == store.FaultOther || f.Kind == store.FaultDisk) {
		return store.Fault{Kind: store.FaultUncertain, Err: f}
	}
	return err
}
