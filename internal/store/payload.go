package store

import (
	"context"
	"time"
	"unicode/utf8"

	"reeve"
)

// PayloadUse is the purpose for which a payload is stored. The same bytes may be stored for several uses. A reader must
// name the use, so that a hash does not give access to other uses of the same bytes. For example, the content of a
// deleted file cannot be read as the output of a call.
type PayloadUse int

// The uses of payloads. They are bits of a column.
const (
	// the full text of a truncated output, redacted; readable by everyone who sees its call
	OutputPayload       PayloadUse = 1 << iota
	UndoPayload                    // the content of a file before a change
	ConversationPayload            // attachments of a conversation
)

// PutPayload stores bytes for one use and returns their hash. If they are stored already, it renews their creation
// time, but not more often than every half of MinPayloadAge, so that repeated calls do not write each time.
func (t LedgerTx) PutPayload(ctx context.Context, workspace string, use PayloadUse, body []byte) (string, error) {
	return t.putPayload(ctx, workspace, use, "", body)
}

// PutOutput stores the full text of an output of a call, like PutPayload. privateTo is that of the call.
func (t LedgerTx) PutOutput(ctx context.Context, workspace, privateTo string, body []byte) (string, error) {
	return t.putPayload(ctx, workspace, OutputPayload, privateTo, body)
}

// outputOwner is the user to whom a stored payload is private after the same bytes are stored again. Only outputs are
// private. If calls of several users, or a call that everyone sees, have the same output, it is private to nobody.
const outputOwner = `CASE WHEN excluded.uses & 1 = 0 THEN payloads.private_to
	WHEN payloads.uses & 1 = 0 OR payloads.private_to = excluded.private_to THEN excluded.private_to ELSE '' END`

func (t LedgerTx) putPayload(ctx context.Context, workspace string, use PayloadUse, privateTo string,
	body []byte) (string, error) {
	hash := reeve.Hash(body)
	return hash, t.tx.exec(ctx, `INSERT INTO payloads (workspace_id, hash, size, body, created_at, uses, private_to)
		VALUES ($1, $2, $3, $4, $5, $6, $8)
		ON CONFLICT (workspace_id, hash) DO UPDATE SET uses = payloads.uses | excluded.uses,
		created_at = excluded.created_at, private_to = `+outputOwner+`
		WHERE payloads.uses & excluded.uses = 0 OR payloads.created_at < $7
		OR payloads.private_to <> `+outputOwner,
		workspace, hash, len(body), emptyIfNil(body), reeve.Millis(t.now), int(use),
		reeve.Millis(t.now.Add(-MinPayloadAge/2)), privateTo)
}

// MinPayloadAge is the minimum age of a payload that may be deleted.
const MinPayloadAge = 24 * time.Hour

// HasExpiredPayloads reports whether there is a payload for DeleteExpiredPayloads to delete.
func (s Ledger) HasExpiredPayloads(ctx context.Context, before time.Time) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, func(r scanner) (hash string, err error) { return hash, r.Scan(&hash) },
		`SELECT hash FROM payloads WHERE created_at < $1 AND uses < 4 ORDER BY created_at LIMIT 1`,
		reeve.Millis(before))
	return ok, err
}

// DeleteExpiredPayloads deletes up to n outputs and file contents that were last stored before a time, which must be at
// least MinPayloadAge ago. It returns the number of deleted payloads. Attachments of conversations stay.
func (t LedgerTx) DeleteExpiredPayloads(ctx context.Context, before time.Time, n int) (int64, error) {
	return t.tx.execCount(ctx, `DELETE FROM payloads WHERE created_at < $1 AND uses < 4
		AND (workspace_id, hash) IN (SELECT workspace_id, hash FROM payloads WHERE created_at < $1 AND uses < 4
		ORDER BY created_at LIMIT $2)`, reeve.Millis(before), n)
}

// PayloadSlice is a part of a payload.
type PayloadSlice struct {
	Body []byte
	Size int // size of the whole payload
}

// WholeCharacters returns the body of a slice that begins at offset, without an incomplete character at its end.
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

// GetPayload returns n bytes of a payload from an offset, or all bytes from the offset if n is negative. It returns
// NotFound if the bytes were not stored for this use, or if the viewer does not see them.
func (s Ledger) GetPayload(ctx context.Context, workspace string, use PayloadUse, hash string,
	offset, n int) (PayloadSlice, error) {
	const maxLength = 1<<30 - 1 // no payload is longer, and PostgreSQL uses 32-bit lengths
	if offset < 0 {
		return PayloadSlice{}, reeve.Errorf(reeve.Validation, "offset must not be negative")
	}
	offset = min(offset, maxLength)
	if n < 0 || n > maxLength {
		n = maxLength
	}
	where, args := s.onlyVisible(`private_to`, `workspace_id = $1 AND hash = $2 AND uses & $5 <> 0`,
		[]any{workspace, hash, offset + 1, n, int(use)})
	v, ok, err := queryOne(ctx, s.Snap, func(r scanner) (v PayloadSlice, err error) {
		return v, r.Scan(&v.Size, &v.Body)
	}, `SELECT size, substr(body, $3, $4) FROM payloads WHERE `+where, args...)
	if err == nil && !ok {
		err = notFound("output", hash)
	}
	return v, err
}
