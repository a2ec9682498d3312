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

// Exchange is a request and what was answered, with nothing in it that tells who asked.
type Exchange struct {
	Method, Path   string
	RequestHeader  http.Header
	RequestBody    []byte // JSON is indented
	Status         int
	ResponseHeader http.Header
	ResponseBody   []byte
	Broken         bool // the connection broke off after the body
}

// Recorder is a transport that writes what passes to a file: a txtar archive with a section for each request and each
// response, as Replay reads it. Keys, tokens, cookies, and ids of organizations and users are taken out.
type Recorder struct {
	File string
	Next http.RoundTripper // http.DefaultTransport when nil

	mu   sync.Mutex
	done []Exchange
}

// RoundTrip implements http.RoundTripper. The exchange is written once the response's body was read to its end, or
// closed.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x := Exchange{Method: req.Method, Path: anonymousURL(req.URL), RequestHeader: anonymousHeader(req.Header)}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		x.RequestBody = indented([]byte(anonymize(string(body))))
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
	x.Status, x.ResponseHeader = res.StatusCode, anonymousHeader(res.Header)
	res.Body = &recordedBody{ReadCloser: res.Body, end: func(body []byte, broken bool) error {
		x.ResponseBody, x.Broken = []byte(anonymize(string(body))), broken
		return r.write(x)
	}}
	return res, nil
}

func (r *Recorder) write(x Exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, x)
	return os.WriteFile(r.File, FormatExchanges(r.done), 0o600)
}

// recordedBody keeps what is read.
type recordedBody struct {
	io.ReadCloser
	kept  bytes.Buffer
	ended bool
	end   func(body []byte, broken bool) error
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.kept.Write(p[:n])
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
	if b.ended {
		return nil
	}
	b.ended = true
	return b.end(b.kept.Bytes(), broken)
}

// brokenMark ends the section of a response whose connection broke.
const brokenMark = "~broken~\n"

// FormatExchanges writes exchanges in the form of a recording.
func FormatExchanges(xs []Exchange) []byte {
	ar := &txtar.Archive{}
	for i, x := range xs {
		ar.Files = append(ar.Files,
			txtar.File{Name: fmt.Sprintf("%d request", i+1), Data: section(x.Method+" "+x.Path, x.RequestHeader,
				x.RequestBody, false)},
			txtar.File{Name: fmt.Sprintf("%d response", i+1), Data: section(fmt.Sprint(x.Status), x.ResponseHeader,
				x.ResponseBody, x.Broken)})
	}
	return txtar.Format(ar)
}

func section(first string, h http.Header, body []byte, broken bool) []byte {
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

// ParseExchanges reads a recording.
func ParseExchanges(data []byte) ([]Exchange, error) {
	ar := txtar.Parse(data)
	if len(ar.Files) == 0 || len(ar.Files)%2 != 0 {
		return nil, reeve.Errorf(reeve.Validation,
			"not a recording: it has %d sections, not a request and a response for each exchange", len(ar.Files))
	}
	var xs []Exchange
	for i := 0; i < len(ar.Files); i += 2 {
		var x Exchange
		var first string
		if first, x.RequestHeader, x.RequestBody = unsection(ar.Files[i].Data); first != "" {
			x.Method, x.Path, _ = strings.Cut(first, " ")
		}
		first, x.ResponseHeader, x.ResponseBody = unsection(ar.Files[i+1].Data)
		if _, err := fmt.Sscan(first, &x.Status); err != nil || x.Method == "" || x.Path == "" {
			return nil, reeve.Errorf(reeve.Validation, "not a recording: section %q or %q begins with the wrong line",
				ar.Files[i].Name, ar.Files[i+1].Name)
		}
		x.ResponseBody, x.Broken = bytes.CutSuffix(x.ResponseBody, []byte(brokenMark))
		xs = append(xs, x)
	}
	return xs, nil
}

func unsection(data []byte) (first string, h http.Header, body []byte) {
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

// indented makes JSON readable; it keeps the order of fields, so it is the same only for the same bytes.
func indented(body []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return body
	}
	b.WriteByte('\n')
	return b.Bytes()
}
