package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/backoff"
)

const (
	maxErrorRead = 64 << 10 // bytes to read of an error response
	maxErrorText = 2 << 10  // bytes of the response that an error message quotes
)

// statusError returns the error for the status of a response, or nil for success. The code says what the status proves
// about the effect; the package comment has the table.
func (r *request) statusError(inv *reeve.Invocation, a *response) error {
	mutates := r.effect.Mutates()
	code := reeve.ToolFailed
	switch s := a.status; {
	case s >= 200 && s <= 299:
		return nil
	case s == http.StatusTemporaryRedirect, s == http.StatusPermanentRedirect:
		// The server asks for the same request elsewhere, so it did not carry out this one.
	case s < 400 && mutates:
		code = reeve.UnknownOutcome
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests:
		code = reeve.Unavailable
	case s == http.StatusUnauthorized:
		code = reeve.Unauthenticated
	case s == http.StatusForbidden:
		code = reeve.Forbidden
	case s == http.StatusConflict && r.effect == reeve.Keyed && inv.Attempt > 1:
		code = reeve.UnknownOutcome
	case s < 500, s == http.StatusNotImplemented, s == http.StatusHTTPVersionNotSupported:
	case mutates:
		code = reeve.UnknownOutcome
	default:
		code = reeve.Unavailable
	}
	e := reeve.Errorf(code, "the endpoint responded %s", a.describe())
	if code == reeve.Unavailable {
		e.RetryAfter = backoff.RetryAfter(a.retryAfter, time.Second)
	}
	return e
}

// describe returns the status and, if the body is text, its beginning.
func (a *response) describe() string {
	s := strconv.Itoa(a.status)
	if t := http.StatusText(a.status); t != "" {
		s += " " + t
	}
	doc, ok := a.compactJSON()
	text := string(doc)
	if !ok {
		if text, ok = a.bodyText(bytes.ReplaceAll(a.body, []byte{0}, nil)); !ok {
			return s
		}
	}
	text = strings.TrimSpace(text)
	more := len(text) > maxErrorText
	if more {
		text = a.inv.RedactedHead(text, maxErrorText)
	}
	text = strings.TrimSpace(strings.Map(func(c rune) rune {
		if isControl(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, text))
	if more {
		text += "…"
	}
	if text == "" {
		return s
	}
	return s + ": " + text
}

// trimPartial removes an incomplete UTF-8 character from the end.
func trimPartial(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// connectMessage says why no connection was made, without naming the host.
func connectMessage(err error) string {
	var (
		name  *net.DNSError
		cert  *tls.CertificateVerificationError
		rec   tls.RecordHeaderError
		alert tls.AlertError
		late  net.Error
	)
	switch {
	case errors.As(err, &name):
		return "the host name of the endpoint cannot be resolved; nothing was sent"
	case errors.As(err, &cert), errors.As(err, &rec), errors.As(err, &alert):
		return "no TLS connection to the endpoint could be made; nothing was sent"
	case errors.As(err, &late) && late.Timeout():
		return "the endpoint could not be reached in time; nothing was sent"
	}
	return "the endpoint could not be reached; nothing was sent"
}

// safeCause returns the part of an error that is safe to log: its kind, without any text from the network.
func safeCause(err error) error {
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		return no
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return nil
}
