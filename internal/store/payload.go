package store

import (
	"context"
	"unicode/utf8"

	"reeve"
)

// Use is what bytes are kept for. The same bytes may be kept for more than one thing; each reads only what was kept for it, so that knowing a hash
// opens nothing else: a file that somebody deleted is not to be read as the output of a call.
type Use int

// The uses. They are bits of a column.
const (
	Output Use = 1 << iota // the whole of an output that was cut, scrubbed: readable by all who may see calls
	Undo                   // what a change of files took the place of, as it was
	Talk                   // what was sent in a conversation, or brought to it
)

// PutPayload keeps bytes under their hash, for one use.
func (t *Tx) PutPayload(ctx context.Context, workspace string, use Use, body []byte) (string, error) {
	hash := reeve.Hash(body)
	return hash, t.exec(ctx, `INSERT INTO payloads (workspace_id, hash, size, body, created_at, uses) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (workspace_id, hash) DO UPDATE SET uses = payloads.uses | excluded.uses WHERE payloads.uses & excluded.uses = 0`,
		workspace, hash, len(body), some(body), reeve.Millis(t.now), int(use))
}

// Slice is a part of a payload.
type Slice struct {
	Body []byte
	Size int // of the whole
}

// Whole gives a slice of text that begins at an offset without the beginning of a character that its end cuts.
func (s Slice) Whole(offset int) []byte {
	b := s.Body
	if offset+len(b) >= s.Size {
		return b
	}
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// GetPayload reads n bytes of what was kept for a use, from an offset; n < 0 means to its end.
func (s *Snap) GetPayload(ctx context.Context, workspace string, use Use, hash string, offset, n int) (Slice, error) {
	const most = 1<<30 - 1 // no payload is longer in either engine, and PostgreSQL counts in 32 bits
	if offset < 0 {
		return Slice{}, reeve.Errorf(reeve.Validation, "an offset is never negative")
	}
	offset = min(offset, most)
	if n < 0 || n > most {
		n = most
	}
	v, ok, err := one(ctx, s, func(r scanner) (v Slice, err error) { return v, r.Scan(&v.Size, &v.Body) },
		`SELECT size, substr(body, $3, $4) FROM payloads WHERE workspace_id = $1 AND hash = $2 AND uses & $5 <> 0`, workspace, hash, offset+1, n, int(use))
	if err == nil && !ok {
		err = notFound("output", hash)
	}
	return v, err
}
