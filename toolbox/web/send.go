package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/redact"
)

// request is an endpoint, or its look-up, made ready: everything about it is known to be right.
type request struct {
	method   string
	url      template
	headers  []header
	query    map[string]string
	body     map[string]string
	bodyType string
	used     []string // the arguments that url and query use, and the body by default does not
	secrets  []string
	result   []string // tokens of the result pointer; none means the whole answer
	limit    int64    // of the answer's body
	effect   reeve.Effect
	async    bool

	client   *http.Client
	provider func(ctx context.Context, workspace, name string) (string, error)
}

type header struct {
	name  string
	value []part
}

// answer is what came back, without secrets.
type answer struct {
	status      int
	contentType string
	retryAfter  string
	length      int64 // as announced; -1 means not
	body        []byte
	most        int              // how much of the body may be shown
	over        bool             // there is more than that
	lost        error            // the body broke off
	secrets     *redact.Redactor // removes the secrets that were sent
	inv         *reeve.Invocation
}

// restTime is how long is waited for what comes after the part of a body that is shown: it is only looked at.
const restTime = time.Second

// draft makes the HTTP request of a call's arguments. It sends nothing.
func (r *request) draft(ctx context.Context, inv *reeve.Invocation, secrets map[string]string) (*http.Request, error) {
	args, err := parseArguments(inv)
	if err != nil {
		return nil, err
	}
	more, err := args.pairs(r.query)
	if err != nil {
		return nil, err
	}
	u, err := r.url.expand(args, secrets, more)
	if err != nil {
		return nil, err
	}
	body, contentType, err := r.write(args)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if contentType != "" {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.base, reader)
	if err != nil {
		return nil, reeve.Errorf(reeve.Internal, "the request cannot be made") // its own words hold the url
	}
	req.URL = u
	req.Header.Set("User-Agent", "reeve")
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for _, h := range r.headers {
		v := ""
		for _, p := range h.value {
			v += p.literal + secrets[p.secret]
		}
		req.Header.Set(h.name, v)
	}
	if inv.Operation != "" && (r.effect.Mutates() || r.method != http.MethodGet && r.method != http.MethodHead) {
		req.Header.Set("Idempotency-Key", inv.Operation)
	}
	if r.async && inv.Operation != "" {
		req.Header.Set("Reeve-Operation", inv.Operation) // under which its outcome may be delivered
	}
	return req, nil
}

func (r *request) write(args arguments) (body []byte, contentType string, err error) {
	mapping := r.body
	if len(mapping) == 0 {
		mapping = args.rest(r.used)
	}
	switch r.bodyType {
	case jsonBody:
		body, err = args.object(mapping)
		return body, "application/json", err
	case formBody:
		body, err = args.form(mapping)
		return body, "application/x-www-form-urlencoded", err
	}
	return nil, "", nil
}

// send makes the request and reads the answer. An error says how far it got.
func (r *request) send(ctx context.Context, inv *reeve.Invocation) (*answer, error) {
	secrets, err := r.resolve(ctx, inv.Workspace)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := r.draft(httptrace.WithClientTrace(ctx, trace), inv, secrets)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, r.broken(err, connected.Load())
	}
	defer resp.Body.Close()
	limit := r.limit
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		limit = min(limit, maxErrorRead)
	}
	a := &answer{status: resp.StatusCode, length: resp.ContentLength, most: int(limit), inv: inv,
		secrets:    redact.New(slices.Collect(maps.Values(secrets))).StoredOnly(),
		retryAfter: resp.Header.Get("Retry-After")}
	a.contentType = a.secrets.Text(resp.Header.Get("Content-Type"))
	a.body, a.lost = io.ReadAll(io.LimitReader(resp.Body, limit+1)) // one more shows that there is more
	if a.over = int64(len(a.body)) > limit; a.over {
		late := time.AfterFunc(restTime, stop)
		defer late.Stop()
		// it tells what the part that is shown ends in; whatever there is will do
		rest, _ := io.ReadAll(io.LimitReader(resp.Body, reeve.RedactWindow))
		a.body, a.lost = append(a.body, rest...), nil
	}
	return a, nil
}

// broken says what an error of the transport means for the effect, by its type and by whether a connection was there:
// without one nothing can have been sent. What net/http says itself holds the url, and so perhaps a secret; it goes no
// further.
func (r *request) broken(err error, connected bool) error {
	var own *reeve.Error
	if errors.As(err, &own) { // the guard's
		return own
	}
	canceled, late := errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded)
	out := func(code reeve.Code, message string) error {
		return &reeve.Error{Code: code, Message: message, Err: cause(err)}
	}
	switch {
	case canceled && !connected:
		return out(reeve.Canceled, "the call was canceled before anything was sent")
	case !connected:
		return out(reeve.Unavailable, unreachable(err))
	case late:
		return out(reeve.Timeout, "the endpoint did not answer in time")
	case r.effect.Mutates():
		return out(reeve.UnknownOutcome,
			"the connection was lost after the request was sent: it may or may not have been carried out")
	case canceled:
		return out(reeve.Canceled, "the call was canceled")
	}
	return out(reeve.Unavailable, "the connection was lost before the answer was complete")
}
