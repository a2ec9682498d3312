package web

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"reeve"
	"reeve/internal/notify"
)

const (
	hostBurst   = 5               // requests to one host that need not wait
	maxHostWait = 5 * time.Second // a request that would wait longer is refused
	maxHosts    = 1000            // hosts whose rate is tracked
)

// hostLimiter limits the rate of requests to each host.
type hostLimiter struct {
	mu    *sync.Mutex
	rate  rate.Limit
	hosts map[string]*rate.Limiter
}

func newHostLimiter(perSecond float64) hostLimiter {
	return hostLimiter{mu: &sync.Mutex{}, rate: rate.Limit(perSecond), hosts: map[string]*rate.Limiter{}}
}

// wait waits until a request to host may be sent. It fails with RATE_LIMITED if that takes too long.
func (l *hostLimiter) wait(ctx context.Context, host string) error {
	now := reeve.Now()
	slot := l.limiter(host).ReserveN(now, 1)
	delay := slot.DelayFrom(now)
	if delay > maxHostWait {
		slot.CancelAt(now)
		e := reeve.Errorf(reeve.RateLimited, "too many requests to this host").
			Hintf("ask again later; an operator can raise web.host_rate")
		e.RetryAfter = delay
		return e
	}
	if delay > 0 && !notify.Sleep(ctx, delay) {
		return ctx.Err()
	}
	return nil
}

// limiter returns the limiter of a host. When there are too many hosts, it forgets those that are idle.
func (l *hostLimiter) limiter(host string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.hosts[host]; ok {
		return known
	}
	if len(l.hosts) >= maxHosts {
		for name, other := range l.hosts {
			if other.TokensAt(reeve.Now()) >= hostBurst {
				delete(l.hosts, name)
			}
		}
	}
	if len(l.hosts) >= maxHosts { // no host is idle
		clear(l.hosts)
	}
	fresh := rate.NewLimiter(l.rate, hostBurst)
	l.hosts[host] = fresh
	return fresh
}
