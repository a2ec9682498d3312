package chat

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	pollEvery  = 250 * time.Millisecond // how soon what another server committed is seen here
	idleAfter  = 30 * time.Second       // a conversation that nobody listens to leaves memory after that
	sweepEvery = 10 * time.Second
	mostIdle   = 4096 // conversations in memory that nobody listens to
	// bytes for the frames of all conversations: a thousand that stream have some seconds each
	memory   = 32 << 20
	patience = 5 * time.Second // for a read of the store that no client waits for
)

// Broadcaster tells the clients of conversations what happens in them.
type Broadcaster struct {
	db  *store.DB
	log *slog.Logger

	share   atomic.Int64 // bytes for each conversation
	memory  int          // bytes for all
	mu      sync.Mutex
	streams map[string]*stream
	swept   time.Time
	most    int // how many make it sweep at once
}

// NewBroadcaster makes a hub. Without Run it works, and does not notice what other servers commit.
func NewBroadcaster(db *store.DB, log *slog.Logger) *Broadcaster {
	h := &Broadcaster{db: db, log: log, memory: memory, streams: map[string]*stream{}, swept: reeve.Monotonic(),
		most: mostIdle}
	h.divide()
	return h
}

// Token tells a piece of an answer. It is not kept: clients that come later find it in the message_complete.
func (h *Broadcaster) Token(conversation string, f reeve.Frame) {
	f.Type, f.ConversationID = reeve.FrameToken, conversation
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := h.stream(conversation, 0)
	if err := s.settle(ctx); err != nil {
		h.log.Warn("a piece of an answer was not told", "conversation", conversation, "error", err)
		return
	}
	s.token(f)
}

// MarkPending says that frames were committed which Settle will tell: a Token that is faster tells them first. So a
// turn need not wait until its clients know that it began.
func (h *Broadcaster) MarkPending(conversation string) { h.stream(conversation, 0).expect() }

// Flush tells what was expected, unless that is done.
func (h *Broadcaster) Flush(conversation string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s := h.stream(conversation, 0); s.owes() {
		h.refresh(ctx, s)
	}
}

// Changed tells what was committed since it was called last. The caller's next Token comes after it.
func (h *Broadcaster) Changed(conversation string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.refresh(ctx, h.stream(conversation, 0))
}

// refresh brings a conversation up to date. When that fails, its clients try again.
func (h *Broadcaster) refresh(ctx context.Context, s *stream) {
	if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("what happened in a conversation could not be read", "conversation", s.id, "error", err)
	}
}

// stream gives a conversation's stream, with so many more readers.
func (h *Broadcaster) stream(conversation string, readers int) *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := reeve.Monotonic()
	s, ok := h.streams[conversation]
	if !ok {
		if now.Sub(h.swept) > sweepEvery || len(h.streams) >= h.most {
			h.sweep(now)
		}
		s = &stream{id: conversation, db: h.db, share: &h.share, tail: map[string]int64{}}
		h.streams[conversation] = s
		h.divide()
	}
	s.used = now
	s.readers += readers
	return s
}

// divide gives every conversation its share of the memory: bursts are held for slow readers as long as there is room.
// The caller holds the lock.
func (h *Broadcaster) divide() {
	h.share.Store(int64(min(mostShare, max(leastShare, h.memory/max(1, len(h.streams))))))
}

// leave ends a reader.
func (h *Broadcaster) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.readers--
}

// sweep forgets conversations that nobody listens to and that are quiet, or, when there are too many, all that nobody
// listens to. The caller holds the lock.
func (h *Broadcaster) sweep(now time.Time) {
	h.swept = now
	defer h.divide()
	defer func() { h.most = max(mostIdle, 2*len(h.streams)) }()
	idle := 0
	for id, s := range h.streams {
		switch {
		case s.readers > 0:
		case now.Sub(s.used) > idleAfter && !s.midway():
			delete(h.streams, id)
		default:
			idle++
		}
	}
	if idle < mostIdle {
		return
	}
	for id, s := range h.streams {
		if s.readers == 0 {
			delete(h.streams, id)
		}
	}
}

// Run notices what was committed without its being told, here or by other servers, until ctx ends.
func (h *Broadcaster) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := h.Step(ctx); err != nil && ctx.Err() == nil {
				h.log.Warn("conversations could not be looked at", "error", err)
			}
		}
	}
}

// Step looks once whether other servers have committed frames of conversations that somebody listens to here.
func (h *Broadcaster) Step(ctx context.Context) error {
	h.mu.Lock()
	heard := make(map[string]*stream, len(h.streams))
	ids := make([]string, 0, len(h.streams))
	for id, s := range h.streams {
		if s.readers > 0 {
			heard[id], ids = s, append(ids, id)
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	var last map[string]int64
	err := h.db.View(ctx, func(s *store.Snap) (err error) {
		last, err = s.Chat().LastFrames(ctx, ids)
		return err
	})
	if err != nil {
		return err
	}
	for id, seq := range last {
		if heard[id].behind(seq) {
			h.refresh(ctx, heard[id])
		}
	}
	return nil
}
