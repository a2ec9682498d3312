package gate

import (
	"sync/atomic"
	"time"

	"reeve"
)

// lease is this process's right to work on the operations that it owns. Other processes take the operations over if its
// heartbeat is missing for too long. Then this process must not send them any more, even if it was only suspended and
// its memory is intact.
type lease struct {
	renewedAt  atomic.Int64 // time of the last heartbeat in milliseconds; 0 if there was none
	lapseCount atomic.Int64 // how often other processes have taken the operations over
}

// renew notes a heartbeat at a time. Known is false if other processes had declared this process gone.
func (l *lease) renew(at time.Time, known bool) {
	if !known {
		l.lapseCount.Add(1)
	}
	l.renewedAt.Store(reeve.Millis(at))
}

// hasLostLease reports whether another process may have taken over the operation of this call.
func (r *request) hasLostLease() bool {
	l := &r.g.lease
	renewedAt := l.renewedAt.Load()
	isOverdue := renewedAt != 0 && reeve.Now().Sub(reeve.FromMillis(renewedAt)) > r.g.LeaseTimeout
	return !r.g.DB.SingleProcess() && (l.lapseCount.Load() != r.leaseLapses || isOverdue)
}
