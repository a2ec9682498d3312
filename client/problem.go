package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/backoff"
)

// ProblemError is the problem document of an error response. It is the cause of the *reeve.Error that the client's
// methods return.
type ProblemError struct {
	api.Problem
}

// Error returns a text for logs. People see the *reeve.Error around it.
func (r *ProblemError) Error() string {
	s := fmt.Sprintf("HTTP %d", r.Status)
	if r.RequestID != "" {
		s += ", request " + r.RequestID
	}
	if r.CallID != "" {
		s += ", call " + r.CallID
	}
	return s
}

// ProblemOf returns the problem document in err's chain. It returns false if there is none.
func ProblemOf(err error) (api.Problem, bool) {
	var r *ProblemError
	if errors.As(err, &r) {
		return r.Problem, true
	}
	return api.Problem{}, false
}

// rejection turns a bad answer into an error.
func (c *conn) rejection(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/problem+json" {
		return c.stranger(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	var p api.Problem
	if err != nil || json.Unmarshal(b, &p) != nil {
		return c.stranger(resp)
	}
	p.Status = resp.StatusCode
	if p.Code == "" {
		p.Code = codeOf(resp.StatusCode)
	}
	if p.RequestID == "" {
		p.RequestID = resp.Header.Get("X-Request-Id")
	}
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return &reeve.Error{Code: p.Code, Message: message, Hint: p.Hint, Fields: p.Errors,
		RetryAfter: backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Second), Err: &ProblemError{p}}
}

// stranger is for answers that no Reeve server gives: another server, or a proxy in between.
func (c *conn) stranger(resp *http.Response) error {
	p := api.Problem{Type: "about:blank", Title: http.StatusText(resp.StatusCode), Status: resp.StatusCode,
		Code:   codeOf(resp.StatusCode),
		Detail: fmt.Sprintf("what answers at %s is not a Reeve server: it said %s", c.base, resp.Status),
		Hint:   "check the address"}
	return &reeve.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint,
		RetryAfter: backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Second), Err: &ProblemError{p}}
}

// isReeve reports whether an answer carries the id that a Reeve server gives each request. Proxies may add ids of their
// own.
func isReeve(resp *http.Response) bool {
	return slices.ContainsFunc(resp.Header.Values("X-Request-Id"),
		func(id string) bool { return strings.HasPrefix(id, reeve.PrefixRequest+"_") })
}

// codeOf is for answers without a code, which come from proxies.
func codeOf(status int) reeve.Code {
	switch status {
	case http.StatusUnauthorized:
		return reeve.Unauthenticated
	case http.StatusForbidden:
		return reeve.Forbidden
	case http.StatusNotFound:
		return reeve.NotFound
	case http.StatusRequestEntityTooLarge:
		return reeve.TooLarge
	case http.StatusTooManyRequests:
		return reeve.RateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return reeve.Unavailable
	case http.StatusGatewayTimeout:
		return reeve.Timeout
	}
	return reeve.Internal
}

// lost says what a request without an answer came to. What never left is Unavailable; a change that may have left is
// unknown, whatever cut it off.
func (c *conn) lost(ctx context.Context, r *request, err error) error {
	if !r.left.Load() {
		if ctx.Err() != nil {
			return &reeve.Error{Code: reeve.Canceled, Message: "interrupted before the request was sent",
				Err: ctx.Err()}
		}
		e := &reeve.Error{Code: reeve.Unavailable, Message: "no Reeve server answers at " + c.base.String(),
			Hint: "start one with: reeve serve", Err: err}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			e.Message += ": " + reason(err)
		}
		return e
	}
	if r.method != http.MethodGet {
		e := &reeve.Error{Code: reeve.UnknownOutcome, Message: "the connection to " + c.base.String() +
			" was lost before the answer came", Hint: "look before you ask again", Err: err}
		if ctx.Err() != nil {
			e.Message = "interrupted before the answer came"
		}
		if r.again != "" {
			e.Hint = r.again
		}
		return e
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &reeve.Error{Code: reeve.Timeout, Message: "no answer in time from " + c.base.String(), Err: err}
	case ctx.Err() != nil:
		return &reeve.Error{Code: reeve.Canceled, Message: "interrupted", Err: err}
	}
	return &reeve.Error{Code: reeve.Unavailable, Message: "the answer of " + c.base.String() + " broke off: " +
		reason(err), Hint: "try again", Err: err}
}

// reason is the innermost cause: the layers above it repeat the address.
func reason(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
