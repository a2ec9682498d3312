package model

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"sync"

	"reeve"
)

// Replay is an http.Handler that plays back a recording in order and checks that the requests match it.
type Replay struct {
	Exchanges []Exchange

	mu       sync.Mutex
	next     int
	errs     []error
	received []Exchange
}

// OpenReplay reads a recording from a file.
func OpenReplay(file string) (*Replay, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, reeve.Errorf(reeve.NotFound, "cannot read the recording: %w", err)
	}
	xs, err := ParseExchanges(data)
	if err != nil {
		return nil, err
	}
	return &Replay{Exchanges: xs}, nil
}

// ServeHTTP implements http.Handler. It also answers a request that differs from the recording, so that a test
// continues. Err reports the difference.
func (p *Replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, ok := p.nextExchange(r)
	if !ok {
		http.Error(w, "the recording has no more exchanges", http.StatusNotImplemented)
		return
	}
	for name, values := range x.ResponseHeader {
		w.Header()[name] = values
	}
	w.WriteHeader(x.Status)
	// The client may have closed the connection, so a failed write is no error.
	for event := range bytes.SplitAfterSeq(x.ResponseBody, []byte("\n\n")) {
		if _, err := w.Write(event); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
	if x.Broken {
		panic(http.ErrAbortHandler) // aborts the connection before the end of the body
	}
}

func (p *Replay) nextExchange(r *http.Request) (Exchange, bool) {
	body, err := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	got := Exchange{Method: r.Method, Path: anonymizeURL(r.URL), RequestHeader: anonymizeHeader(r.Header),
		RequestBody: indentJSON([]byte(anonymize(string(body))))}
	p.received = append(p.received, got)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	if p.next >= len(p.Exchanges) {
		p.errs = append(p.errs, reeve.Errorf(reeve.Conflict, "request %d (%s %s) is not in the recording", p.next+1,
			got.Method, got.Path))
		return Exchange{}, false
	}
	x := p.Exchanges[p.next]
	p.next++
	if got.Method != x.Method || got.Path != x.Path || !bytes.Equal(got.RequestBody, x.RequestBody) {
		p.errs = append(p.errs, reeve.Errorf(reeve.Conflict,
			"request %d differs from the recording\ngot:\n%s %s\n%s\nrecorded:\n%s %s\n%s", p.next,
			got.Method, got.Path, got.RequestBody, x.Method, x.Path, x.RequestBody))
	}
	return x, true
}

// Err returns the first difference between the requests and the recording, or an error if recorded requests are
// missing.
func (p *Replay) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) > 0 {
		return p.errs[0]
	}
	if p.next < len(p.Exchanges) {
		return reeve.Errorf(reeve.Conflict, "received %d of %d recorded requests", p.next, len(p.Exchanges))
	}
	return nil
}

// ReceivedExchanges returns the received requests, each with the response it got.
func (p *Replay) ReceivedExchanges() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Exchange
	for i, g := range p.received {
		if i < len(p.Exchanges) {
			x := p.Exchanges[i]
			x.Method, x.Path, x.RequestHeader, x.RequestBody = g.Method, g.Path, g.RequestHeader, g.RequestBody
			out = append(out, x)
		}
	}
	return out
}
