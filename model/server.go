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

// Server is where a provider answers.
type Server struct {
	Name   string       // the provider's name, as answers give it; the adapter's own when empty
	URL    string       // where it is; the provider's public address when empty
	Key    string       // what it is paid with; some need none
	KeyVar string       // the setting that holds the key, for hints
	Client *http.Client // http.DefaultClient when nil
}

// client follows no redirect: the key would go along to whatever host it names.
func (s Server) client() *http.Client {
	c := *http.DefaultClient
	if s.Client != nil {
		c = *s.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// or fills in what was left empty.
func (s Server) or(name, address, keyVar string) Server {
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

// refused is the error for an answer with an HTTP status that is no success. kind is the provider's own word for the
// error, if it had one.
func (s Server) refused(status int, h http.Header, kind, message string) error {
	said := s.quote(message)
	if said == "" {
		said = http.StatusText(status)
	}
	switch {
	case kind == "insufficient_quota" || kind == "billing_error" || status == http.StatusPaymentRequired:
		return reeve.Errorf(reeve.ModelFailed, "%s wants to be paid (HTTP %d): %s", s.Name, status, said).
			Hintf("Look at the account's plan and balance, or use another provider.")
	case status == http.StatusTooManyRequests:
		e := reeve.Errorf(reeve.RateLimited, "%s gets too many requests (HTTP 429): %s", s.Name, said).
			Hintf("Try again later.")
		e.RetryAfter = retryAfter(h)
		return e
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return reeve.Errorf(reeve.ModelFailed, "%s refuses the key (HTTP %d): %s", s.Name, status, said).
			Hintf("Check %s.", s.KeyVar)
	case status == http.StatusNotFound:
		return reeve.Errorf(reeve.ModelFailed, "%s has no such model or address (HTTP 404): %s", s.Name, said).
			Hintf("Check the model's name and the server's address.")
	case status == http.StatusRequestTimeout || status >= 500:
		e := reeve.Errorf(reeve.Unavailable, "%s does not work at the moment (HTTP %d): %s", s.Name, status, said).
			Hintf("Try again later.")
		e.RetryAfter = retryAfter(h)
		return e
	default:
		return reeve.Errorf(reeve.ModelFailed, "%s refuses the request (HTTP %d): %s", s.Name, status, said)
	}
}

// moved is the error for an answer that only names another address. What stands before the host and behind the path may
// be a secret.
func (s Server) moved(status int, to *url.URL) error {
	at := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return reeve.Errorf(reeve.ModelFailed, "%s redirects to %s (HTTP %d), which is not followed", s.Name,
		s.quote(at.String()), status).Hintf("If the server has moved there, set base_url to its new address.")
}

// lost is the error for a connection that failed. What the network says is kept as text only: it may hold an address
// with a secret in it.
func (s Server) lost(ctx context.Context, err error) error {
	if e := interrupted(ctx, s.Name); e != nil {
		return e
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return reeve.Errorf(reeve.Unavailable, "the connection to %s failed: %s", s.Name, s.quote(err.Error())).
		Hintf("Check the network and the server's address.")
}

// cut is the error for a stream that ended before its end.
func (s Server) cut(ctx context.Context) error {
	if e := interrupted(ctx, s.Name); e != nil {
		return e
	}
	return reeve.Errorf(reeve.Unavailable, "%s broke off in the middle of its answer", s.Name)
}

// nonsense is the error for an answer that cannot be understood.
func (s Server) nonsense(format string, args ...any) error {
	e := reeve.Errorf(reeve.ModelFailed, format, args...)
	return reeve.Errorf(reeve.ModelFailed, "%s gave an answer that makes no sense: %s", s.Name, s.quote(e.Message))
}

// interrupted is the error for a context that is over, or nil.
func interrupted(ctx context.Context, name string) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return reeve.Errorf(reeve.Timeout, "%s did not answer in time", name)
	default:
		return reeve.Errorf(reeve.Canceled, "the question to %s was withdrawn", name)
	}
}

// maxQuote is how much of a provider's own words goes into an error.
const maxQuote = 500

// quote makes a provider's words fit for an error: short, on one line, without the key.
func (s Server) quote(text string) string {
	text = anonymize(redact.New([]string{s.Key}).Text(text))
	return reeve.Truncate(strings.Join(strings.Fields(text), " "), maxQuote)
}

// retryAfter reads when to try again: milliseconds, seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	if d := backoff.RetryAfter(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	return backoff.RetryAfter(h.Get("Retry-After"), time.Second)
}
