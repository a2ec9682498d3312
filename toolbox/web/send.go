package web

import (
	"bytes"
	"context"
	"encoding/json"
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

// request is an endpoint, or its look-up, after all checks. It is ready to send.
type request struct {
	method   string
	url      template
	headers  []header
	query    map[string]string
	body     map[string]string
	bodyType string
	usedArgs []string // arguments in url and query; the body leaves them out by default
	secrets  []string
	result   []string // tokens of the result pointer; empty means the whole body
	limit    int64    // maximum size of the response body
	effect   reeve.Effect
	async    bool

	hiddenSettings []string // settings that are removed from responses

	client   *http.Client
	provider func(ctx context.Context, workspace, name string) (string, error)
}

type header struct {
	name  string
	value []part
}

// response is the response of an endpoint. Its methods remove secrets.
type response struct {
	status      int
	contentType string
	retryAfter  string
	length      int64 // Content-Length; -1 means unknown
	body        []byte
	maxShown    int              // bytes of the body that may be shown
	overLimit   bool             // the body is longer than maxShown
	readErr     error            // error that interrupted reading the body
	secrets     *redact.Redactor // removes the secrets that were sent
	inv         *reeve.Invocation
}

// tailTimeout is how long to wait for the bytes after the shown part of a body. They are only needed to recognise a
// secret at the end of the shown part.
const tailTimeout = time.Second

// newRequest builds the HTTP request from a call's arguments. It sends nothing.
func (r *request) newRequest(ctx context.Context, inv *reeve.Invocation,
	secrets map[string]string) (*http.Request, error) {
	args, err := parseArguments(inv)
	if err != nil {
		return nil, err
	}
	more, err := args.encodePairs(r.query)
	if err != nil {
		return nil, err
	}
	u, err := r.url.expand(args, secrets, more)
	if err != nil {
		return nil, err
	}
	body, contentType, err := r.encodeBody(args)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if contentType != "" {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.base, reader)
	if err != nil {
		// the error of net/http would contain the URL
		return nil, reeve.Errorf(reeve.Internal, "request cannot be built")
	}
	req.URL = u
	req.Header.Set("User-Agent", "reeve")
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for _, h := range r.headers {
		v, ok, err := args.expandHeader(h.value, secrets)
		if err != nil {
			return nil, err
		}
		if ok {
			req.Header.Set(h.name, v)
		}
	}
	if inv.Operation != "" && (r.effect.Mutates() || r.method != http.MethodGet && r.method != http.MethodHead) {
		req.Header.Set("Idempotency-Key", inv.Operation)
	}
	if r.async && inv.Operation != "" {
		req.Header.Set("Reeve-Operation", inv.Operation) // id under which the endpoint can deliver the outcome later
	}
	return req, nil
}

func (r *request) encodeBody(args arguments) (body []byte, contentType string, err error) {
	mapping := r.body
	if len(mapping) == 0 {
		mapping = args.mapUnused(r.usedArgs)
	}
	switch r.bodyType {
	case jsonBody:
		body, err = args.encodeObject(mapping)
		return body, "application/json", err
	case formBody:
		body, err = args.encodeForm(mapping)
		return body, "application/x-www-form-urlencoded", err
	}
	return nil, "", nil
}

// send makes the request and reads the response. The code of an error says whether anything can have been sent.
func (r *request) send(ctx context.Context, inv *reeve.Invocation) (*response, error) {
	secrets, err := r.resolveSecrets(ctx, inv.Workspace)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	req, err := r.newRequest(httptrace.WithClientTrace(ctx, trace), inv, secrets)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, r.transportError(err, connected.Load())
	}
	defer resp.Body.Close()
	limit := r.limit
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		limit = min(limit, maxErrorRead)
	}
	a := &response{status: resp.StatusCode, length: resp.ContentLength, maxShown: int(limit), inv: inv,
		secrets:    redact.New(append(slices.Collect(maps.Values(secrets)), r.secretSettings(inv)...)).StoredOnly(),
		retryAfter: resp.Header.Get("Retry-After")}
	a.contentType = a.secrets.Text(resp.Header.Get("Content-Type"))
	a.body, a.readErr = io.ReadAll(io.LimitReader(resp.Body, limit+1)) // one byte more, to see if it is longer
	if a.overLimit = int64(len(a.body)) > limit; a.overLimit {
		late := time.AfterFunc(tailTimeout, stop)
		defer late.Stop()
		// an error has no effect: any part of the tail helps
		rest, _ := io.ReadAll(io.LimitReader(resp.Body, reeve.RedactWindow))
		a.body, a.readErr = append(a.body, rest...), nil
	}
	return a, nil
}

// secretSettings returns the values of the agent's settings that are never shown.
func (r *request) secretSettings(inv *reeve.Invocation) (values []string) {
	var given map[string]any
	if len(r.hiddenSettings) == 0 || json.Unmarshal(inv.Config, &given) != nil {
		return nil
	}
	for _, name := range r.hiddenSettings {
		if v, ok := given[name].(string); ok && v != "" {
			values = append(values, v)
		}
	}
	return values
}

// transportError returns the error for a failure of the transport. The code depends on the type of err and on whether
// there was a connection, because without one nothing can have been sent. The text of net/http is dropped: it contains
// the URL, and possibly a secret.
func (r *request) transportError(err error, connected bool) error {
	var own *reeve.Error
	if errors.As(err, &own) { // from the guard
		return own
	}
	canceled, late := errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded)
	out := func(code reeve.Code, message string) error {
		return &reeve.Error{Code: code, Message: message, Err: safeCause(err)}
	}
	switch {
	case canceled && !connected:
		return out(reeve.Canceled, "call cancelled before anything was sent")
	case !connected:
		return out(reeve.Unavailable, connectMessage(err))
	case late:
		return out(reeve.Timeout, "the endpoint did not respond in time")
	case r.effect.Mutates():
		return out(reeve.UnknownOutcome,
			"the connection was lost after the request was sent; it may or may not have been carried out")
	case canceled:
		return out(reeve.Canceled, "call cancelled")
	}
	return out(reeve.Unavailable, "the connection was lost before the response was complete")
}
