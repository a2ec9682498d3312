// Package feed tells clients what committed transactions have changed, on this server and on others that share its
// database. It keeps the last events in memory, so that a client that reconnects soon misses no event.
package feed

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

const (
	gatherTime   = 50 * time.Millisecond // changes within this time are sent together
	pollInterval = 50 * time.Millisecond
	keptEvents   = 4096
)

// Event is a change with its number.
type Event struct {
	N int64
	store.Announcement
}

// Feed numbers changes and keeps the last ones.
//
// Servers that share a database exchange changes in batches through a table, at most one every gatherTime. That works
// through any connection pooler and adds nothing to the transactions of others. A server reads the table only while it
// has readers.
type Feed struct {
	db      *store.DB
	log     *slog.Logger
	process string
	changed notify.Signal // announcements of the store
	batches int64         // batches that this server has stored

	polling sync.Mutex       // serializes reads of the table
	seen    map[string]int64 // last batch read of each other server

	mu      sync.Mutex
	epoch   string  // numbers can be compared only within one epoch
	events  []Event // the last events, in order
	last    int64   // number of the last event
	floor   int64   // readers at a lower number have missed events
	readers int
	more    chan struct{} // closed when there are new events
}

// New returns a feed of the changes from now on. Readers get them only while Run is active.
func New(db *store.DB, log *slog.Logger, process string) *Feed {
	return &Feed{db: db, log: log, process: process, changed: db.Announced(), epoch: newEpoch(),
		more: make(chan struct{})}
}

func newEpoch() string { return reeve.RandomSecret(6) }

// Run publishes changes until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	for {
		wait := time.Hour
		if f.isPolling() {
			wait = pollInterval
		}
		if !f.changed.Wait(ctx, wait) {
			return nil
		}
		if err := f.step(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("cannot exchange changes with other servers", "error", err)
		}
		if !notify.Sleep(ctx, gatherTime) {
			return nil
		}
	}
}

// isPolling reports whether the feed reads changes of other servers.
func (f *Feed) isPolling() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readers > 0 && !f.db.SingleProcess()
}

// step publishes the changes that were announced on this server and on others. If the exchange with other servers
// fails, the readers of all servers must read everything again.
func (f *Feed) step(ctx context.Context) error {
	list, lost := f.db.TakeAnnounced()
	f.publish(list, lost)
	if f.db.SingleProcess() {
		return nil
	}
	if len(list) > 0 || lost {
		f.batches++ // also if the write fails: other servers then notice the gap
		if err := f.db.Update(ctx, func(tx *store.Tx) error {
			return tx.System().InsertAnnouncements(ctx, store.AnnouncementBatch{Process: f.process, N: f.batches,
				Changes: list,
				Lost:    lost})
		}); err != nil {
			return err
		}
	}
	if !f.isPolling() {
		return nil
	}
	f.polling.Lock()
	defer f.polling.Unlock()
	return f.poll(ctx, false)
}

// poll reads the changes of other servers. If skip is set, it only records their position.
func (f *Feed) poll(ctx context.Context, skip bool) error {
	var batches []store.AnnouncementBatch
	if err := f.db.View(ctx, func(s *store.Snap) (err error) {
		batches, err = s.System().ListAnnouncements(ctx, f.process)
		return err
	}); err != nil {
		return err
	}
	if skip {
		f.seen = map[string]int64{}
	}
	var list []store.Announcement
	lost := false
	for _, b := range batches {
		last := f.seen[b.Process]
		if b.N <= last {
			continue
		}
		lost = lost || b.Lost || b.N != last+1
		list = append(list, b.Changes...)
		f.seen[b.Process] = b.N
	}
	if !skip {
		f.publish(list, lost)
	}
	return nil
}

// publish adds events. If changes were lost, all readers must read everything again.
func (f *Feed) publish(list []store.Announcement, lost bool) {
	if len(list) == 0 && !lost {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if lost {
		f.last++
		f.events, f.floor = nil, f.last
	}
	for _, a := range list {
		f.last++
		f.events = append(f.events, Event{f.last, a})
	}
	if n := len(f.events) - keptEvents; n > 0 {
		f.floor = f.events[n-1].N
		f.events = append([]Event{}, f.events[n:]...)
	}
	close(f.more)
	f.more = make(chan struct{})
}

// Reader is the position of one client. It is not safe for concurrent use.
type Reader struct {
	feed     *Feed
	epoch    string
	position int64
}

// Subscribe returns a reader of the events after the event with the given id. If id is empty, the reader begins with
// the next event. The result continues reports whether no event was missed. If it is false, the client must read
// everything again. The caller must close the reader.
func (f *Feed) Subscribe(ctx context.Context, after string) (r *Reader, continues bool, err error) {
	f.polling.Lock()
	defer f.polling.Unlock()
	f.mu.Lock()
	isFirst := f.readers == 0
	f.mu.Unlock()
	if isFirst && !f.db.SingleProcess() { // until now this server did not read the changes of others
		if err := f.poll(ctx, true); err != nil {
			return nil, false, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if isFirst && !f.db.SingleProcess() {
		f.epoch = newEpoch()
	}
	f.readers++
	f.changed.Notify() // makes Run begin to poll
	r = &Reader{feed: f, epoch: f.epoch, position: f.last}
	if after == "" {
		return r, true, nil
	}
	epoch, text, _ := strings.Cut(after, "-")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || epoch != f.epoch || n < f.floor || n > f.last {
		return r, false, nil
	}
	r.position = n
	return r, true, nil
}

// Close releases the reader.
func (r *Reader) Close() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	r.feed.readers--
}

// ID returns the id of the reader's position.
func (r *Reader) ID() string { return r.IDOf(r.position) }

// IDOf returns the id of an event.
func (r *Reader) IDOf(n int64) string { return r.epoch + "-" + strconv.FormatInt(n, 10) }

// Next returns the next events of a workspace, and waits if there are none. It returns missed if the reader has missed
// events; the client must then read everything again.
func (r *Reader) Next(ctx context.Context, workspace string) (events []Event, missed bool, err error) {
	for {
		events, missed, more := r.take(workspace)
		if len(events) > 0 || missed {
			return events, missed, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// take returns the events after the reader's position, and a channel that is closed when there are new events.
func (r *Reader) take(workspace string) (events []Event, missed bool, more <-chan struct{}) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	missed = r.position < f.floor
	for i := len(f.events); i > 0 && !missed; i-- {
		if f.events[i-1].N <= r.position {
			break
		}
		if e := f.events[i-1]; e.Workspace == "" || e.Workspace == workspace {
			events = append(events, e)
		}
	}
	for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
		events[i], events[j] = events[j], events[i]
	}
	r.position = f.last
	return events, missed, f.more
}
