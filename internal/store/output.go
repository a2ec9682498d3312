package store

import (
	"context"
	"unicode/utf8"

	"reeve"
)

// StoredOutput is the full text of a truncated output from an offset on, with some context around it. The output was
// redacted when it was stored. Secrets that were added later are redacted when it is shown.
type StoredOutput struct {
	Size        int // size of the whole output
	start, skip int // the position of the bytes read, and of the offset in them
	body        []byte
	cut         func(from, to int) (begin, end int, shown string)
}

// GetOutput reads a stored output from an offset, to return parts of up to limit bytes.
func (s Ledger) GetOutput(ctx context.Context, inv *reeve.Invocation, hash string,
	offset, limit int) (StoredOutput, error) {
	k := StoredOutput{start: max(0, offset-reeve.RedactWindow)}
	k.skip = offset - k.start
	// at least one character, so that the reader makes progress
	got, err := s.GetPayload(ctx, inv.Workspace, OutputPayload, hash, k.start,
		k.skip+max(limit, utf8.UTFMax)+reeve.RedactWindow)
	if err != nil {
		return k, err
	}
	k.Size, k.skip = got.Size, min(k.skip, len(got.Body))
	k.body, k.cut = got.Body[k.skip:], inv.RedactedSlices(string(got.Body))
	return k, nil
}

// TextPrefix returns the whole characters in the first n bytes from the offset.
func (k StoredOutput) TextPrefix(n int) []byte {
	return PayloadSlice{Body: k.body[:min(n, len(k.body))], Size: k.Size}.WholeCharacters(k.start + k.skip)
}

// BytePrefix returns the first n bytes from the offset.
func (k StoredOutput) BytePrefix(n int) []byte { return k.body[:min(n, len(k.body))] }

// RedactedPart returns the first n bytes from the offset in redacted form, and their start and end in the whole output.
func (k StoredOutput) RedactedPart(n int) (from, to int, shown string) {
	from, to, shown = k.cut(k.skip, k.skip+n)
	return k.start + from, k.start + to, shown
}
