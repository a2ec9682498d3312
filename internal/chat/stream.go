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
	leastShare = 32 << 10 // bytes of frames that a conversation may have in memory, when there are many
	mostShare  = 1 << 20  // and when there are few; a single larger frame is still held
	lineCost   = 96       // what a line costs besides its bytes
	page       = 200      // kept frames that are read at once
)

// EncodedFrame is a frame as it is sent: encoded once, for every client.
type EncodedFrame struct {
	Seq  int64
	Type reeve.FrameType
	Turn string
	Data json.RawMessage

	prev int64 // of a token: the one before it of the same message; 0 means that it is the first
}

func encode(f reeve.Frame) (EncodedFrame, error) {
	b, err := json.Marshal(f)
	return EncodedFrame{Seq: f.Seq, Type: f.Type, Turn: f.TurnID, Data: b}, err
}

// stream is the latest of one conversation.
type stream struct {
	id      string
	db      *store.DB
	share   *atomic.Int64 // bytes that it may have in memory: the hub's to say
	used    time.Time     // with readers: guarded by the hub
	readers int

	loading sync.Mutex // one at a time reads the store, and publishes what it read

	mu     sync.Mutex
	opened bool
	stale  bool           // what was committed could not be read
	owed   int            // how often somebody said that there is something to read
	paid   int            // up to which of those it was read
	asked  int            // how often somebody wanted to know what is committed
	known  int            // up to which of those it was read
	last   int64          // number of the last kept frame that was told
	number int64          // the last number that was given
	floor  int64          // everything after it is in lines
	lines  []EncodedFrame // in order
	bytes  int
	tail   map[string]int64 // by turn: the number of the last token of the message that is being made
	wait   chan struct{}    // closed when there is more
}

// first learns where the conversation stands, once; false means that it is known already. The caller holds loading.
func (s *stream) first(ctx context.Context) (bool, error) {
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened {
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
	s.opened, s.last, s.number, s.floor = true, last, last, last
	return true, nil
}

// expect notes that there is something to read.
func (s *stream) expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed++
}

// owes tells whether there is something to read before anything else is told.
func (s *stream) owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.opened || s.owed > s.paid
}

// settle tells what somebody said there is to read, if that has not been told yet.
func (s *stream) settle(ctx context.Context) error {
	if !s.owes() {
		return nil
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if !s.owes() {
		return nil
	}
	return s.load(ctx)
}

// refresh tells what was committed before it was called.
func (s *stream) refresh(ctx context.Context) error { return s.answer(ctx, s.ask()) }

// ask notes that somebody wants to know what is committed by now.
func (s *stream) ask() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.asked
}

// answer tells it, unless that is done: of many who ask at once, nobody waits for more than two readings.
func (s *stream) answer(ctx context.Context, asked int) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.mu.Lock()
	known := s.known >= asked
	s.mu.Unlock()
	if known {
		return nil
	}
	return s.load(ctx)
}

// load reads what was committed since, and tells it. The caller holds loading.
func (s *stream) load(ctx context.Context) (err error) {
	s.mu.Lock()
	owed, asked := s.owed, s.asked
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stale = err != nil; err == nil {
			s.paid, s.known = owed, asked
		}
	}()
	if fresh, err := s.first(ctx); err != nil || fresh {
		return err // one who begins to listen has it from the store
	}
	for {
		s.mu.Lock()
		after := s.last
		s.mu.Unlock()
		frames, err := kept(ctx, s.db, s.id, after)
		if err != nil {
			return err
		}
		lines, err := encodeAll(s.id, frames)
		if err != nil {
			return err
		}
		s.tell(lines)
		if len(lines) < page {
			return nil
		}
	}
}

// kept reads a page of the kept frames after a number.
func kept(ctx context.Context, db *store.DB, conversation string, after int64) (list []reeve.Frame, err error) {
	err = db.View(ctx, func(snap *store.Snap) (err error) {
		list, err = snap.Chat().ListFrames(ctx, conversation, after, page)
		return err
	})
	return list, err
}

func encodeAll(conversation string, frames []reeve.Frame) ([]EncodedFrame, error) {
	lines := make([]EncodedFrame, len(frames))
	for i, f := range frames {
		f.ConversationID = conversation
		var err error
		if lines[i], err = encode(f); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// tell publishes kept frames.
func (s *stream) tell(lines []EncodedFrame) {
	if len(lines) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		s.last, s.number = l.Seq, l.Seq
		if endsMessage(l.Type) {
			delete(s.tail, l.Turn)
		}
		s.push(l)
	}
	s.call()
}

// endsMessage tells whether the tokens of a turn that come after such a frame are of another message.
func endsMessage(t reeve.FrameType) bool {
	return t == reeve.FrameMessage || t == reeve.FrameTool || t == reeve.FrameComplete
}

// token publishes a piece of an answer. More than there are numbers for, between two kept frames, are not told.
func (s *stream) token(f reeve.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number+1 >= s.last+store.FrameStep {
		return
	}
	f.Seq = s.number + 1
	l, err := encode(f)
	if err != nil {
		return // it has arguments that are not JSON, which a token never has
	}
	if !f.Discard {
		l.prev = s.tail[f.TurnID]
	}
	s.number, s.tail[f.TurnID] = f.Seq, f.Seq
	s.push(l)
	s.call()
}

// push adds a line, and lets the oldest go when there are too many. The caller holds the lock.
func (s *stream) push(l EncodedFrame) {
	s.lines = append(s.lines, l)
	s.bytes += len(l.Data) + lineCost
	for most := int(s.share.Load()); len(s.lines) > 1 && s.bytes > most; {
		old := s.lines[0]
		s.floor, s.bytes = old.Seq, s.bytes-len(old.Data)-lineCost
		s.lines[0] = EncodedFrame{}
		s.lines = s.lines[1:]
	}
}

// call wakes who waits. The caller holds the lock.
func (s *stream) call() {
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}

// after gives up to most lines after a number, and where to wait when there is none. False means that they are no
// longer all here.
func (s *stream) after(number int64, most int) (lines []EncodedFrame, more <-chan struct{}, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < s.floor {
		return nil, nil, false
	}
	i, _ := slices.BinarySearchFunc(s.lines, number+1, func(l EncodedFrame, n int64) int { return int(l.Seq - n) })
	if i < len(s.lines) {
		return slices.Clone(s.lines[i:min(len(s.lines), i+most)]), nil, true
	}
	if s.wait == nil {
		s.wait = make(chan struct{})
	}
	return nil, s.wait, true
}

// place is where a client goes on that has seen everything up to a number; below 0 means that it wants what comes from
// now on. It is not told the tokens after from, unless that is below 0. The stream must have been refreshed since the
// client came: it may have seen on another server what was not known here. A number that was not given here may be that
// of a token which was told there: it counts for this client alone, which is told no token with a smaller one.
func (s *stream) place(after int64) (at, from int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case after < 0:
		return s.number, 0, nil
	case after <= s.number:
		return after, -1, nil
	}
	return after, s.last, CheckPosition(after, s.last)
}

func (s *stream) behind(seq int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last < seq || s.stale
}

// midway tells whether a message is being made.
func (s *stream) midway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tail) > 0
}

// state gives the last number, up to where the store must be asked, and whether it must be read again.
func (s *stream) state() (number, floor int64, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number, s.floor, s.stale
}
