package chat

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// maxFramesPerRead is the number of frames that Next returns at most.
const maxFramesPerRead = 128

// Reader is the position of one client in a conversation. It is not safe for concurrent use.
type Reader struct {
	broadcaster *Broadcaster
	stream      *stream
	position    int64

	// The client did not get the tokens in (skippedFrom, skippedTo]. So it does not get later tokens of the same
	// messages either. A negative skippedFrom means that the client has missed no tokens.
	skippedFrom, skippedTo int64
	incomplete             map[string]bool // by turn: the client has missed tokens of the current message
}

// Subscribe returns a reader of the frames after a sequence number. 0 means from the beginning, and a negative number
// means from now on. The caller must close the reader.
//
// Subscribe reads the store first, so that frames that the client has seen on another server count as published here.
func (h *Broadcaster) Subscribe(ctx context.Context, conversation string, after int64) (*Reader, error) {
	s := h.getStream(conversation, 1)
	err := s.refresh(ctx)
	r := &Reader{broadcaster: h, stream: s, incomplete: map[string]bool{}}
	if err == nil {
		r.position, r.skippedFrom, err = s.resolvePosition(after)
		r.skippedTo = r.position
	}
	if err != nil {
		h.removeReader(s)
		return nil, err
	}
	return r, nil
}

// CheckPosition fails with Stale if no client can have reached a position: it is beyond the last stored frame and all
// tokens that may follow it. Before the first frame, only 0 is valid.
func CheckPosition(after, last int64) error {
	if after == 0 || last > 0 && after < last+store.FrameStep {
		return nil
	}
	return reeve.Errorf(reeve.Stale, "position %d is beyond the end of the conversation; its last frame is %d",
		after, last).
		Hintf("the database may have been restored from a backup; discard your frames and start with after=0")
}

// Last returns the highest sequence number in use in the conversation.
func (r *Reader) Last() int64 {
	n, _, _ := r.stream.getState()
	return n
}

// Idle reports whether Next would wait.
func (r *Reader) Idle() bool {
	frames, _, inMemory := r.stream.listAfter(r.position, 1)
	return inMemory && len(frames) == 0
}

// Close releases the reader.
func (r *Reader) Close() { r.broadcaster.removeReader(r.stream) }

// Next returns the next frames in order. It waits if there are none. The frames are shared with other readers and must
// not be modified.
func (r *Reader) Next(ctx context.Context) ([]EncodedFrame, error) {
	for {
		frames, more, err := r.readAvailable(ctx)
		if err == nil && more != nil {
			err = r.waitForMore(ctx, more)
		}
		if err != nil || len(frames) > 0 {
			return frames, err
		}
	}
}

// readAvailable returns the frames that are available without waiting. If there are none, it may return a channel to
// wait on. If it returns neither, the caller calls it again.
func (r *Reader) readAvailable(ctx context.Context) (frames []EncodedFrame, more <-chan struct{}, err error) {
	if _, _, isStale := r.stream.getState(); isStale {
		r.broadcaster.refreshStream(ctx, r.stream)
	}
	frames, more, inMemory := r.stream.listAfter(r.position, maxFramesPerRead)
	switch {
	case !inMemory:
		frames, err = r.readStored(ctx)
	case len(frames) > 0:
		r.position = frames[len(frames)-1].Seq
		frames = r.dropPartialMessages(frames)
	}
	return frames, more, err
}

// waitForMore waits until there are new frames. If the stream is stale, it waits for pollInterval at most.
func (r *Reader) waitForMore(ctx context.Context, more <-chan struct{}) error {
	var retry <-chan time.Time
	if _, _, isStale := r.stream.getState(); isStale {
		t := time.NewTimer(pollInterval)
		defer t.Stop()
		retry = t.C
	}
	select {
	case <-more:
	case <-retry:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// readStored reads frames that are no longer in memory from the store.
func (r *Reader) readStored(ctx context.Context) ([]EncodedFrame, error) {
	_, floor, _ := r.stream.getState()
	frames, err := listStoredFrames(ctx, r.broadcaster.db, r.stream.id, r.position)
	if err != nil {
		return nil, err
	}
	return r.acceptStored(frames, floor)
}

// acceptStored advances the reader over stored frames up to floor, and encodes them. The floor must have been read
// before the frames. Frames beyond it are in memory, or are read the next time.
func (r *Reader) acceptStored(frames []reeve.Frame, floor int64) ([]EncodedFrame, error) {
	if r.skippedFrom < 0 {
		r.skippedFrom = r.position
	}
	reachesFloor := len(frames) < pageSize
	for i, f := range frames {
		if f.Seq > floor {
			frames, reachesFloor = frames[:i], true
			break
		}
		r.position = f.Seq
	}
	if reachesFloor {
		r.position = max(r.position, floor)
	}
	r.skippedTo = r.position
	return encodeFrames(r.stream.id, frames)
}

// dropPartialMessages removes the tokens of messages whose earlier tokens the client did not get.
func (r *Reader) dropPartialMessages(frames []EncodedFrame) []EncodedFrame {
	if r.skippedFrom < 0 {
		return frames
	}
	out := frames[:0]
	for _, f := range frames {
		switch {
		case f.Type == reeve.FrameToken && f.prevToken == 0, endsMessage(f.Type):
			delete(r.incomplete, f.Turn)
		case f.prevToken > r.skippedFrom && f.prevToken <= r.skippedTo:
			r.incomplete[f.Turn] = true
		}
		if f.Type != reeve.FrameToken || !r.incomplete[f.Turn] {
			out = append(out, f)
		}
	}
	return out
}
