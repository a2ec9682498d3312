package store

import (
	"context"
	"time"

	"reeve"
)

// Request is a request that carried an Idempotency-Key: what was asked, and what was answered.
type Request struct {
	ID      string // who asked where, with which key
	Hash    string // of what was asked
	Process string // the process that works on it
	Claim   string // the attempt that works on it; empty in rows of older versions
	Status  int    // what was answered; 0 means that it has begun and no answer is kept
	Body    []byte

	TakenOver bool // an earlier attempt was cut off, and may have done a part of it; not stored
}

// ClaimRequest takes the key of a request for the attempt r.Claim, and forgets keys taken before a time. If the key is
// taken it returns the request that has it, and false. A key that has no answer is taken over if its process is gone,
// or if it is this process and active says that the attempt has ended.
func (t LedgerTx) ClaimRequest(ctx context.Context, r Request, forget time.Time,
	active func(claim string) bool) (Request, bool, error) {
	if err := t.tx.exec(ctx, `DELETE FROM requests WHERE created_at < $1`, reeve.Millis(forget)); err != nil {
		return r, false, err
	}
	for {
		n, err := t.tx.affect(ctx, `INSERT INTO requests (id, hash, status, body, created_at, process, claim)
			VALUES ($1, $2, 0, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`,
			r.ID, r.Hash, some(nil), reeve.Millis(t.now), r.Process, r.Claim)
		if err != nil || n == 1 {
			return r, n == 1, err
		}
		var alive int64
		old, found, err := one(ctx, t.Snap, func(s scanner) (r Request, err error) {
			return r, s.Scan(&r.ID, &r.Hash, &r.Status, &r.Body, &r.Process, &r.Claim, &alive)
		}, `SELECT id, hash, status, body, process, claim, (SELECT count(*) FROM processes p WHERE p.id = requests.process)
			FROM requests WHERE id = $1`, r.ID)
		if err != nil {
			return old, false, err
		}
		if !found {
			continue // where transactions overlap, another attempt has given it back in between
		}
		at := alive > 0 && (old.Process != r.Process || active(old.Claim))
		if at || old.Status != 0 || old.Hash != r.Hash || old.Claim == "" {
			return old, false, nil
		}
		n, err = t.tx.affect(ctx, `UPDATE requests SET process = $3, claim = $4, created_at = $5
			WHERE id = $1 AND claim = $2 AND status = 0`, r.ID, old.Claim, r.Process, r.Claim, reeve.Millis(t.now))
		r.TakenOver = n == 1
		if err != nil || n == 1 {
			return r, n == 1, err
		}
	}
}

// CompleteRequest keeps the answer of an attempt. It fails if the attempt does not have the key any more.
func (t LedgerTx) CompleteRequest(ctx context.Context, r Request) error {
	n, err := t.tx.affect(ctx, `UPDATE requests SET status = $3, body = $4 WHERE id = $1 AND claim = $2 AND status = 0`,
		r.ID, r.Claim, r.Status, some(r.Body))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.InProgress, "another attempt has taken over the request with this Idempotency-Key").
			Hintf("repeat the request with the same key; nothing was done by this one")
	}
	return err
}

// ReleaseRequest gives the key of an attempt back if no answer is kept: nothing came of it.
func (t LedgerTx) ReleaseRequest(ctx context.Context, r Request) error {
	return t.tx.exec(ctx, `DELETE FROM requests WHERE id = $1 AND claim = $2 AND status = 0`, r.ID, r.Claim)
}

// IdempotentRequest is a request with a key whose answer is kept by the transaction that makes its change.
type IdempotentRequest struct {
	Request Request
	Encode  func(v any) (status int, body []byte, err error)
	Kept    bool // a transaction has written the answer
}

type answeringKey struct{}

// WithIdempotentRequest has the transaction that calls Answer with this context keep the answer of a request.
func WithIdempotentRequest(ctx context.Context, a *IdempotentRequest) context.Context {
	return context.WithValue(ctx, answeringKey{}, a)
}

// IdempotentRequestFrom returns the request whose answer Answer would keep, or nil.
func IdempotentRequestFrom(ctx context.Context) *IdempotentRequest {
	a, _ := ctx.Value(answeringKey{}).(*IdempotentRequest)
	return a
}

// SaveResponse keeps v as the answer of the request that this transaction makes the change for. Key, change and answer
// commit together or not at all. It does nothing if the context is of no request with a key.
func (t LedgerTx) SaveResponse(ctx context.Context, v any) error {
	a := IdempotentRequestFrom(ctx)
	if a == nil {
		return nil
	}
	r := a.Request
	var err error
	if r.Status, r.Body, err = a.Encode(v); err != nil {
		return err
	}
	if err := t.CompleteRequest(ctx, r); err != nil {
		return err
	}
	a.Kept = true
	return nil
}
