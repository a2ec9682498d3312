package store

import (
	"context"
	"unicode/utf8"

	"reeve"
)

// StoredOutput is an output that was cut, from an offset on, with what stands around it: it was redacted when it was
// kept, and secrets that were stored since are looked for.
type StoredOutput struct {
	Size   int // of the whole
	lo, at int // where what was read begins, and where in it the offset is
	body   []byte
	cut    func(from, to int) (begin, end int, shown string)
}

// GetOutput reads a kept output from an offset on, to give parts of up to some bytes.
func (s Ledger) GetOutput(ctx context.Context, inv *reeve.Invocation, hash string,
	offset, limit int) (StoredOutput, error) {
	k := StoredOutput{lo: max(0, offset-reeve.RedactWindow)}
	k.at = offset - k.lo
	// a character at least, or nobody would get on
	got, err := s.GetPayload(ctx, inv.Workspace, Output, hash, k.lo, k.at+max(limit, utf8.UTFMax)+reeve.RedactWindow)
	if err != nil {
		return k, err
	}
	k.Size, k.at = got.Size, min(k.at, len(got.Body))
	k.body, k.cut = got.Body[k.at:], inv.RedactedSlices(string(got.Body))
	return k, nil
}

// TextPrefix gives the whole characters in the first n bytes from the offset on.
func (k StoredOutput) TextPrefix(n int) []byte {
	return PayloadSlice{Body: k.body[:min(n, len(k.body))], Size: k.Size}.WholeCharacters(k.lo + k.at)
}

// BytePrefix gives the first n bytes from the offset on, whatever they are.
func (k StoredOutput) BytePrefix(n int) []byte { return k.body[:min(n, len(k.body))] }

// RedactedPart gives the first n bytes from the offset on as they may be shown, and where in the whole they then begin
// and end.
func (k StoredOutput) RedactedPart(n int) (from, to int, shown string) {
	from, to, shown = k.cut(k.at, k.at+n)
	return k.lo + from, k.lo + to, shown
}
