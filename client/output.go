package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"reeve"
)

// Output gives a part of a kept output, by the hash its result named. A limit of 0 leaves the size to the server.
func (c *Client) Output(ctx context.Context, hash string, offset, limit int) (reeve.OutputSlice, error) {
	q := url.Values{}
	if offset != 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[reeve.OutputSlice](ctx, c, path("outputs", hash), q)
}

// portion is how much of an output is fetched at a time.
const portion = 256 << 10

// CopyOutput writes limit bytes of a kept output to w, from an offset; a limit of 0 means to its end. It gives the output's
// whole size.
func (c *Client) CopyOutput(ctx context.Context, w io.Writer, hash string, offset, limit int) (size int, err error) {
	end := offset + limit
	for {
		n := portion
		if limit > 0 {
			n = min(n, end-offset)
		}
		s, err := c.Output(ctx, hash, offset, n)
		if err != nil {
			return size, err
		}
		content, step := s.Content, len(s.Content)
		if step > n || offset+step > s.Size {
			content, step = whole(s.Content, n, offset+n >= s.Size)
		}
		if _, err := io.WriteString(w, content); err != nil {
			return s.Size, err
		}
		offset += step
		if step == 0 || offset >= s.Size || (limit > 0 && offset >= end) {
			return s.Size, nil
		}
	}
}

// whole finds how much of a slice of n bytes is whole. A character that the slice's end cut in two arrives as replacement
// characters, longer than the bytes they stand for; it is left for the next slice. Bytes that never were text stay replaced.
func whole(content string, n int, last bool) (string, int) {
	kept := content
	for range utf8.UTFMax - 1 {
		kept = strings.TrimSuffix(kept, string(utf8.RuneError))
	}
	switch {
	case last || len(kept) >= n:
		return content, n
	case kept == "": // the caller's limit ends within a character
		return "", n
	}
	return kept, len(kept)
}
