package store

import (
	"context"
	"time"

	"reeve"
)

// Request is a request with an Idempotency-Key, and its response.
type Request struct {
	ID   string // identifies the caller, the endpoint and the key
	Hash string // hash of the request
	// Workspace is the workspace of the caller. It is empty in rows of older versions.
	Workspace string
	User      string // the user of the caller; empty in rows of older versions
	Process   string // the process that handles it
	Claim     string // the attempt that handles it; empty in rows of older versions
	Status    int    // the HTTP status of the response; 0 means that no response is stored yet
	Body      []byte

	TakenOver bool // an earlier attempt was interrupted and may have done part of the work; not stored
}

// ClaimRequest claims the key of a request for the attempt r.Claim. If the key is claimed already, it returns the
// existing request and false. It takes over a key without a response if the owning process is no longer registered, or
// if the owner is this process and active reports that the attempt has ended. It also deletes keys that were claimed
// before the time forget.
func (t LedgerTx) ClaimRequest(ctx context.Context, r Request, forget time.Time,
	active func(claim string) bool) (Request, bool, error) {
	if err := t.tx.exec(ctx, `DELETE FROM requests WHERE created_at < $1`, reeve.Millis(forget)); err != nil {
		return r, false, err
	}
	for {
		n, err := t.tx.execCount(ctx, `INSERT INTO requests (id, hash, status, body, created_at, process, claim,
			workspace_id, user_id) VALUES ($1, $2, 0, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING`,
			r.ID, r.Hash, emptyIfNil(nil), reeve.Millis(t.now), r.Process, r.Claim, r.Workspace, r.User)
		if err != nil || n == 1 {
			return r, n == 1, err
		}
		var alive int64
		old, found, err := queryOne(ctx, t.Snap, func(s scanner) (r Request, err error) {
			return r, s.Scan(&r.ID, &r.Hash, &r.Status, &r.Body, &r.Process, &r.Claim, &alive)
		}, `SELECT id, hash, status, body, process, claim, (SELECT count(*) FROM processes p
			WHERE p.id = requests.process)
			FROM requests WHERE id = $1`, r.ID)
		if err != nil {
			return old, false, err
		}
		if !found {
			continue // another attempt has released the key in between
		}
		inProgress := alive > 0 && (old.Process != r.Process || active(old.Claim))
		if inProgress || old.Status != 0 || old.Hash != r.Hash || old.Claim == "" {
			return old, false, nil
		}
		n, err = t.tx.execCount(ctx, `UPDATE requests SET process = $3, claim = $4, created_at = $5
			WHERE id = $1 AND claim = $2 AND status = 0`, r.ID, old.Claim, r.Process, r.Claim, reeve.Millis(t.now))
		r.TakenOver = n == 1
		if err != nil || n == 1 {
			return r, n == 1, err
		}
	}
}

// CompleteRequest stores the response of an attempt. It returns InProgress if the attempt no longer owns the key.
func (t LedgerTx) CompleteRequest(ctx context.Context, r Request) error {
	n, err := t.tx.execCount(ctx, `UPDATE requests SET status = $3, body = $4 WHERE id = $1 AND claim = $2
		AND status = 0`,
		r.ID, r.Claim, r.Status, emptyIfNil(r.Body))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.InProgress, "another attempt has taken over the request with this Idempotency-Key").
			Hintf("repeat the request with the same key; this attempt changed nothing")
	}
	return err
}

// ReleaseRequest releases the key of an attempt that has no stored response.
func (t LedgerTx) ReleaseRequest(ctx context.Context, r Request) error {
	return t.tx.exec(ctx, `DELETE FROM requests WHERE id = $1 AND claim = $2 AND status = 0`, r.ID, r.Claim)
}

// IdempotentRequest is a request whose response is stored by the same transaction that makes its change.
type IdempotentRequest struct {
	Request Request
	Encode  func(v any) (status int, body []byte, err error)
	Saved   bool // a transaction has stored the response
}

type idempotentRequestKey struct{}

// WithIdempotentRequest returns a context in which SaveResponse stores the response of request a.
func WithIdempotentRequest(ctx context.Context, a *IdempotentRequest) context.Context {
	return context.WithValue(ctx, idempotentRequestKey{}, a)
}

// IdempotentRequestFrom returns the request that WithIdempotentRequest put into ctx, or nil.
func IdempotentRequestFrom(ctx context.Context) *IdempotentRequest {
	a, _ := ctx.Value(idempotentRequestKey{}).(*IdempotentRequest)
	return a
}

// SaveResponse stores v as the response of the request in ctx. Key, change and response commit together or not at all.
// It does nothing if ctx has no request.
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
	a.Saved = true
	return nil
}
