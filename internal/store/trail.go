package store

import (
	"context"
	"sync"

	"reeve"
)

// trails are what the gate said of calls, as far as this process knows them: by their reasons, one behind the other.
type trails struct {
	mu    sync.Mutex
	known map[string]string // to their ids; "" for what was said once
}

// mostTrails is how many are known. Reasons may name what a call is about, and then no two are alike.
const mostTrails = 1000

// Trail gives the id of what the gate said of a call, if it says that often enough to be kept once for all. It may commit a transaction of its own, and must be called outside of others.
func (db *DB) Trail(ctx context.Context, steps []reeve.Step) (string, error) {
	key := make([]byte, 0, 1000) // which most need
	for _, s := range steps {
		for _, part := range [...]string{s.Name, string(s.Verdict), s.Why} {
			key = append(append(key, part...), 0)
		}
	}
	db.trails.mu.Lock()
	id, known := db.trails.known[string(key)]
	if !known {
		if len(db.trails.known) >= mostTrails || db.trails.known == nil {
			db.trails.known = map[string]string{}
		}
		db.trails.known[string(key)] = ""
	}
	db.trails.mu.Unlock()
	if !known || id != "" {
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
	db.trails.mu.Lock()
	db.trails.known[string(key)] = id
	db.trails.mu.Unlock()
	return id, nil
}
