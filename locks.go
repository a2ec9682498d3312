package reeve

import (
	"context"
	"sync"
)

// Locks lets callers take turns at things that have names. The zero value is ready to use.
type Locks struct {
	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct {
	taken chan struct{}
	users int // who has it or waits for it; a slot without any is forgotten
}

// Wait waits until nobody else has a turn at a name, or ctx ends. Call what it gives when done.
func (l *Locks) Wait(ctx context.Context, name string) (done func(), err error) {
	s := l.join(name)
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; l.leave(name, s) }, nil
	case <-ctx.Done():
		l.leave(name, s)
		return nil, ctx.Err()
	}
}

// Try takes a turn at a name if nobody else has one. Call what it gives when done; nil means that somebody has.
func (l *Locks) Try(name string) (done func()) {
	s := l.join(name)
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; l.leave(name, s) }
	default:
		l.leave(name, s)
		return nil
	}
}

func (l *Locks) join(name string) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[name]
	if s == nil {
		if l.slots == nil {
			l.slots = map[string]*slot{}
		}
		s = &slot{taken: make(chan struct{}, 1)}
		l.slots[name] = s
	}
	s.users++
	return s
}

func (l *Locks) leave(name string, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.slots, name)
	}
}
