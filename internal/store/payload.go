package store

import (
	"context"
	"time"
	"unicode/utf8"

	"reeve"
)

// PayloadUse is what bytes are kept for. The same bytes may be kept for more than one thing; each reads only what was
// kept for it, so that knowing a hash opens nothing else: a file that somebody deleted is not to be read as the output
// of a call.
type PayloadUse int

// The uses. They are bits of a column.
const (
	Output PayloadUse = 1 << iota // the whole of an output that was cut, redacted: readable by all who may see calls
	Undo                          // what a change of files took the place of, as it was
	Talk                          // what was sent in a conversation, or brought to it
)

// PutPayload keeps bytes under their hash, for one use. Those that are kept already are as young as new ones
// afterwards, to within half a day: who keeps the same again and again does not write it each time.
func (t LedgerTx) PutPayload(ctx context.Context, workspace string, use PayloadUse, body []byte) (string, error) {
	hash := reeve.Hash(body)
	return hash, t.tx.exec(ctx, `INSERT INTO payloads (workspace_id, hash, size, body, created_at, uses) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (workspace_id, hash) DO UPDATE SET uses = payloads.uses | excluded.uses, created_at = excluded.created_at
		WHERE payloads.uses & excluded.uses = 0 OR payloads.created_at < $7`,
		workspace, hash, len(body), some(body), reeve.Millis(t.now), int(use), reeve.Millis(t.now.Add(-LeastAge/2)))
}

// LeastAge is how old kept bytes are at least before they may be forgotten.
const LeastAge = 24 * time.Hour

// HasExpiredPayloads tells whether there is anything for ForgetPayloads to remove.
func (s Ledger) HasExpiredPayloads(ctx context.Context, before time.Time) (bool, error) {
	_, ok, err := one(ctx, s.Snap, func(r scanner) (hash string, err error) { return hash, r.Scan(&hash) },
		`SELECT hash FROM payloads WHERE created_at < $1 AND uses < 4 ORDER BY created_at LIMIT 1`,
		reeve.Millis(before))
	return ok, err
}

// DeleteExpiredPayloads removes up to n of the outputs and old bytes of files that were last kept before a moment,
// which lies LeastAge back at least, and says how many it were. What a conversation holds stays.
func (t LedgerTx) DeleteExpiredPayloads(ctx context.Context, before time.Time, n int) (int64, error) {
	return t.tx.affect(ctx, `DELETE FROM payloads WHERE created_at < $1 AND uses < 4
		AND (workspace_id, hash) IN (SELECT workspace_id, hash FROM payloads WHERE created_at < $1 AND uses < 4 ORDER BY created_at LIMIT $2)`, reeve.Millis(before), n)
}

// PayloadSlice is a part of a payload.
type PayloadSlice struct {
	Body []byte
	Size int // of the whole
}

// WholeCharacters gives a slice of text that begins at an offset without the beginning of a character that its end
// cuts.
func (s PayloadSlice) WholeCharacters(offset int) []byte {
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
func (s Ledger) GetPayload(ctx context.Context, workspace string, use PayloadUse, hash string,
	offset, n int) (PayloadSlice, error) {
	const most = 1<<30 - 1 // no payload is longer in either engine, and PostgreSQL counts in 32 bits
	if offset < 0 {
		return PayloadSlice{}, reeve.Errorf(reeve.Validation, "an offset is never negative")
	}
	offset = min(offset, most)
	if n < 0 || n > most {
		n = most
	}
	v, ok, err := one(ctx, s.Snap, func(r scanner) (v PayloadSlice, err error) { return v, r.Scan(&v.Size, &v.Body) },
		`SELECT size, substr(body, $3, $4) FROM payloads WHERE workspace_id = $1 AND hash = $2 AND uses & $5 <> 0`,
		workspace, hash, offset+1, n, int(use))
	if err == nil && !ok {
		err = notFound("output", hash)
	}
	return v, err
}
