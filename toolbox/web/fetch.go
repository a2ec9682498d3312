package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"reeve"
)

// Fetcher reads what is at an address that somebody named, behind the guard.
type Fetcher struct{ client *http.Client }

// NewFetcher makes one.
func NewFetcher(g Guard) *Fetcher { return &Fetcher{g.Client()} }

// Fetch reads it, for as long as the caller waits. An address that leads where the guard does not let anybody is
// DENIED, one that does not answer is UNAVAILABLE or a TIMEOUT, one that answers anything but success is a VALIDATION
// error, and what has more than so many bytes is TOO_LARGE. The address itself is in no message: it may hold a secret.
func (f *Fetcher) Fetch(ctx context.Context, address string, most int) ([]byte, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, address, nil)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "it is not an address")
	}
	req.Header.Set("Accept", "*/*")
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, lost(err, connected.Load())
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests, s >= 500:
		return nil, reeve.Errorf(reeve.Unavailable, "its server answered %d %s", s, http.StatusText(s))
	case s != http.StatusOK:
		return nil, reeve.Errorf(reeve.Validation, "its server answered %d %s", s, http.StatusText(s))
	case resp.ContentLength > int64(most):
		return nil, tooMuch(most)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return nil, lost(err, true)
	}
	if len(body) > most {
		return nil, tooMuch(most)
	}
	return body, nil
}

func tooMuch(most int) error {
	return reeve.Errorf(reeve.TooLarge, "it has more than %d bytes", most)
}

// lost says why nothing, or not all, was read.
func lost(err error, connected bool) error {
	var own *reeve.Error
	if errors.As(err, &own) {
		return own
	}
	out := &reeve.Error{Code: reeve.Unavailable, Message: "the connection was lost before all of it was read",
		Err: cause(err)}
	switch {
	case errors.Is(err, context.Canceled):
		out.Code, out.Message = reeve.Canceled, "the caller went away"
	case !connected:
		out.Message = unreachable(err)
	case errors.Is(err, context.DeadlineExceeded):
		out.Code, out.Message = reeve.Timeout, "its server did not send it in time"
	}
	return out
}
