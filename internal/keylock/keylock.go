// Package keylock is a lock for each of many names.
package keylock

import (
	"context"
	"sync"
)

// Map holds a lock for each name in use. The zero value is ready to use.
type Map struct {
	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct {
	lock chan struct{}
	users int // that hold the lock or wait for it; a slot without users is removed
}

// Wait locks a name, or fails when ctx ends. Call unlock when done.
func (l *Map) Wait(ctx context.Context, name string) (unlock func(), err error) {
	s := l.addUser(name)
	select {
	case s.lock <- struct{}{}:
		return func() { <-s.lock; l.removeUser(name, s) }, nil
	case <-ctx.Done():
		l.removeUser(name, s)
		return nil, ctx.Err()
	}
}

// Try locks a name if it is free. It returns nil if it is not. Call unlock when done.
func (l *Map) Try(name string) (unlock func()) {
	s := l.addUser(name)
	select {
	case s.lock <- struct{}{}:
		return func() { <-s.lock; l.removeUser(name, s) }
	default:
		l.removeUser(name, s)
		return nil
	}
}

func (l *Map) addUser(name string) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[name]
	if s == nil {
		if l.slots == nil {
			l.slots = map[string]*slot{}
		}
		s = &slot{lock: make(chan struct{}, 1)}
		l.slots[name] = s
	}
	s.users++
	return s
}

func (l *Map) removeUser(name string, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.slots, name)
	}
}
