package client

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"reeve/api"
)

// Output returns a part of a stored output by the hash in its result. A limit of 0 means the server's default.
func (s CallService) Output(ctx context.Context, hash string, offset, limit int) (api.OutputSlice, error) {
	q := url.Values{}
	if offset != 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.OutputSlice](ctx, s.conn, path("outputs", hash), q)
}

// outputChunk is the number of bytes that one request fetches.
const outputChunk = 256 << 10

// CopyOutput writes at most limit bytes of a stored output to w, starting at offset. A limit of 0 means up to the end.
// Text is not cut within a character. CopyOutput returns the offset of the next byte, which at the end is the size, and
// the size of the output.
func (s CallService) CopyOutput(ctx context.Context, w io.Writer, hash string,
	offset, limit int) (next, size int, err error) {
	end := offset + limit
	for {
		n := outputChunk
		if limit > 0 {
			n = min(n, end-offset)
		}
		s, err := s.Output(ctx, hash, offset, n)
		if err != nil {
			return offset, size, err
		}
		b := s.Data
		if len(b) == 0 {
			b = []byte(s.Content)
		}
		if _, err := w.Write(b); err != nil {
			return offset, s.Size, err
		}
		last := limit > 0 && offset+n == end
		if s.NextOffset == 0 {
			return max(offset, s.Size), s.Size, nil
		}
		// NextOffset may differ from the number of bytes in the response, where secrets are redacted.
		if offset = s.NextOffset; last || limit > 0 && offset >= end {
			return offset, s.Size, nil
		}
	}
}
