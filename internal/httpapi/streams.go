package httpapi

import (
	"context"
	"errors"
	"sync"

	"reeve"
)

// Streams are the answers and sockets that go on until somebody ends them. A server that stops tells them so, and
// waits.
type Streams struct {
	mu      sync.Mutex
	open    int
	closed  bool
	closing context.Context // over when they are told to end
	startClosing    context.CancelFunc
	ended   chan struct{} // closed when all have

	rightsChanged context.Context // over when somebody may have lost a right to listen; then there is another
	signalRightsChange context.CancelFunc
}

// errStopping is what the clients of a server that stops are told.
var errStopping = reeve.Errorf(reeve.Unavailable, "the server is stopping")

// NewStreams makes an empty set of them.
func NewStreams() *Streams {
	s := &Streams{ended: make(chan struct{})}
	s.closing, s.startClosing = context.WithCancel(context.Background())
	s.rightsChanged, s.signalRightsChange = context.WithCancel(context.Background())
	return s
}

// Recheck makes every one of them look whether its client may still listen.
func (s *Streams) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signalRightsChange()
	s.rightsChanged, s.signalRightsChange = context.WithCancel(context.Background())
}

// rightsContext is over when rights may have changed since it was asked for.
func (s *Streams) rightsContext() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rightsChanged
}

// enter adds one; false means that it is too late.
func (s *Streams) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open++
	}
	return !s.closed
}

func (s *Streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.closed && s.open == 0 {
		close(s.ended)
	}
}

// context gives a context that ends with its parent, or when all are told to end.
func (s *Streams) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(s.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

func (s *Streams) isStopping() bool { return s.closing.Err() != nil }

// Close tells all of them to end, and waits until they have or ctx ends.
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

// endError says what the end of a stream's context means: the server stops, or the client has gone. Any other error
// stays as it is.
func (s *Streams) endError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
		return err
	case s.isStopping():
		return errStopping
	}
	return reeve.Errorf(reeve.Canceled, "the request was cancelled")
}
