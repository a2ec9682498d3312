package store

import (
	"context"
	"time"

	"reeve"
)

// Request is a request that carried an Idempotency-Key: what was asked, and what was answered.
type Request struct {
	ID     string // who asked where, with which key
	Hash   string // of what was asked
	Status int    // what was answered; 0 means that it has begun and no answer is kept
	Body   []byte
}

// ClaimRequest takes a key for a request, and forgets keys taken before a time. If the key was taken already it gives the
// request that took it, and false.
func (t *Tx) ClaimRequest(ctx context.Context, r Request, forget time.Time) (Request, bool, error) {
	if err := t.exec(ctx, `DELETE FROM requests WHERE created_at < $1`, reeve.Millis(forget)); err != nil {
		return r, false, err
	}
	for {
		n, err := t.affect(ctx, `INSERT INTO requests (id, hash, status, body, created_at) VALUES ($1, $2, 0, $3, $4) ON CONFLICT (id) DO NOTHING`,
			r.ID, r.Hash, some(nil), reeve.Millis(t.now))
		if err != nil || n == 1 {
			return r, n == 1, err
		}
		old, found, err := one(ctx, &t.Snap, func(s scanner) (r Request, err error) { return r, s.Scan(&r.ID, &r.Hash, &r.Status, &r.Body) },
			`SELECT id, hash, status, body FROM requests WHERE id = $1`, r.ID)
		if err != nil || found {
			return old, false, err
		}
		// Where transactions overlap, whoever had taken it has given it back in between.
	}
}

// AnswerRequest keeps the answer to a request that has taken its key.
func (t *Tx) AnswerRequest(ctx context.Context, r Request) error {
	return t.exec(ctx, `UPDATE requests SET status = $2, body = $3 WHERE id = $1`, r.ID, r.Status, some(r.Body))
}

// DropRequest gives a key back: nothing came of its request.
func (t *Tx) DropRequest(ctx context.Context, id string) error {
	return t.exec(ctx, `DELETE FROM requests WHERE id = $1`, id)
}
