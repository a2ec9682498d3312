package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	"reeve"
)

// HTTP for adapters. docs/internals/dependencies.md says why the providers' SDKs are not used.

// Limits of HTTP responses.
const (
	maxLine = 2 * maxAnswer // one line of a stream, which may repeat the whole answer
	maxBody = 1 << 20       // the body of an error
)

// adapter translates requests and answers for one kind of provider.
type adapter interface {
	// endpoint returns the URL and the headers of a request.
	endpoint(r Request) (string, http.Header)
	// checkMedia returns an error if the provider does not accept the media part.
	checkMedia(media Part) error
	// buildRequest returns the JSON body for prepared messages and mapped tool names. All media in them is accepted.
	buildRequest(r Request, ms []Message, n toolNames) (any, error)
	// readStream reads the response into d and returns the finished answer.
	readStream(ctx context.Context, res *http.Response, d *draft) (Answer, error)
}

// roundTrip sends a request to the server through an adapter and returns the answer.
func (s Server) roundTrip(ctx context.Context, in adapter, r Request, watch func(Delta)) (Answer, error) {
	ms, err := prepareMessages(r.Messages, s.Name, in.checkMedia)
	if err != nil {
		return Answer{}, err
	}
	n := mapToolNames(r, ms)
	body, err := in.buildRequest(r, ms, n)
	if err != nil {
		return Answer{}, err
	}
	address, header := in.endpoint(r)
	res, err := s.post(ctx, address, header, body)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	return in.readStream(ctx, res, newDraft(s, r, n, watch))
}

// post sends a JSON body. A redirect is an error. A response with an error status is not: the adapter reads it.
func (s Server) post(ctx context.Context, address string, h http.Header, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, reeve.Errorf(reeve.Unsupported, "cannot encode the request to %s: %v", s.Name, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, reeve.Errorf(reeve.ModelFailed, "the URL of %s is invalid", s.Name).
			Hintf("check the server's base_url")
	}
	if h != nil {
		req.Header = h
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client().Do(req)
	if err != nil {
		return nil, s.connectionError(ctx, err)
	}
	if to, err := res.Location(); err == nil && res.StatusCode >= 300 && res.StatusCode < 400 {
		_ = res.Body.Close()
		return nil, s.redirectError(res.StatusCode, to)
	}
	return res, nil
}

// checkStream returns an error unless the response is a stream. parse extracts the error type and the message from the
// body of an error.
func (s Server) checkStream(res *http.Response, parse func(body []byte) (kind, message string)) error {
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	switch {
	case res.StatusCode != http.StatusOK:
		kind, message := parse(readBody(res))
		return s.statusError(res.StatusCode, res.Header, kind, message)
	case kind == "application/json" || kind == "text/html":
		return s.invalidAnswer("expected a stream, got %s: %s", kind, readBody(res))
	default:
		return nil
	}
}

// readBody reads the body of an error.
func readBody(res *http.Response) []byte {
	// If the connection fails, the part read so far is still useful.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return body
}

// lines yields the non-empty lines of a stream, trimmed. It stops with an error if reading fails or the answer grows
// too long.
func (d *draft) lines(ctx context.Context, body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		sc := bufio.NewScanner(body)
		sc.Buffer(nil, maxLine)
		for sc.Scan() {
			if line := bytes.TrimSpace(sc.Bytes()); len(line) > 0 && !yield(line, nil) {
				return
			}
			if err := d.checkSize(); err != nil {
				yield(nil, err)
				return
			}
		}
		switch err := sc.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(nil, d.server.invalidAnswer("a line of the stream is longer than %d MB", maxLine>>20))
		case err != nil:
			yield(nil, d.server.connectionError(ctx, err))
		}
	}
}

// events yields the data of server-sent events. Each event has one data line.
func (d *draft) events(ctx context.Context, body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range d.lines(ctx, body) {
			if err != nil {
				yield(nil, err)
				return
			}
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			if data = bytes.TrimSpace(data); ok && len(data) > 0 && !yield(data, nil) {
				return
			}
		}
	}
}
