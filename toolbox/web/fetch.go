package web

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"reeve"
)

// Fetcher reads from URLs that callers supply. The guard applies to every request.
type Fetcher struct{ client *http.Client }

// NewFetcher returns a Fetcher that obeys g.
func NewFetcher(g Guard) *Fetcher { return &Fetcher{g.Client()} }

// Fetch returns the body at a URL, until ctx ends. The code of the error says why there is none:
//
//   - DENIED: the guard refused the address
//   - UNAVAILABLE, TIMEOUT: the server did not respond
//   - VALIDATION: the status is not 200
//   - TOO_LARGE: the body has more than maxBytes
//
// No message contains the URL, because it may contain a secret.
func (f *Fetcher) Fetch(ctx context.Context, address string, maxBytes int) ([]byte, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, address, nil)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "not a valid URL")
	}
	req.Header.Set("Accept", "*/*")
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fetchError(err, connected.Load())
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests, s >= 500:
		return nil, reeve.Errorf(reeve.Unavailable, "the server responded %d %s", s, http.StatusText(s))
	case s != http.StatusOK:
		return nil, reeve.Errorf(reeve.Validation, "the server responded %d %s", s, http.StatusText(s))
	case resp.ContentLength > int64(maxBytes):
		return nil, tooLarge(maxBytes)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(maxBytes)+1))
	if err != nil {
		return nil, fetchError(err, true)
	}
	if len(body) > maxBytes {
		return nil, tooLarge(maxBytes)
	}
	return body, nil
}

func tooLarge(maxBytes int) error {
	return reeve.Errorf(reeve.TooLarge, "the content has more than %d bytes", maxBytes)
}

// fetchError returns the error for a request or a body that could not be read to the end.
func fetchError(err error, connected bool) error {
	var own *reeve.Error
	if errors.As(err, &own) {
		return own
	}
	out := &reeve.Error{Code: reeve.Unavailable, Message: "the server's answer was cut off or is not valid HTTP",
		Err: safeCause(err)}
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		out.Code, out.Message = reeve.ToolFailed, "the server sent compressed content that is damaged"
	case errors.Is(err, context.Canceled):
		out.Code, out.Message = reeve.Canceled, "the caller cancelled the request"
	case !connected:
		out.Message = connectMessage(err)
	case errors.Is(err, context.DeadlineExceeded):
		out.Code, out.Message = reeve.Timeout, "the server did not send the content in time"
	}
	return out
}
