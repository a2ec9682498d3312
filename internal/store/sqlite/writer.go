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

// writer is the one connection that writes. Callers take turns on it within one open transaction, and whoever finds nobody
// behind them commits for all: with a full sync per commit this is what lets many callers be faster than one.
//
// Whoever holds the turn and leaves an open transaction behind relies on those it counted as waiting: each of them takes the
// turn, whatever becomes of its own change, and the last one commits.
//
// A change that fails must leave nothing, and take nobody along. A savepoint before each does that, and costs a tenth of a short
// change; most changes do not fail. So there is none at first: when a change fails in company, the whole group is run again, now
// with savepoints, and what it then says is final.
type writer struct {
	conn    *conn
	hook    store.CommitHook
	written func(settled bool, bytes int) // called after each commit
	turn    sync.Mutex
	waiting atomic.Int32
	group   *group // the open transaction; nil when there is none
	careful int    // changes that still get a savepoint because one has failed
	company bool   // the last group was more than one
}

// carefully is how many changes get a savepoint after one has failed in company: where one fails, others do.
const carefully = 256

// group is the callers whose changes commit together.
type group struct {
	size    int
	careful bool     // somebody in it runs again: nobody else's failure may make it do so once more
	sure    []func() // to call before the commit
	done    chan struct{}
	err     error // errAgain: nothing of it remains; run it again
}

var errWithin = reeve.Errorf(reeve.Unsupported, "a local tool that writes to this database cannot wait for another transaction, or call another tool that needs one")

var errAgain = errors.New("a change that shared the transaction failed")

func (w *writer) update(ctx context.Context, f func(store.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if store.Within(ctx) {
		return errWithin
	}
	for again := false; ; again = true {
		w.waiting.Add(1)
		w.turn.Lock()
		w.waiting.Add(-1)
		g, err := w.take(ctx, f, again)
		if g != nil {
			<-g.done // also who was refused: that may be because of what others have written, which nobody can read before
			if err == nil || g.err != nil {
				err = g.err
			}
		}
		if err != errAgain { //nolint:errorlint // it is ours, and never wrapped
			return err
		}
	}
}

// take is a caller's turn. The group it gives is the one whose commit decides, also over what it told f; an error means that nothing of f remains.
func (w *writer) take(ctx context.Context, f func(store.Conn) error, again bool) (_ *group, err error) {
	defer w.turn.Unlock()
	defer func() { // also when f panics or ends its goroutine: those before us wait for a commit
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
	return g, w.member(g, f, again)
}

// last tells whether nobody is behind. Where callers came together just before, others may be about to come: those who can run now
// are let run first.
func (w *writer) last() bool {
	if w.waiting.Load() == 0 && w.company {
		runtime.Gosched()
	}
	return w.waiting.Load() == 0
}

func (w *writer) begin(ctx context.Context) error {
	err := w.conn.run(ctx, "BEGIN IMMEDIATE")
	if errors.Is(err, sql.ErrConnDone) { // given up by a rollback that could not replace it then
		w.conn.renew()
		err = w.conn.run(ctx, "BEGIN IMMEDIATE")
	}
	return err
}

// member runs one caller's change. The first needs no savepoint: if it fails, the transaction holds nothing else yet.
func (w *writer) member(g *group, f func(store.Conn) error, again bool) (err error) {
	first := g.size == 0
	saved := !first && (g.careful || again || w.careful > 0)
	g.careful = g.careful || again
	w.careful = max(0, w.careful-1)
	if saved {
		if err := w.conn.must("SAVEPOINT member"); err != nil {
			w.fail(g, err)
			return err
		}
	}
	settled := false
	defer func() {
		w.conn.sure = nil
		switch {
		case settled:
		case first:
			w.fail(g, err)
		case !saved:
			w.careful = carefully
			w.fail(g, errAgain)
			if err != nil { // and no panic
				err = errAgain
			}
		default:
			if undo := errors.Join(w.conn.must("ROLLBACK TO member"), w.conn.must("RELEASE member")); undo != nil {
				// SQLite has ended the transaction by itself, as it does when the disk is full. The others are told why.
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
	if saved {
		if err := w.conn.must("RELEASE member"); err != nil {
			return err
		}
	}
	settled = true
	g.sure = append(g.sure, w.conn.sure...)
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
	for _, f := range g.sure {
		f()
	}
	w.hook.Before()
	if err = w.conn.must("COMMIT"); err != nil {
		err = unsure(err)
		return
	}
	w.written(w.conn.moved, w.conn.wrote)
	w.conn.moved, w.conn.wrote = false, 0
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

// rollback ends the transaction if SQLite has not already done so by itself. A connection on which even that fails is given up
// for a new one.
func (w *writer) rollback() {
	if w.conn.must("ROLLBACK") == nil || w.conn.idle() {
		return
	}
	w.conn.renew()
}

// unsure tells whether a failed commit may yet be found in the log after a crash: after an I/O error nobody can say. A full
// disk or a lock refuses before the commit is written.
func unsure(err error) error {
	var f store.Fault
	if errors.As(err, &f) && f.Kind == store.FaultOther {
		return store.Fault{Kind: store.FaultUnsure, Err: f.Err}
	}
	return err
}
