package chat

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	minShare      = 32 << 10 // minimum memory of a conversation's frames in bytes, when there are many conversations
	maxShare      = 1 << 20  // maximum, when there are few; a single larger frame is still kept
	frameOverhead = 96       // memory of a frame besides its data
	pageSize      = 200      // stored frames that are read at once
)

// EncodedFrame is a frame in the form in which it is sent. It is encoded once for all clients.
type EncodedFrame struct {
	Seq  int64
	Type reeve.FrameType
	Turn string
	Data json.RawMessage

	prevToken int64 // for a token: the previous token of the same message; 0 if it is the first
}

func encodeFrame(f reeve.Frame) (EncodedFrame, error) {
	b, err := json.Marshal(f)
	return EncodedFrame{Seq: f.Seq, Type: f.Type, Turn: f.TurnID, Data: b}, err
}

// stream holds the latest frames of one conversation.
type stream struct {
	id      string
	db      *store.DB
	share   *atomic.Int64 // limit of frameBytes, set by the Broadcaster
	usedAt  time.Time     // usedAt and readers are guarded by Broadcaster.mu
	readers int

	loadMu sync.Mutex // serializes reads of the store and the publication of their results

	mu              sync.Mutex
	isOpened        bool           // lastStored has been read
	isStale         bool           // the last read of the store failed
	pendingMarks    int            // calls of markPending
	flushedMarks    int            // calls of markPending whose frames are published
	refreshRequests int            // calls of requestRefresh
	servedRequests  int            // calls of requestRefresh that a read has served
	lastStored      int64          // sequence number of the last stored frame that was published
	lastSeq         int64          // the highest sequence number in use
	floor           int64          // frames contains every frame after this number
	frames          []EncodedFrame // in order
	frameBytes      int
	lastToken       map[string]int64 // by turn: number of the last token of the unfinished message
	changed         chan struct{}    // closed when there are new frames; nil if nobody waits
}

// openOnce reads the number of the last stored frame. It returns false if that was done before. The caller holds
// loadMu.
func (s *stream) openOnce(ctx context.Context) (bool, error) {
	s.mu.Lock()
	isOpened := s.isOpened
	s.mu.Unlock()
	if isOpened {
		return false, nil
	}
	var last int64
	err := s.db.View(ctx, func(snap *store.Snap) (err error) {
		last, err = snap.Chat().LastFrame(ctx, s.id)
		return err
	})
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOpened, s.lastStored, s.lastSeq, s.floor = true, last, last, last
	return true, nil
}

// markPending records that frames were committed which are not published yet.
func (s *stream) markPending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingMarks++
}

// hasPending reports whether there are frames that must be published before anything else.
func (s *stream) hasPending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isOpened || s.pendingMarks > s.flushedMarks
}

// flush publishes pending frames.
func (s *stream) flush(ctx context.Context) error {
	if !s.hasPending() {
		return nil
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	if !s.hasPending() {
		return nil
	}
	return s.loadNew(ctx)
}

// refresh publishes all frames that were committed before the call.
func (s *stream) refresh(ctx context.Context) error { return s.serveRefresh(ctx, s.requestRefresh()) }

// requestRefresh returns a ticket for serveRefresh.
func (s *stream) requestRefresh() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshRequests++
	return s.refreshRequests
}

// serveRefresh publishes the frames that were committed before the request, unless another read has done so. However
// many goroutines call it, each waits for at most two reads.
func (s *stream) serveRefresh(ctx context.Context, request int) error {
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	s.mu.Lock()
	isServed := s.servedRequests >= request
	s.mu.Unlock()
	if isServed {
		return nil
	}
	return s.loadNew(ctx)
}

// loadNew reads the stored frames since the last read and publishes them. The caller holds loadMu.
func (s *stream) loadNew(ctx context.Context) (err error) {
	s.mu.Lock()
	marks, requests := s.pendingMarks, s.refreshRequests
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.isStale = err != nil; err == nil {
			s.flushedMarks, s.servedRequests = marks, requests
		}
	}()
	if isFirst, err := s.openOnce(ctx); err != nil || isFirst {
		return err // new readers get earlier frames from the store
	}
	for {
		s.mu.Lock()
		after := s.lastStored
		s.mu.Unlock()
		stored, err := listStoredFrames(ctx, s.db, s.id, after)
		if err != nil {
			return err
		}
		frames, err := encodeFrames(s.id, stored)
		if err != nil {
			return err
		}
		s.publish(frames)
		if len(frames) < pageSize {
			return nil
		}
	}
}

// listStoredFrames returns up to pageSize stored frames after a sequence number.
func listStoredFrames(ctx context.Context, db *store.DB, conversation string,
	after int64) (list []reeve.Frame, err error) {
	err = db.View(ctx, func(snap *store.Snap) (err error) {
		list, err = snap.Chat().ListFrames(ctx, conversation, after, pageSize)
		return err
	})
	return list, err
}

func encodeFrames(conversation string, frames []reeve.Frame) ([]EncodedFrame, error) {
	encoded := make([]EncodedFrame, len(frames))
	for i, f := range frames {
		f.ConversationID = conversation
		var err error
		if encoded[i], err = encodeFrame(f); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// publish makes stored frames available to readers.
func (s *stream) publish(frames []EncodedFrame) {
	if len(frames) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range frames {
		s.lastStored, s.lastSeq = f.Seq, f.Seq
		if endsMessage(f.Type) {
			delete(s.lastToken, f.Turn)
		}
		s.appendFrame(f)
	}
	s.notifyReaders()
}

// endsMessage reports whether later tokens of the turn belong to another message.
func endsMessage(t reeve.FrameType) bool {
	return t == reeve.FrameMessage || t == reeve.FrameTool || t == reeve.FrameComplete
}

// publishToken makes a token available to readers. It drops the token if there are no sequence numbers left before the
// next stored frame.
func (s *stream) publishToken(f reeve.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastSeq+1 >= s.lastStored+store.FrameStep {
		return
	}
	f.Seq = s.lastSeq + 1
	encoded, err := encodeFrame(f)
	if err != nil {
		return // impossible: only tool arguments can fail to encode, and tokens have none
	}
	if !f.Discard {
		encoded.prevToken = s.lastToken[f.TurnID]
	}
	s.lastSeq, s.lastToken[f.TurnID] = f.Seq, f.Seq
	s.appendFrame(encoded)
	s.notifyReaders()
}

// appendFrame appends a frame and drops the oldest frames over the memory limit. The caller holds mu.
func (s *stream) appendFrame(f EncodedFrame) {
	s.frames = append(s.frames, f)
	s.frameBytes += len(f.Data) + frameOverhead
	for limit := int(s.share.Load()); len(s.frames) > 1 && s.frameBytes > limit; {
		old := s.frames[0]
		s.floor, s.frameBytes = old.Seq, s.frameBytes-len(old.Data)-frameOverhead
		s.frames[0] = EncodedFrame{}
		s.frames = s.frames[1:]
	}
}

// notifyReaders wakes the readers that wait for frames. The caller holds mu.
func (s *stream) notifyReaders() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// listAfter returns up to limit frames after a sequence number. If there are none, it returns a channel that is closed
// when there are. It returns false if some frames after the number are no longer in memory.
func (s *stream) listAfter(seq int64, limit int) (frames []EncodedFrame, more <-chan struct{}, inMemory bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq < s.floor {
		return nil, nil, false
	}
	i, _ := slices.BinarySearchFunc(s.frames, seq+1, func(f EncodedFrame, n int64) int { return int(f.Seq - n) })
	if i < len(s.frames) {
		return slices.Clone(s.frames[i:min(len(s.frames), i+limit)]), nil, true
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return nil, s.changed, true
}

// resolvePosition returns the position from which a client reads. The client has seen every frame up to after. A
// negative after means the current end. If skippedFrom is not negative, some messages already have tokens numbered
// above skippedFrom and up to the position. The client gets no tokens of these messages.
//
// The caller must call refresh after the client has connected, because another server may have sent the client newer
// frames. If after is beyond the last number of this server, it may be the number of another server's token. The client
// then gets no token with a smaller number. CheckPosition refuses a number that no token can have.
func (s *stream) resolvePosition(after int64) (position, skippedFrom int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case after < 0:
		return s.lastSeq, 0, nil
	case after <= s.lastSeq:
		return after, -1, nil
	}
	return after, s.lastStored, CheckPosition(after, s.lastStored)
}

// isBehind reports whether the stream lacks the stored frame seq, or could not read it.
func (s *stream) isBehind(seq int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastStored < seq || s.isStale
}

// hasOpenMessage reports whether a message has tokens but is not complete.
func (s *stream) hasOpenMessage() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lastToken) > 0
}

// getState returns the highest sequence number, the floor, and whether the stream must be read again.
func (s *stream) getState() (lastSeq, floor int64, isStale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastSeq, s.floor, s.isStale
}
