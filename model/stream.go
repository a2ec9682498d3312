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

// How adapters speak HTTP. Providers' own SDKs were tried and cost more than they do;
// docs/internals/dependencies.md has the numbers.

// maxLine bounds one line of a stream, which may hold a whole answer and the question again, and maxBody the body of an
// error.
const (
	maxLine = 2 * maxAnswer
	maxBody = 1 << 20
)

// dialect is how a kind of provider is spoken to.
type dialect interface {
	address(r Request) (string, http.Header)
	refuses(media Part) error // nil when it can be sent; a request has nothing else
	request(r Request, ms []Message, n names) (any, error)
	listen(ctx context.Context, res *http.Response, d *draft) (Answer, error)
}

// ask has a request answered by a server that speaks a dialect.
func (s Server) ask(ctx context.Context, in dialect, r Request, watch func(Delta)) (Answer, error) {
	ms, err := history(r.Messages, s.Name, in.refuses)
	if err != nil {
		return Answer{}, err
	}
	n := nameTools(r, ms)
	body, err := in.request(r, ms, n)
	if err != nil {
		return Answer{}, err
	}
	address, header := in.address(r)
	res, err := s.post(ctx, address, header, body)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	return in.listen(ctx, res, newDraft(s, r, n, watch))
}

// post sends a JSON body. An answer with an error status is returned as it is, for the adapter to read.
func (s Server) post(ctx context.Context, address string, h http.Header, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, reeve.Errorf(reeve.Unsupported, "the request to %s cannot be written: %v", s.Name, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, reeve.Errorf(reeve.ModelFailed, "the address of %s is wrong", s.Name).
			Hintf("Check the server's URL.")
	}
	if h != nil {
		req.Header = h
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client().Do(req)
	if err != nil {
		return nil, s.lost(ctx, err)
	}
	if to, err := res.Location(); err == nil && res.StatusCode >= 300 && res.StatusCode < 400 {
		_ = res.Body.Close()
		return nil, s.moved(res.StatusCode, to)
	}
	return res, nil
}

// check says whether an answer is a stream. Otherwise it is an error, which read gives in the provider's words.
func (s Server) check(res *http.Response, read func(body []byte) (kind, message string)) error {
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	switch {
	case res.StatusCode != http.StatusOK:
		kind, message := read(wholeBody(res))
		return s.refused(res.StatusCode, res.Header, kind, message)
	case kind == "application/json" || kind == "text/html":
		return s.nonsense("it is %s and not a stream: %s", kind, wholeBody(res))
	default:
		return nil
	}
}

// wholeBody reads the body of an error.
func wholeBody(res *http.Response) []byte {
	// what came before the connection broke is better than nothing
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return body
}

// lines gives the lines of a stream that are not empty, without their ends, for as long as the answer that is made of
// them is not too long. What goes wrong is given as the error of the answer.
func (d *draft) lines(ctx context.Context, body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		sc := bufio.NewScanner(body)
		sc.Buffer(nil, maxLine)
		for sc.Scan() {
			if line := bytes.TrimSpace(sc.Bytes()); len(line) > 0 && !yield(line, nil) {
				return
			}
			if err := d.tooLong(); err != nil {
				yield(nil, err)
				return
			}
		}
		switch err := sc.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(nil, d.server.nonsense("a piece of it is longer than %d MB", maxLine>>20))
		case err != nil:
			yield(nil, d.server.lost(ctx, err))
		}
	}
}

// events gives the data of server-sent events that are one line each.
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
