package automation

import (
	"context"
	"sync"
	"time"

	"reeve"
	"reeve/internal/store"
)

// flushDelay is how long a record waits for a call to carry it.
const flushDelay = 20 * time.Millisecond

// maxPending bounds the pending records. A script that is faster than the store waits.
const maxPending = 512

// itemEntry is one pending record.
type itemEntry struct {
	item    reeve.Item
	isStart bool // the item is entered, not finished

	planned *reeve.PlannedCall // a planned call of a dry run, instead of an item
}

// itemBuffer holds the records of a run that are not written yet. Writing a record twice has no effect, so records are
// written again after an uncertain commit.
type itemBuffer struct {
	writing        sync.Mutex // held from reading the entries until markCommitted
	entries        []itemEntry
	writingEntries int       // number of entries in the last transaction
	included       bool      // a transaction has written the entries since setCarrier
	committedAt    time.Time // time of the last commit
	timer          *time.Timer

	progressChanges int // number of changes of the progress
	progressWriting int // number of changes in the last transaction
	progressWritten int // number of changes committed
}

// addEntry queues a record. The caller holds w.mu.
func (w *execution) addEntry(e itemEntry) {
	if !w.isDryRun() {
		w.buffer.entries = append(w.buffer.entries, e)
	}
	w.scheduleFlush()
}

// scheduleFlush counts a change of the progress and starts the flush timer. The caller holds w.mu.
func (w *execution) scheduleFlush() {
	if w.trial != nil {
		return // a trial stores nothing
	}
	w.buffer.progressChanges++
	if w.buffer.timer == nil && !w.isOver {
		w.buffer.timer = time.AfterFunc(flushDelay, w.flushIfDue)
	}
}

// flushIfDue runs when the flush timer fires. If a transaction was committed less than flushDelay ago, it restarts the
// timer. Otherwise it writes the queued records. Calls do not restart the timer, because that costs more.
func (w *execution) flushIfDue() {
	w.mu.Lock()
	wait := flushDelay - reeve.Since(w.buffer.committedAt)
	switch {
	case w.isOver:
		w.mu.Unlock()
		return
	case w.buffer.hasPending() && wait > 0: // the pending records are newer than the last commit
		w.buffer.timer.Reset(wait)
		w.mu.Unlock()
		return
	}
	w.buffer.timer = nil
	w.mu.Unlock()
	if err := w.flush(context.WithoutCancel(w.ctx)); err != nil {
		w.Runner.Log.Warn("item write failed; will retry with the next call", "run", w.run.ID, "error", err)
	}
}

// flush writes the pending records.
func (w *execution) flush(ctx context.Context) error {
	w.buffer.writing.Lock()
	defer w.buffer.writing.Unlock()
	if !w.hasPending() {
		return nil
	}
	err := w.DB.Update(ctx, func(tx *store.Tx) error { return w.writePending(ctx, tx, true) })
	if err == nil {
		w.markCommitted()
	}
	return err
}

func (w *execution) hasPending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.hasPending()
}

// hasPending reports whether records or progress are not written.
func (l *itemBuffer) hasPending() bool {
	return l.progressWritten < l.progressChanges || len(l.entries) > 0
}

// writePending writes the pending records into a transaction. It writes the progress if progress is set or the last
// write is some time ago. The caller holds w.buffer.writing and calls markCommitted after the commit.
func (w *execution) writePending(ctx context.Context, tx *store.Tx, progress bool) error {
	w.mu.Lock()
	list := w.buffer.entries[:len(w.buffer.entries):len(w.buffer.entries)]
	w.buffer.writingEntries, w.buffer.progressWriting, w.buffer.included = len(list), w.buffer.progressWritten, true
	var note reeve.ScriptRun
	if progress = progress || reeve.Since(w.progressWrittenAt) > 2*flushDelay; progress {
		note, w.buffer.progressWriting = w.snapshotRecord(), w.buffer.progressChanges
	}
	w.mu.Unlock()
	for _, e := range list {
		var err error
		switch {
		case e.planned != nil:
			err = tx.Automations().InsertPlannedCall(ctx, w.run.WorkspaceID, w.run.ID, *e.planned)
		case e.isStart:
			err = tx.Automations().StartItem(ctx, e.item, w.script.ID)
		default:
			err = tx.Automations().FinishItem(ctx, e.item)
		}
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			// a person resolved the item meanwhile
			if reeve.CodeOf(err) == reeve.Conflict {
				w.buffer.entries = nil
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

// markCommitted removes the records that the last transaction wrote. The caller holds w.buffer.writing.
func (w *execution) markCommitted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buffer.entries = w.buffer.entries[min(w.buffer.writingEntries, len(w.buffer.entries)):]
	if w.buffer.progressWriting > w.buffer.progressWritten {
		w.buffer.progressWritten, w.progressWrittenAt = w.buffer.progressWriting, reeve.Monotonic()
	}
	w.buffer.writingEntries, w.buffer.included, w.buffer.committedAt = 0, false, reeve.Monotonic()
}

// findItem returns an item from the buffer or the store.
func (w *execution) findItem(ctx context.Context, id string) (v reeve.Item, found bool, err error) {
	if v, found = w.findUnwritten(id); found {
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

// findUnwritten returns an item as this run left it, if the store does not have that record yet.
func (w *execution) findUnwritten(id string) (v reeve.Item, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.buffer.entries) - 1; i >= 0; i-- {
		if e := w.buffer.entries[i]; e.item.ID == id {
			return e.item, true
		}
	}
	v, found = w.dryItems[id]
	return v, found
}
