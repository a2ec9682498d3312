package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"

	"reeve"
)

// request is a request to send.
type request struct {
	method    string
	path      string      // escaped path
	query     url.Values  // empty values are omitted
	body      any         // encoded as JSON; nil for none
	lines     []byte      // JSON lines instead of a body
	key       string      // Idempotency-Key of a POST
	retryHint string      // hint of the error if the response is lost
	sent      atomic.Bool // set once the server may have received the request
}

// path returns an escaped path, so that an id with a slash or a question mark stays one segment.
func path(parts ...string) string {
	p := "/api"
	for _, s := range parts {
		p += "/" + url.PathEscape(s)
	}
	return p
}

func (p Page) query() url.Values {
	q := url.Values{}
	q.Set("cursor", p.Cursor)
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

func get[T any](ctx context.Context, c *conn, path string, query url.Values) (out T, err error) {
	return out, c.do(ctx, &request{method: http.MethodGet, path: path, query: query}, &out)
}

func put[T any](ctx context.Context, c *conn, path string, body any) (out T, err error) {
	return out, c.do(ctx, &request{method: http.MethodPut, path: path, body: body}, &out)
}

func post[T any](ctx context.Context, c *conn, path string, body any) (out T, err error) {
	return out, c.do(ctx, &request{method: http.MethodPost, path: path, body: body}, &out)
}

func (c *conn) delete(ctx context.Context, path string) error {
	return c.do(ctx, &request{method: http.MethodDelete, path: path}, nil)
}

// do sends a request and decodes the response into out. If out is nil, do ignores the body.
func (c *conn) do(ctx context.Context, r *request, out any) error {
	if r.method == http.MethodPost && r.key == "" {
		r.key = c.key()
	}
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be reused
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return c.notReeveError(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return c.requestError(ctx, r, err)
	}
	return nil
}

// send sends a request and returns the response if it is a success of a Reeve server.
func (c *conn) send(ctx context.Context, r *request) (*http.Response, error) {
	req, err := c.build(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.requestError(ctx, r, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.responseError(resp)
	}
	if !isReeve(resp) { // a success of another server means nothing
		defer resp.Body.Close()
		return nil, c.notReeveError(resp)
	}
	return resp, nil
}

func (c *conn) build(ctx context.Context, r *request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, &reeve.Error{Code: reeve.Validation, Message: "cannot encode the request: " + err.Error(),
				Err: err}
		}
		body = bytes.NewReader(b)
	} else if r.lines != nil {
		body = bytes.NewReader(r.lines)
	}
	for name, v := range r.query {
		if len(v) == 0 || v[0] == "" {
			delete(r.query, name)
		}
	}
	target := c.base.String() + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { r.sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "invalid request: " + err.Error(), Err: err}
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("X-Workspace-Id", c.workspace)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	} else if r.lines != nil {
		req.Header.Set("Content-Type", "application/x-ndjson")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	return req, nil
}
