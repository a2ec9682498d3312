package store

import (
	"context"
	"sync"
	"time"

	"reeve"
)

// trails are what the gate said of calls, as far as this process knows them: by their reasons, one behind the other.
type trails struct {
	mu    sync.Mutex
	known map[string]string // to their ids; "" for what was said once
	since time.Time
}

const (
	// mostTrails is how many are known. Reasons may name what a call is about, and then no two are alike.
	mostTrails = 1000
	// trailsLast is for how long they are. Then each is kept again when it is said, which changes nothing where it is there: a database that was put back to an earlier state, or another that
	// took over for it, may not have it, and what is said goes on for years.
	trailsLast = time.Minute
)

// said notes that something was said, and gives the id that it is kept by, if it is, and whether it was said before.
func (t *trails) said(key []byte, now time.Time) (id string, before bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || now.Sub(t.since) >= trailsLast {
		t.known, t.since = map[string]string{}, now
	}
	if id, before = t.known[string(key)]; before {
		return id, true
	}
	if len(t.known) >= mostTrails {
		clear(t.known)
	}
	t.known[string(key)] = ""
	return "", false
}

func (t *trails) keep(key []byte, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[string(key)] = id
}

// trailLost is in place of what the gate said of a call, where that is not there any more: the call itself is, and can be read.
const trailLost = `[{"step":"gate","verdict":"not_reached","why":"what the gate said of this call is lost"}]`

// Trail gives the id of what the gate said of a call, if it says that often enough to be kept once for all. It may commit a transaction of its own, and must be called outside of others.
func (db *DB) Trail(ctx context.Context, steps []reeve.Step) (string, error) {
	key := make([]byte, 0, 1000) // which is enough for most
	for _, s := range steps {
		for _, part := range [...]string{s.Name, string(s.Verdict), s.Why} {
			key = append(append(key, part...), 0)
		}
	}
	id, before := db.trails.said(key, reeve.Monotonic())
	if !before || id != "" {
		return id, nil
	}
	text := text(steps)
	id = reeve.Hash([]byte(text))[:24]
	err := db.Update(ctx, func(t *Tx) error {
		return t.exec(ctx, `INSERT INTO trails (id, steps) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, text)
	})
	if err != nil {
		return "", err
	}
	db.trails.keep(key, id)
	return id, nil
}
