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

// ProblemError is a problem that the server reported. It is the cause of the *reeve.Error that the methods of the
// client return.
type ProblemError struct {
	api.Problem
}

// Error implements error. It is for logs. Show people the *reeve.Error around it.
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

// ProblemOf returns the problem that the server reported, if err has one.
func ProblemOf(err error) (api.Problem, bool) {
	var r *ProblemError
	if errors.As(err, &r) {
		return r.Problem, true
	}
	return api.Problem{}, false
}

// responseError returns the error for a response with an error status.
func (c *conn) responseError(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/problem+json" {
		return c.notReeveError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	var p api.Problem
	if err != nil || json.Unmarshal(b, &p) != nil {
		return c.notReeveError(resp)
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

// notReeveError returns the error for a response that is not from a Reeve server but from another server or a proxy.
func (c *conn) notReeveError(resp *http.Response) error {
	p := api.Problem{Type: "about:blank", Title: http.StatusText(resp.StatusCode), Status: resp.StatusCode,
		Code:   codeOf(resp.StatusCode),
		Detail: fmt.Sprintf("the server at %s is not a Reeve server: it returned %s", c.base, resp.Status),
		Hint:   "check the URL"}
	return &reeve.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint,
		RetryAfter: backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Second), Err: &ProblemError{p}}
}

// isReeve reports whether a response has the request id of a Reeve server. Proxies may add ids of their own.
func isReeve(resp *http.Response) bool {
	return slices.ContainsFunc(resp.Header.Values("X-Request-Id"),
		func(id string) bool { return strings.HasPrefix(id, reeve.PrefixRequest+"_") })
}

// codeOf returns the error code for a response without one, which comes from a proxy.
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

// requestError returns the error for a request without a complete response. If the request was never sent, the code is
// Unavailable or Canceled. If it was sent and may have changed something, the outcome is unknown.
func (c *conn) requestError(ctx context.Context, r *request, err error) error {
	if !r.sent.Load() {
		if ctx.Err() != nil {
			return &reeve.Error{Code: reeve.Canceled, Message: "interrupted before the request was sent",
				Err: ctx.Err()}
		}
		e := &reeve.Error{Code: reeve.Unavailable, Message: "no Reeve server answers at " + c.base.String(),
			Hint: "start one with: reeve serve", Err: err}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			e.Message += ": " + innermost(err)
		}
		return e
	}
	if r.method != http.MethodGet {
		e := &reeve.Error{Code: reeve.UnknownOutcome, Message: "the connection to " + c.base.String() +
			" was lost before the response", Hint: "check whether the change was made before you repeat it", Err: err}
		if ctx.Err() != nil {
			e.Message = "interrupted before the response"
		}
		if r.retryHint != "" {
			e.Hint = r.retryHint
		}
		return e
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &reeve.Error{Code: reeve.Timeout, Message: "timeout waiting for " + c.base.String(), Err: err}
	case ctx.Err() != nil:
		return &reeve.Error{Code: reeve.Canceled, Message: "interrupted", Err: err}
	}
	return c.truncatedError(err)
}

// truncatedError returns the error for a response that ended early.
func (c *conn) truncatedError(err error) error {
	return &reeve.Error{Code: reeve.Unavailable, Message: "the response of " + c.base.String() + " was cut off: " +
		innermost(err), Hint: "try again", Err: err}
}

// innermost returns the text of the innermost cause. The errors around it repeat the URL.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
