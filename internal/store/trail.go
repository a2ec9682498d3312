package store

import (
	"context"
	"strings"
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
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.Name)
		b.WriteByte(0)
		b.WriteString(string(s.Verdict))
		b.WriteByte(0)
		b.WriteString(s.Why)
		b.WriteByte(0)
	}
	key := b.String()
	db.trails.mu.Lock()
	id, known := db.trails.known[key]
	if !known {
		if len(db.trails.known) >= mostTrails || db.trails.known == nil {
			db.trails.known = map[string]string{}
		}
		db.trails.known[key] = ""
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
	db.trails.known[key] = id
	db.trails.mu.Unlock()
	return id, nil
}
