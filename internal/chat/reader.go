package chat

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// most is how many lines a reader is given at once.
const most = 128

// Reader is one client's place in a conversation. It is used by one goroutine.
type Reader struct {
	hub    *Broadcaster
	stream *stream
	at     int64

	// Tokens in (from, to] were not told to this client, so neither are those of the same messages that follow.
	from, to int64
	lost     map[string]bool // by turn: the rest of its message is not told
}

// Subscribe reads a conversation after a sequence number; 0 means from its beginning, below 0 from now on. Close it.
// What is committed by now counts as there, whichever server did it: a client must not be told again what it saw
// elsewhere, nor be told that there is no more.
func (h *Broadcaster) Subscribe(ctx context.Context, conversation string, after int64) (*Reader, error) {
	s := h.stream(conversation, 1)
	err := s.refresh(ctx)
	r := &Reader{hub: h, stream: s, lost: map[string]bool{}}
	if err == nil {
		r.at, r.from, err = s.place(after)
		r.to = r.at
	}
	if err != nil {
		h.leave(s)
		return nil, err
	}
	return r, nil
}

// CheckPosition refuses a place in a conversation that nobody can have come to: it is beyond the last kept frame and
// all tokens that may follow that. None comes before the first frame.
func CheckPosition(after, last int64) error {
	if after == 0 || last > 0 && after < last+store.FrameStep {
		return nil
	}
	return reeve.Errorf(reeve.Stale, "the conversation has not come to %d: its last frame is %d", after, last).
		Hintf("its database may have been restored from a backup: forget the frames that you have, and begin with " +
			"after=0")
}

// Last is the last sequence number that was given in the conversation.
func (r *Reader) Last() int64 {
	n, _, _ := r.stream.state()
	return n
}

// Idle tells whether there is nothing to read now.
func (r *Reader) Idle() bool {
	lines, _, here := r.stream.after(r.at, 1)
	return here && len(lines) == 0
}

// Close ends it.
func (r *Reader) Close() { r.hub.leave(r.stream) }

// Next gives what comes next, in order, and waits for it. The lines belong to everybody: do not change them.
func (r *Reader) Next(ctx context.Context) ([]EncodedFrame, error) {
	for {
		lines, more, err := r.now(ctx)
		if err == nil && more != nil {
			err = r.rest(ctx, more)
		}
		if err != nil || len(lines) > 0 {
			return lines, err
		}
	}
}

// now gives what can be told at once, or where to wait when nothing is left. It may give neither, and then wants to be
// asked again.
func (r *Reader) now(ctx context.Context) (lines []EncodedFrame, more <-chan struct{}, err error) {
	if _, _, stale := r.stream.state(); stale {
		r.hub.refresh(ctx, r.stream)
	}
	lines, more, here := r.stream.after(r.at, most)
	switch {
	case !here:
		lines, err = r.catchUp(ctx)
	case len(lines) > 0:
		r.at = lines[len(lines)-1].Seq
		lines = r.whole(lines)
	}
	return lines, more, err
}

// rest waits until there is more. While the store cannot be read, it does not wait to be told.
func (r *Reader) rest(ctx context.Context, more <-chan struct{}) error {
	var again <-chan time.Time
	if _, _, stale := r.stream.state(); stale {
		t := time.NewTimer(pollEvery)
		defer t.Stop()
		again = t.C
	}
	select {
	case <-more:
	case <-again:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// catchUp gives the kept frames that are no longer in memory.
func (r *Reader) catchUp(ctx context.Context) ([]EncodedFrame, error) {
	_, floor, _ := r.stream.state()
	frames, err := kept(ctx, r.hub.db, r.stream.id, r.at)
	if err != nil {
		return nil, err
	}
	return r.caughtUp(frames, floor)
}

// caughtUp gives frames that were read up to where memory began before that: what it has let go since is for the next
// time.
func (r *Reader) caughtUp(frames []reeve.Frame, floor int64) ([]EncodedFrame, error) {
	if r.from < 0 {
		r.from = r.at
	}
	done := len(frames) < page
	for i, f := range frames {
		if f.Seq > floor {
			frames, done = frames[:i], true
			break
		}
		r.at = f.Seq
	}
	if done {
		r.at = max(r.at, floor)
	}
	r.to = r.at
	return encodeAll(r.stream.id, frames)
}

// whole leaves out the tokens of messages whose earlier ones this client has not been told.
func (r *Reader) whole(lines []EncodedFrame) []EncodedFrame {
	if r.from < 0 {
		return lines
	}
	out := lines[:0]
	for _, l := range lines {
		switch {
		case l.Type == reeve.FrameToken && l.prev == 0, endsMessage(l.Type):
			delete(r.lost, l.Turn)
		case l.prev > r.from && l.prev <= r.to:
			r.lost[l.Turn] = true
		}
		if l.Type != reeve.FrameToken || !r.lost[l.Turn] {
			out = append(out, l)
		}
	}
	return out
}
