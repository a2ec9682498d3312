package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"

	"reeve"
)

// Exchange is an HTTP request and its response, without keys and account ids.
type Exchange struct {
	Method, Path   string
	RequestHeader  http.Header
	RequestBody    []byte // indented if it is JSON
	Status         int
	ResponseHeader http.Header
	ResponseBody   []byte
	Broken         bool // the connection failed after the body
}

// Recorder is an http.RoundTripper that records exchanges to a file: a txtar archive with a section per request and
// response, which Replay reads. It removes keys, tokens, cookies, and ids of organizations and users.
type Recorder struct {
	File string
	Next http.RoundTripper // http.DefaultTransport when nil

	mu        sync.Mutex
	exchanges []Exchange
}

// RoundTrip implements http.RoundTripper. The recorder writes the exchange when the response body is read to its end or
// closed.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x := Exchange{Method: req.Method, Path: anonymizeURL(req.URL), RequestHeader: anonymizeHeader(req.Header)}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		x.RequestBody = indentJSON([]byte(anonymize(string(body))))
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	next := r.Next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x.Status, x.ResponseHeader = res.StatusCode, anonymizeHeader(res.Header)
	res.Body = &recordedBody{ReadCloser: res.Body, onEnd: func(body []byte, broken bool) error {
		x.ResponseBody, x.Broken = []byte(anonymize(string(body))), broken
		return r.write(x)
	}}
	return res, nil
}

func (r *Recorder) write(x Exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, x)
	return os.WriteFile(r.File, FormatExchanges(r.exchanges), 0o600)
}

// recordedBody buffers a response body while the client reads it.
type recordedBody struct {
	io.ReadCloser
	buffer     bytes.Buffer
	isFinished bool
	onEnd      func(body []byte, broken bool) error
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.buffer.Write(p[:n])
	if err != nil {
		if werr := b.finish(err != io.EOF); werr != nil {
			return n, werr
		}
	}
	return n, err
}

func (b *recordedBody) Close() error {
	err := b.ReadCloser.Close()
	if werr := b.finish(false); werr != nil {
		return werr
	}
	return err
}

func (b *recordedBody) finish(broken bool) error {
	if b.isFinished {
		return nil
	}
	b.isFinished = true
	return b.onEnd(b.buffer.Bytes(), broken)
}

// brokenMark ends the section of a response whose connection failed.
const brokenMark = "~broken~\n"

// FormatExchanges formats exchanges as a recording.
func FormatExchanges(xs []Exchange) []byte {
	ar := &txtar.Archive{}
	for i, x := range xs {
		ar.Files = append(ar.Files,
			txtar.File{Name: fmt.Sprintf("%d request", i+1), Data: formatSection(x.Method+" "+x.Path, x.RequestHeader,
				x.RequestBody, false)},
			txtar.File{Name: fmt.Sprintf("%d response", i+1), Data: formatSection(fmt.Sprint(x.Status),
				x.ResponseHeader,
				x.ResponseBody, x.Broken)})
	}
	return txtar.Format(ar)
}

func formatSection(first string, h http.Header, body []byte, broken bool) []byte {
	var b bytes.Buffer
	b.WriteString(first + "\n")
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			b.WriteString(name + ": " + v + "\n")
		}
	}
	b.WriteString("\n")
	b.Write(body)
	if b.Len() > 0 && b.Bytes()[b.Len()-1] != '\n' {
		b.WriteByte('\n')
	}
	if broken {
		b.WriteString(brokenMark)
	}
	return b.Bytes()
}

// ParseExchanges parses a recording.
func ParseExchanges(data []byte) ([]Exchange, error) {
	ar := txtar.Parse(data)
	if len(ar.Files) == 0 || len(ar.Files)%2 != 0 {
		return nil, reeve.Errorf(reeve.Validation,
			"invalid recording: it has %d sections; each exchange needs a request and a response", len(ar.Files))
	}
	var xs []Exchange
	for i := 0; i < len(ar.Files); i += 2 {
		var x Exchange
		var first string
		if first, x.RequestHeader, x.RequestBody = parseSection(ar.Files[i].Data); first != "" {
			x.Method, x.Path, _ = strings.Cut(first, " ")
		}
		first, x.ResponseHeader, x.ResponseBody = parseSection(ar.Files[i+1].Data)
		if _, err := fmt.Sscan(first, &x.Status); err != nil || x.Method == "" || x.Path == "" {
			return nil, reeve.Errorf(reeve.Validation, "invalid recording: the first line of section %q or %q is wrong",
				ar.Files[i].Name, ar.Files[i+1].Name)
		}
		x.ResponseBody, x.Broken = bytes.CutSuffix(x.ResponseBody, []byte(brokenMark))
		xs = append(xs, x)
	}
	return xs, nil
}

func parseSection(data []byte) (first string, h http.Header, body []byte) {
	head, body, _ := bytes.Cut(data, []byte("\n\n"))
	h = http.Header{}
	for i, line := range strings.Split(string(head), "\n") {
		if i == 0 {
			first = line
			continue
		}
		name, v, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimSpace(v))
	}
	return first, h, body
}

// indentJSON indents JSON and keeps the order of its fields. It returns other text unchanged.
func indentJSON(body []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return body
	}
	b.WriteByte('\n')
	return b.Bytes()
}
