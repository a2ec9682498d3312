package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// statuses is the one table of codes and HTTP statuses.
var statuses = map[reeve.Code]int{
	reeve.AlreadyExists:    http.StatusConflict,
	reeve.ApprovalRequired: http.StatusAccepted,
	reeve.BudgetExceeded:   http.StatusPaymentRequired,
	reeve.Canceled:         499,
	reeve.Conflict:         http.StatusConflict,
	reeve.Corrupt:          http.StatusInternalServerError,
	reeve.Crashed:          http.StatusInternalServerError,
	reeve.Denied:           http.StatusForbidden,
	reeve.Forbidden:        http.StatusForbidden,
	reeve.InProgress:       http.StatusConflict,
	reeve.Internal:         http.StatusInternalServerError,
	reeve.NotFound:         http.StatusNotFound,
	reeve.OutOfScope:       http.StatusForbidden,
	reeve.RateLimited:      http.StatusTooManyRequests,
	reeve.Skipped:          http.StatusConflict,
	reeve.Stale:            http.StatusConflict,
	reeve.Stopped:          http.StatusLocked,
	reeve.Timeout:          http.StatusGatewayTimeout,
	reeve.ModelFailed:      http.StatusBadGateway,
	reeve.AssemblyFailed:   http.StatusInternalServerError,
	reeve.StepLimit:        http.StatusUnprocessableEntity,
	reeve.TooLarge:         http.StatusRequestEntityTooLarge,
	reeve.ToolFailed:       http.StatusUnprocessableEntity,
	reeve.Unauthenticated:  http.StatusUnauthorized,
	reeve.Unavailable:      http.StatusServiceUnavailable,
	reeve.UnknownOutcome:   http.StatusConflict,
	reeve.Unsupported:      http.StatusNotImplemented,
	reeve.Validation:       http.StatusBadRequest,
}

// hints is what to do about an error whose room said nothing better.
var hints = map[reeve.Code]string{
	reeve.AlreadyExists:   "choose another name, or change the one that is there",
	reeve.Conflict:        "look at how it stands now, then decide again",
	reeve.Denied:          "reeve explain says of a call which step refused it, and why",
	reeve.Forbidden:       "use a token that may, or ask an owner",
	reeve.InProgress:      "wait for its outcome",
	reeve.NotFound:        "check the id and the workspace; lists show what is there",
	reeve.OutOfScope:      "an owner can widen what the agent may do",
	reeve.RateLimited:     "wait a moment and try again",
	reeve.Stale:           "look at the present state and try again",
	reeve.TooLarge:        "send less",
	reeve.Unauthenticated: "send a valid bearer token",
	reeve.Unavailable:     "try again in a moment",
	reeve.Unsupported:     "see /docs for what this server can do",
	reeve.Validation:      "correct what errors names; /openapi.json says what is expected",
}

// Problem is an error on its way out. It implements huma.StatusError.
type Problem struct {
	api.Problem
	retryAfter int
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders says when to try again.
func (p *Problem) GetHeaders() http.Header {
	if p.retryAfter == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(p.retryAfter)}}
}

// ContentType is application/problem+json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// MarshalJSON writes the problem document only.
func (p *Problem) MarshalJSON() ([]byte, error) { return json.Marshal(p.Problem) }

// refusedCall carries the id of a call whose refusal is the error.
type refusedCall struct {
	id  string
	err error
}

func (r *refusedCall) Error() string { return r.err.Error() }
func (r *refusedCall) Unwrap() error { return r.err }

// problem turns any room's error into a problem. What is internal stays inside: the log has it under the request id.
func problem(ctx context.Context, err error) *Problem {
	e := reeve.AsError(err)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		e = reeve.Errorf(reeve.Canceled, "the request was cancelled")
	}
	var f store.Fault
	if e.Code == reeve.Internal || e.Code == reeve.Corrupt || errors.As(err, &f) && f.Kind == store.FaultUnsure {
		note(ctx, err)
	}
	if e.Code == reeve.Internal {
		e = reeve.Errorf(reeve.Internal, "internal error").
			Hintf("the server's log has the details under the request id")
	}
	status := statuses[e.Code]
	p := &Problem{Problem: api.Problem{Type: "about:blank", Title: title(status), Status: status, Detail: e.Message,
		Code: e.Code,
		Hint: cmp.Or(e.Hint, hints[e.Code]), Errors: e.Fields, RequestID: requestID(ctx)}}
	var call *refusedCall
	if errors.As(err, &call) {
		p.CallID = call.id
	}
	if e.RetryAfter > 0 {
		p.retryAfter = max(1, int(e.RetryAfter.Seconds()))
	}
	return p
}

func title(status int) string {
	if status == 499 {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

// errorWriter writes errors as problem documents, and as OpenAI's errors where its clients call.
type errorWriter struct {
	streams *Streams
}

// write sends a problem from outside a huma handler.
func (e errorWriter) write(w http.ResponseWriter, r *http.Request, err error) {
	if isV1(r.URL.Path) {
		e.v1Error(w, r, err)
		return
	}
	problem(r.Context(), err).write(w)
}

func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	for k, v := range p.GetHeaders() {
		w.Header()[k] = v
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// installProblems makes huma report its own errors our way. Huma keeps the function in a variable of its package; it is
// set once, before the first API is made.
var installProblems = sync.OnceFunc(func() {
	huma.NewErrorWithContext = func(c huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return fromHuma(c.Context(), status, msg, errs, c.Operation().MaxBodyBytes)
	}
	huma.ValidateStrictCasing = true // a key in other case is an unknown key
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return fromHuma(context.Background(), status, msg, errs, bodyLimit)
	}
})

// fromHuma is a problem found while decoding.
func fromHuma(ctx context.Context, status int, msg string, errs []error, limit int64) *Problem {
	code := reeve.Internal
	switch {
	case status == http.StatusRequestEntityTooLarge:
		code = reeve.TooLarge
	case status == http.StatusRequestTimeout:
		code = reeve.Timeout
	case status >= 400 && status < 500:
		code = reeve.Validation
	}
	e := &reeve.Error{Code: code, Message: msg}
	for _, err := range errs {
		var own *reeve.Error
		var d *huma.ErrorDetail
		switch {
		case errors.As(err, &own):
			e.Message, e.Fields, e.Hint = own.Message, append(e.Fields, own.Fields...), own.Hint
		case errors.As(err, &d):
			// huma has made a text of our own errors
			f := reeve.Field{Path: location(d.Location), Message: strings.TrimPrefix(d.Message,
				string(reeve.Validation)+": ")}
			if at, what, ok := strings.Cut(f.Message, " "); ok && f.Path == "" && strings.HasPrefix(at, "/") {
				f.Path, f.Message = at, what // a misfit
			}
			e.Fields = append(e.Fields, f)
		case err != nil && code != reeve.Internal:
			e.Fields = append(e.Fields, reeve.Field{Message: decoded(err).Error()})
		}
	}
	if len(e.Fields) == 0 && code == reeve.Validation {
		e.Fields = []reeve.Field{{Message: msg}}
	}
	if len(e.Fields) > 0 && e.Message == "validation failed" {
		first := e.Fields[0]
		if e.Message = "the request is not valid: " +
			strings.TrimSpace(first.Path+" "+first.Message); strings.HasPrefix(first.Message, "not valid JSON") {
			e.Message = "the request is " + first.Message
		}
	}
	if code == reeve.TooLarge {
		e = tooLarge(limit)
	}
	return problem(ctx, e)
}

func tooLarge(limit int64) *reeve.Error {
	return reeve.Errorf(reeve.TooLarge, "the body is too large").Hintf("send at most %d MiB", limit>>20)
}

// misfit is a value that the schema has let pass and that does not fit all the same, such as 1e30 for a whole number.
// Its text begins with its place: huma keeps nothing but the text.
type misfit struct{ *json.UnmarshalTypeError }

func (m misfit) Error() string { return m.path() + " " + m.message() }

func (m misfit) Unwrap() error { return m.UnmarshalTypeError }

func (m misfit) path() string { return "/" + strings.ReplaceAll(m.Field, ".", "/") }

func (m misfit) message() string {
	_, literal, _ := strings.Cut(m.Value, " ")
	switch {
	case m.Type == nil || literal == "":
		return "cannot be a " + m.Value
	case m.Type.Kind() >= reflect.Int && m.Type.Kind() <= reflect.Uint64:
		return "cannot be " + literal + ": it is a whole number in digits, " + api.IntegerRange
	}
	return "cannot be " + literal
}

// decoded says what encoding/json found without words of Go.
func decoded(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return misfit{t}
	}
	return err
}

// location turns huma's body.a.b[2] into a JSON Pointer; other places keep their name.
func location(l string) string {
	rest, ok := strings.CutPrefix(l, "body")
	if !ok {
		return strings.ReplaceAll(l, ".", "/")
	}
	return strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(rest)
}
