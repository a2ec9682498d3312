package client

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"reeve/api"
)

// Output returns a part of a kept output, by the hash its result named. A limit of 0 leaves the size to the server.
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

// portion is how much of an output is fetched at a time.
const portion = 256 << 10

// CopyOutput writes at most limit bytes of a kept output to w, from an offset, exactly as they are; a limit of 0 means
// to its end. Text ends with a whole character. It gives where to go on, which at the end is the output's size, and
// that.
func (s CallService) CopyOutput(ctx context.Context, w io.Writer, hash string,
	offset, limit int) (next, size int, err error) {
	end := offset + limit
	for {
		n := portion
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
		// which need not be as far on as bytes were shown, where a secret is
		if offset = s.NextOffset; last || limit > 0 && offset >= end {
			return offset, s.Size, nil
		}
	}
}
