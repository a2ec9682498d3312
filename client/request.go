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

// request is one request to come.
type request struct {
	method string
	path   string      // escaped
	query  url.Values  // empty values are left out
	body   any         // nil means none
	lines  []byte      // JSON lines instead of a body
	key    string      // the Idempotency-Key of a POST
	again  string      // how to ask again when the answer was lost
	left   atomic.Bool // set once the server may have seen it
}

// path builds an escaped path from its parts, so that an id with a slash or a question mark stays one part.
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

func (c *conn) remove(ctx context.Context, path string) error {
	return c.do(ctx, &request{method: http.MethodDelete, path: path}, nil)
}

// do sends a request and reads its answer into out; a nil out means that no body is expected.
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
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return c.stranger(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return c.lost(ctx, r, err)
	}
	return nil
}

// send returns the answer if it is a good one.
func (c *conn) send(ctx context.Context, r *request) (*http.Response, error) {
	req, err := c.build(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, r, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.rejection(resp)
	}
	if !isReeve(resp) { // whoever says yes to everything has stopped no agent, and is no backup
		defer resp.Body.Close()
		return nil, c.stranger(resp)
	}
	return resp, nil
}

func (c *conn) build(ctx context.Context, r *request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, &reeve.Error{Code: reeve.Validation, Message: "the request is not JSON: " + err.Error(),
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
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { r.left.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "the request cannot be sent: " + err.Error(),
			Err: err}
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
