package reeve

import (
	"context"
	"sync"
)

// Turns lets callers take turns at things that have names. The zero value is ready to use.
type Turns struct {
	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct {
	taken chan struct{}
	users int // who has it or waits for it; a slot without any is forgotten
}

// Wait waits until nobody else has a turn at a name, or ctx ends. Call what it gives when done.
func (t *Turns) Wait(ctx context.Context, name string) (done func(), err error) {
	s := t.join(name)
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; t.leave(name, s) }, nil
	case <-ctx.Done():
		t.leave(name, s)
		return nil, ctx.Err()
	}
}

// Try takes a turn at a name if nobody else has one. Call what it gives when done; nil means that somebody has.
func (t *Turns) Try(name string) (done func()) {
	s := t.join(name)
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; t.leave(name, s) }
	default:
		t.leave(name, s)
		return nil
	}
}

func (t *Turns) join(name string) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[name]
	if s == nil {
		if t.slots == nil {
			t.slots = map[string]*slot{}
		}
		s = &slot{taken: make(chan struct{}, 1)}
		t.slots[name] = s
	}
	s.users++
	return s
}

func (t *Turns) leave(name string, s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(t.slots, name)
	}
}
