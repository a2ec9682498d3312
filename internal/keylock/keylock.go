// Package keylock provides a mutex for each of many names, such as ids. Locks exist only while they are in use.
package keylock

import (
	"context"
	"sync"
)

// Map is a set of locks, one for each name in use. The zero value is ready to use.
type Map struct {
	mu    sync.Mutex
	slots map[string]*slot
}

// slot is the lock of one name.
type slot struct {
	lock  chan struct{} // holds an element while the name is locked
	users int           // goroutines that hold the lock or wait for it; a slot without users is removed
}

// Wait locks a name. It fails if ctx ends first. The caller must call unlock.
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

// Try locks a name if it is free, and otherwise returns nil. The caller must call unlock.
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

// addUser returns the slot of a name and counts a user.
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

// removeUser removes a user, and the slot after its last user.
func (l *Map) removeUser(name string, s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.slots, name)
	}
}
