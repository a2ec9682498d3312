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
	maxErrorRead = 64 << 10 // of the body of an answer that is not a success
	maxErrorText = 2 << 10  // of it in a message
)

// outcome says what a status means for the effect. It is nil for success.
func (r *request) outcome(inv *reeve.Invocation, a *answer) error {
	mutates := r.effect.Mutates()
	code := reeve.ToolFailed
	switch s := a.status; {
	case s >= 200 && s <= 299:
		return nil
	case s == http.StatusTemporaryRedirect, s == http.StatusPermanentRedirect:
		// The server wants the same request elsewhere, so it did not carry it out here.
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
	e := reeve.Errorf(code, "the endpoint answered %s", a.say())
	if code == reeve.Unavailable {
		e.RetryAfter = backoff.RetryAfter(a.retryAfter, time.Second)
	}
	return e
}

// say gives the status and, where it is text, the beginning of the body.
func (a *answer) say() string {
	s := strconv.Itoa(a.status)
	if t := http.StatusText(a.status); t != "" {
		s += " " + t
	}
	doc, ok := a.json()
	text := string(doc)
	if !ok {
		if text, ok = a.said(bytes.ReplaceAll(a.body, []byte{0}, nil)); !ok {
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

// trimPartial takes off a character that was cut in two at the end.
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

// unreachable says why no connection came about, in words that name no host.
func unreachable(err error) string {
	var (
		name  *net.DNSError
		cert  *tls.CertificateVerificationError
		rec   tls.RecordHeaderError
		alert tls.AlertError
		late  net.Error
	)
	switch {
	case errors.As(err, &name):
		return "the endpoint's name cannot be resolved; nothing was sent"
	case errors.As(err, &cert), errors.As(err, &rec), errors.As(err, &alert):
		return "no secure connection to the endpoint came about; nothing was sent"
	case errors.As(err, &late) && late.Timeout():
		return "the endpoint could not be reached in time; nothing was sent"
	}
	return "the endpoint could not be reached; nothing was sent"
}

// cause keeps of an error what logs may have: a kind, no text from outside.
func cause(err error) error {
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
