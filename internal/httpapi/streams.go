package httpapi

import (
	"context"
	"errors"
	"sync"

	"reeve"
)

// Streams is the set of open streams and sockets, which have no end of their own. A stopping server closes them and
// waits.
type Streams struct {
	mu           sync.Mutex
	open         int
	closed       bool
	closing      context.Context // done when the streams must end
	startClosing context.CancelFunc
	ended        chan struct{} // closed when all streams have ended

	rightsChanged      context.Context // done when a client may have lost its right to listen; then replaced
	signalRightsChange context.CancelFunc
}

// errStopping is the error for clients of a stopping server.
var errStopping = reeve.Errorf(reeve.Unavailable, "the server is stopping")

// NewStreams returns an empty set.
func NewStreams() *Streams {
	s := &Streams{ended: make(chan struct{})}
	s.closing, s.startClosing = context.WithCancel(context.Background())
	s.rightsChanged, s.signalRightsChange = context.WithCancel(context.Background())
	return s
}

// Recheck makes every stream check whether its client may still listen.
func (s *Streams) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signalRightsChange()
	s.rightsChanged, s.signalRightsChange = context.WithCancel(context.Background())
}

// rightsContext returns a context that ends when the rights of a client may have changed since this call.
func (s *Streams) rightsContext() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rightsChanged
}

// enter adds a stream. It returns false if the server is stopping.
func (s *Streams) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open++
	}
	return !s.closed
}

// leave removes a stream.
func (s *Streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.closed && s.open == 0 {
		close(s.ended)
	}
}

// context returns a context that ends with its parent or when the server stops.
func (s *Streams) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(s.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

func (s *Streams) isStopping() bool { return s.closing.Err() != nil }

// Close ends all streams and waits until they have ended or ctx is done.
func (s *Streams) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.startClosing()
		if s.open == 0 {
			close(s.ended)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endError converts the error of an ended stream context: to errStopping if the server stops, otherwise to CANCELED. It
// returns any other error unchanged.
func (s *Streams) endError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
		return err
	case s.isStopping():
		return errStopping
	}
	return reeve.Errorf(reeve.Canceled, "the request was cancelled")
}
