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
	pollInterval   = 250 * time.Millisecond // delay until frames of other servers are published here
	idleTimeout    = 30 * time.Second       // time after which a conversation without readers leaves memory
	sweepInterval  = 10 * time.Second
	maxIdleStreams = 4096 // conversations without readers in memory
	// memory for the frames of all conversations, enough for some seconds of a thousand busy ones
	frameMemory = 32 << 20
	readTimeout = 5 * time.Second // limit for a read of the store that no client waits for
)

// Broadcaster sends the frames of conversations to their readers.
type Broadcaster struct {
	db  *store.DB
	log *slog.Logger

	streamShare atomic.Int64 // memory limit of each conversation in bytes
	memory      int          // memory limit of all conversations in bytes
	mu          sync.Mutex
	streams     map[string]*stream
	sweptAt     time.Time
	sweepAt     int // number of streams that triggers a sweep
}

// NewBroadcaster returns a broadcaster. Unless Run is active, it does not notice frames that other servers commit.
func NewBroadcaster(db *store.DB, log *slog.Logger) *Broadcaster {
	h := &Broadcaster{db: db, log: log, memory: frameMemory, streams: map[string]*stream{}, sweptAt: reeve.Monotonic(),
		sweepAt: maxIdleStreams}
	h.updateShare()
	return h
}

// Token publishes a piece of an answer. Tokens are not stored. Clients that miss them get the text in message_complete.
func (h *Broadcaster) Token(conversation string, f reeve.Frame) {
	f.Type, f.ConversationID = reeve.FrameToken, conversation
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	s := h.getStream(conversation, 0)
	if err := s.flush(ctx); err != nil {
		h.log.Warn("token dropped: cannot read earlier frames", "conversation", conversation, "error", err)
		return
	}
	s.publishToken(f)
}

// MarkPending records that frames were committed which Flush will publish. A Token that comes before Flush publishes
// them first. So a run can start before its clients know about the turn.
func (h *Broadcaster) MarkPending(conversation string) { h.getStream(conversation, 0).markPending() }

// Flush publishes the frames announced by MarkPending, unless a Token has done so.
func (h *Broadcaster) Flush(conversation string) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	if s := h.getStream(conversation, 0); s.hasPending() {
		h.refreshStream(ctx, s)
	}
}

// Changed publishes the frames that were committed before the call. A Token after it has a higher sequence number.
func (h *Broadcaster) Changed(conversation string) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	h.refreshStream(ctx, h.getStream(conversation, 0))
}

// refreshStream publishes the committed frames of a conversation. If the read fails, the stream becomes stale and its
// readers try again.
func (h *Broadcaster) refreshStream(ctx context.Context, s *stream) {
	if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("cannot read the frames of a conversation", "conversation", s.id, "error", err)
	}
}

// getStream returns the stream of a conversation and adds to its number of readers.
func (h *Broadcaster) getStream(conversation string, readers int) *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := reeve.Monotonic()
	s, ok := h.streams[conversation]
	if !ok {
		if now.Sub(h.sweptAt) > sweepInterval || len(h.streams) >= h.sweepAt {
			h.sweep(now)
		}
		s = &stream{id: conversation, db: h.db, share: &h.streamShare, lastToken: map[string]int64{}}
		h.streams[conversation] = s
		h.updateShare()
	}
	s.usedAt = now
	s.readers += readers
	return s
}

// updateShare divides the memory among the streams. The caller holds mu.
func (h *Broadcaster) updateShare() {
	h.streamShare.Store(int64(min(maxShare, max(minShare, h.memory/max(1, len(h.streams))))))
}

func (h *Broadcaster) removeReader(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.readers--
}

// sweep drops streams that have no readers and are idle. If too many without readers remain, it drops all of those. The
// caller holds mu.
func (h *Broadcaster) sweep(now time.Time) {
	h.sweptAt = now
	defer h.updateShare()
	defer func() { h.sweepAt = max(maxIdleStreams, 2*len(h.streams)) }()
	idle := 0
	for id, s := range h.streams {
		switch {
		case s.readers > 0:
		case now.Sub(s.usedAt) > idleTimeout && !s.hasOpenMessage():
			delete(h.streams, id)
		default:
			idle++
		}
	}
	if idle < maxIdleStreams {
		return
	}
	for id, s := range h.streams {
		if s.readers == 0 {
			delete(h.streams, id)
		}
	}
}

// Run publishes frames of other servers until ctx ends.
func (h *Broadcaster) Run(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := h.Step(ctx); err != nil && ctx.Err() == nil {
				h.log.Warn("cannot check conversations for new frames", "error", err)
			}
		}
	}
}

// Step checks once for new frames of all conversations that have readers, and publishes them.
func (h *Broadcaster) Step(ctx context.Context) error {
	h.mu.Lock()
	streams := make(map[string]*stream, len(h.streams))
	ids := make([]string, 0, len(h.streams))
	for id, s := range h.streams {
		if s.readers > 0 {
			streams[id], ids = s, append(ids, id)
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
		if streams[id].isBehind(seq) {
			h.refreshStream(ctx, streams[id])
		}
	}
	return nil
}
