package automation

import (
	"context"
	"sync"
	"time"

	"reeve"
	"reeve/internal/store"
)

// soon is how long a change of the ledger waits for a call to take it along.
const soon = 20 * time.Millisecond

// mostWaiting is how many changes may wait: a script that is faster than the store waits for it.
const mostWaiting = 512

// entry is one change of the ledger that is to be written.
type entry struct {
	item  reeve.Item
	enter bool // it is entered, not left

	planned *reeve.PlannedCall // of a dry run, instead of the others
}

// ledger is what of a run's items is known and not written yet. Writing an entry twice is writing it once, so that what
// may have been written is written again.
type ledger struct {
	writing sync.Mutex // one writer at a time, from reading what waits to noting that it is written
	waits   []entry
	written int       // how many of them the last transaction wrote
	taken   bool      // it was that of a call
	last    time.Time // when it was committed
	timer   *time.Timer

	moves  int // of the progress
	noting int // how many of them the last transaction wrote
	noted  int // how many are written
}

// noteEntry adds a change. The caller holds w.mu.
func (w *work) noteEntry(e entry) {
	if !w.dry() {
		w.ledger.waits = append(w.ledger.waits, e)
	}
	w.arm()
}

// arm sees to it that what waits is written soon. The caller holds w.mu.
func (w *work) arm() {
	if w.trial != nil {
		return // nothing of it is kept
	}
	w.ledger.moves++
	if w.ledger.timer == nil && !w.over {
		w.ledger.timer = time.AfterFunc(soon, w.due)
	}
}

// due writes what has waited long enough. The timer is left alone while calls take along what waits: to stop it and
// start it for each of them would cost more.
func (w *work) due() {
	w.mu.Lock()
	wait := soon - reeve.Since(w.ledger.last)
	switch {
	case w.over:
		w.mu.Unlock()
		return
	case w.ledger.behind() && wait > 0: // what waits came after that
		w.ledger.timer.Reset(wait)
		w.mu.Unlock()
		return
	}
	w.ledger.timer = nil
	w.mu.Unlock()
	if err := w.flush(context.WithoutCancel(w.ctx)); err != nil {
		w.Runner.Log.Warn("could not write the ledger of a run; trying again with its next call", "run", w.run.ID,
			"error", err)
	}
}

// flush writes what waits.
func (w *work) flush(ctx context.Context) error {
	w.ledger.writing.Lock()
	defer w.ledger.writing.Unlock()
	if !w.waiting() {
		return nil
	}
	err := w.DB.Update(ctx, func(tx *store.Tx) error { return w.write(ctx, tx, true) })
	if err == nil {
		w.wrote()
	}
	return err
}

func (w *work) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.behind()
}

// behind tells whether anything is to be written.
func (l *ledger) behind() bool { return l.noted < l.moves || len(l.waits) > 0 }

// write writes what waits into a transaction, the progress too if it must be or was not for some time. The caller holds
// w.ledger.writing; wrote notes that it was committed.
func (w *work) write(ctx context.Context, tx *store.Tx, progress bool) error {
	w.mu.Lock()
	list := w.ledger.waits[:len(w.ledger.waits):len(w.ledger.waits)]
	w.ledger.written, w.ledger.noting, w.ledger.taken = len(list), w.ledger.noted, true
	var note reeve.ScriptRun
	if progress = progress || reeve.Since(w.seen) > 2*soon; progress {
		note, w.ledger.noting = w.noted(), w.ledger.moves
	}
	w.mu.Unlock()
	for _, e := range list {
		var err error
		switch {
		case e.planned != nil:
			err = tx.Automations().InsertPlannedCall(ctx, w.run.WorkspaceID, w.run.ID, *e.planned)
		case e.enter:
			err = tx.Automations().StartItem(ctx, e.item, w.script.ID)
		default:
			err = tx.Automations().FinishItem(ctx, e.item)
		}
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			// a person settled it meanwhile: whatever the script was at, it ends here
			if reeve.CodeOf(err) == reeve.Conflict {
				w.ledger.waits = nil
				return w.abort(reeve.AsError(err))
			}
			return err
		}
	}
	if !progress {
		return nil
	}
	return tx.Automations().UpdateScriptRun(ctx, note)
}

// wrote notes that what the last transaction wrote is committed. The caller holds w.ledger.writing.
func (w *work) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger.waits = w.ledger.waits[min(w.ledger.written, len(w.ledger.waits)):]
	if w.ledger.noting > w.ledger.noted {
		w.ledger.noted, w.seen = w.ledger.noting, reeve.Monotonic()
	}
	w.ledger.written, w.ledger.taken, w.ledger.last = 0, false, reeve.Monotonic()
}

// find gives an item as the ledger has it, with what waits to be written; false means that it is new.
func (w *work) find(ctx context.Context, id string) (v reeve.Item, found bool, err error) {
	if v, found = w.unwritten(id); found {
		return v, true, nil
	}
	err = w.DB.View(ctx, func(s *store.Snap) (err error) {
		v, err = s.Automations().GetItem(ctx, w.run.AgentID, id)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return v, false, nil
	}
	return v, err == nil, err
}

// unwritten gives an item as this run left it, if the store does not have that yet.
func (w *work) unwritten(id string) (v reeve.Item, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.ledger.waits) - 1; i >= 0; i-- {
		if e := w.ledger.waits[i]; e.item.ID == id {
			return e.item, true
		}
	}
	v, found = w.closed[id]
	return v, found
}
