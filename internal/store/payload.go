package store

import (
	"context"

	"reeve"
)

// PutPayload keeps bytes under their hash.
func (t *Tx) PutPayload(ctx context.Context, workspace string, body []byte) (string, error) {
	hash := reeve.Hash(body)
	return hash, t.exec(ctx, `INSERT INTO payloads (workspace_id, hash, size, body, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace_id, hash) DO NOTHING`, workspace, hash, len(body), some(body), reeve.Millis(t.now))
}

// Slice is a part of a payload.
type Slice struct {
	Body []byte
	Size int
}

// GetPayload reads n bytes of a payload from an offset; n < 0 means to its end.
func (s *Snap) GetPayload(ctx context.Context, workspace, hash string, offset, n int) (Slice, error) {
	const most = 1<<30 - 1 // no payload is longer in either engine, and PostgreSQL counts in 32 bits
	if offset < 0 {
		return Slice{}, reeve.Errorf(reeve.Validation, "an offset is never negative")
	}
	offset = min(offset, most)
	if n < 0 || n > most {
		n = most
	}
	v, ok, err := one(ctx, s, func(r scanner) (v Slice, err error) { return v, r.Scan(&v.Size, &v.Body) },
		`SELECT size, substr(body, $3, $4) FROM payloads WHERE workspace_id = $1 AND hash = $2`, workspace, hash, offset+1, n)
	if err == nil && !ok {
		err = notFound("output", hash)
	}
	return v, err
}
