package model

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"reeve"
	"reeve/internal/backoff"
	"reeve/internal/redact"
)

// Server is the address of a provider and the key for it.
type Server struct {
	Name   string       // Provider of the answers. Default: the adapter's name
	URL    string       // Default: the provider's public URL
	Key    string       // API key; some servers need none
	KeyVar string       // name of the setting with the key, for hints
	Client *http.Client // Default: http.DefaultClient
}

// client returns the HTTP client. It follows no redirects, because the new host would receive the key.
func (s Server) client() *http.Client {
	c := *http.DefaultClient
	if s.Client != nil {
		c = *s.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// withDefaults sets unset fields to the given values.
func (s Server) withDefaults(name, address, keyVar string) Server {
	if s.Name == "" {
		s.Name = name
	}
	if s.URL == "" {
		s.URL = address
	}
	s.URL = strings.TrimRight(s.URL, "/")
	if s.KeyVar == "" {
		s.KeyVar = keyVar
	}
	return s
}

// statusError returns the error for a response with an error status. kind is the provider's error type, if it sent one.
func (s Server) statusError(status int, h http.Header, kind, message string) error {
	detail := s.quote(message)
	if detail == "" {
		detail = http.StatusText(status)
	}
	switch {
	case kind == "insufficient_quota" || kind == "billing_error" || status == http.StatusPaymentRequired:
		return reeve.Errorf(reeve.ModelFailed, "%s requires payment (HTTP %d): %s", s.Name, status, detail).
			Hintf("check the plan and the balance of the account, or use another provider")
	case status == http.StatusTooManyRequests:
		e := reeve.Errorf(reeve.RateLimited, "%s received too many requests (HTTP 429): %s", s.Name, detail).
			Hintf("try again later")
		e.RetryAfter = retryAfter(h)
		return e
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return reeve.Errorf(reeve.ModelFailed, "%s rejected the key (HTTP %d): %s", s.Name, status, detail).
			Hintf("check %s", s.KeyVar)
	case status == http.StatusNotFound:
		return reeve.Errorf(reeve.ModelFailed, "%s does not know the model or the URL (HTTP 404): %s", s.Name, detail).
			Hintf("check the model's name and the server's URL")
	case status == http.StatusRequestTimeout || status >= 500:
		e := reeve.Errorf(reeve.Unavailable, "%s is not available (HTTP %d): %s", s.Name, status, detail).
			Hintf("try again later")
		e.RetryAfter = retryAfter(h)
		return e
	default:
		return reeve.Errorf(reeve.ModelFailed, "%s rejected the request (HTTP %d): %s", s.Name, status, detail)
	}
}

// redirectError returns the error for a redirect. It omits the user information and the query of the URL, which may be
// secret.
func (s Server) redirectError(status int, to *url.URL) error {
	at := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return reeve.Errorf(reeve.ModelFailed, "%s redirects to %s (HTTP %d); redirects are not followed", s.Name,
		s.quote(at.String()), status).Hintf("if the server has moved, set base_url to its new URL")
}

// connectionError returns the error for a failed connection. It includes the cause as text only, without the URL, which
// may contain a secret.
func (s Server) connectionError(ctx context.Context, err error) error {
	if e := contextError(ctx, s.Name); e != nil {
		return e
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return reeve.Errorf(reeve.Unavailable, "the connection to %s failed: %s", s.Name, s.quote(err.Error())).
		Hintf("check the network and the server's URL")
}

// truncatedError returns the error for a stream that ended too early.
func (s Server) truncatedError(ctx context.Context) error {
	if e := contextError(ctx, s.Name); e != nil {
		return e
	}
	return reeve.Errorf(reeve.Unavailable, "%s ended the stream in the middle of its answer", s.Name)
}

// invalidAnswer returns the error for an answer that cannot be parsed.
func (s Server) invalidAnswer(format string, args ...any) error {
	e := reeve.Errorf(reeve.ModelFailed, format, args...)
	return reeve.Errorf(reeve.ModelFailed, "%s sent an invalid answer: %s", s.Name, s.quote(e.Message))
}

// contextError returns the error for a context that is done, or nil.
func contextError(ctx context.Context, name string) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return reeve.Errorf(reeve.Timeout, "%s did not answer in time", name)
	default:
		return reeve.Errorf(reeve.Canceled, "the request to %s was cancelled", name)
	}
}

// maxQuote limits the bytes of a provider's message in an error.
const maxQuote = 500

// quote returns a provider's message for an error: truncated, on one line, without the key.
func (s Server) quote(text string) string {
	text = anonymize(redact.New([]string{s.Key}).Text(text))
	return reeve.Truncate(strings.Join(strings.Fields(text), " "), maxQuote)
}

// retryAfter parses the Retry-After-Ms or Retry-After header.
func retryAfter(h http.Header) time.Duration {
	if d := backoff.RetryAfter(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	return backoff.RetryAfter(h.Get("Retry-After"), time.Second)
}
