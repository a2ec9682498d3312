package gate

import (
	"sync/atomic"
	"time"

	"reeve"
)

// lease is this process's hold on what is in its hands. Other servers take that over when they have not heard of it for
// a while: then it must not be sent from here any more, even though this process was only stopped for that while, and
// finds everything as it left it.
type lease struct {
	renewedAt  atomic.Int64 // when it last said that it lives, in milliseconds; 0 means that nobody says so
	lapseCount atomic.Int64 // how often others have given it up
}

// renew notes that this process has said that it lives, and whether the others still knew it.
func (l *lease) renew(at time.Time, known bool) {
	if !known {
		l.lapseCount.Add(1)
	}
	l.renewedAt.Store(reeve.Millis(at))
}

// hasLostLease reports whether another server may have taken over the operation of this call.
func (r *request) hasLostLease() bool {
	l := &r.g.lease
	heard := l.renewedAt.Load()
	return !r.g.DB.SingleProcess() && (l.lapseCount.Load() != r.leaseLapses || heard != 0 && reeve.Now().
		Sub(reeve.FromMillis(heard)) > r.g.LeaseTimeout)
}
