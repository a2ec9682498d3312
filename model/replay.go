package model

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"sync"

	"reeve"
)

// Replay is a server that answers from a recording, in its order, and checks that it is asked the same.
type Replay struct {
	Exchanges []Exchange

	mu   sync.Mutex
	next int
	errs []error
	got  []Exchange
}

// OpenReplay reads a recording.
func OpenReplay(file string) (*Replay, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, reeve.Errorf(reeve.NotFound, "the recording cannot be read: %w", err)
	}
	xs, err := ParseExchanges(data)
	if err != nil {
		return nil, err
	}
	return &Replay{Exchanges: xs}, nil
}

// ServeHTTP implements http.Handler. A request that is not the one recorded is answered all the same, so that a test
// sees how far it gets; Err tells.
func (p *Replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, ok := p.take(r)
	if !ok {
		http.Error(w, "the recording is over", http.StatusNotImplemented)
		return
	}
	for name, values := range x.ResponseHeader {
		w.Header()[name] = values
	}
	w.WriteHeader(x.Status)
	// A client that went away is no fault of ours.
	for event := range bytes.SplitAfterSeq(x.ResponseBody, []byte("\n\n")) {
		if _, err := w.Write(event); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
	if x.Broken {
		panic(http.ErrAbortHandler) // closes the connection without the end of the body
	}
}

func (p *Replay) take(r *http.Request) (Exchange, bool) {
	body, err := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	got := Exchange{Method: r.Method, Path: anonymousURL(r.URL), RequestHeader: anonymousHeader(r.Header),
		RequestBody: indented([]byte(anonymize(string(body))))}
	p.got = append(p.got, got)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	if p.next >= len(p.Exchanges) {
		p.errs = append(p.errs, reeve.Errorf(reeve.Conflict, "request %d (%s %s) is more than was recorded", p.next+1,
			got.Method, got.Path))
		return Exchange{}, false
	}
	x := p.Exchanges[p.next]
	p.next++
	if got.Method != x.Method || got.Path != x.Path || !bytes.Equal(got.RequestBody, x.RequestBody) {
		p.errs = append(p.errs, reeve.Errorf(reeve.Conflict,
			"request %d is not the one that was recorded\ngot:\n%s %s\n%s\nrecorded:\n%s %s\n%s", p.next,
			got.Method, got.Path, got.RequestBody, x.Method, x.Path, x.RequestBody))
	}
	return x, true
}

// Err says in what the requests differed from the recording, including those that never came.
func (p *Replay) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) > 0 {
		return p.errs[0]
	}
	if p.next < len(p.Exchanges) {
		return reeve.Errorf(reeve.Conflict, "%d of %d recorded requests came", p.next, len(p.Exchanges))
	}
	return nil
}

// Received is what was asked, in the form of a recording: the requests that came with the responses they got.
func (p *Replay) Received() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Exchange
	for i, g := range p.got {
		if i < len(p.Exchanges) {
			x := p.Exchanges[i]
			x.Method, x.Path, x.RequestHeader, x.RequestBody = g.Method, g.Path, g.RequestHeader, g.RequestBody
			out = append(out, x)
		}
	}
	return out
}
