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

// statuses maps each error code to its HTTP status.
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

// hints holds the default hint of each code, for errors without a hint of their own.
var hints = map[reeve.Code]string{
	reeve.AlreadyExists:   "choose another name, or update the existing entry",
	reeve.Conflict:        "read the current state, then decide again",
	reeve.Denied:          "run reeve explain with the call's id to see which step denied it and why",
	reeve.Forbidden:       "use a token with more rights, or ask an owner",
	reeve.InProgress:      "wait for the outcome",
	reeve.NotFound:        "check the id and the workspace; list the entries to find the right id",
	reeve.OutOfScope:      "ask an owner to extend what the agent may access",
	reeve.RateLimited:     "wait a moment, then try again",
	reeve.Stale:           "read the current state, then try again",
	reeve.TooLarge:        "send a smaller request",
	reeve.Unauthenticated: "send a valid bearer token",
	reeve.Unavailable:     "try again in a moment",
	reeve.Unsupported:     "see /docs for the supported routes",
	reeve.Validation:      "correct the fields listed in errors; see /openapi.json",
}

// Problem is an error response. It implements huma.StatusError.
type Problem struct {
	api.Problem
	retryAfter int
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the Retry-After header if the error has one.
func (p *Problem) GetHeaders() http.Header {
	if p.retryAfter == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(p.retryAfter)}}
}

// ContentType returns application/problem+json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// MarshalJSON encodes the problem document without internal fields.
func (p *Problem) MarshalJSON() ([]byte, error) { return json.Marshal(p.Problem) }

// refusedCall is the error of a refused call, with the id of the call.
type refusedCall struct {
	id  string
	err error
}

func (r *refusedCall) Error() string { return r.err.Error() }
func (r *refusedCall) Unwrap() error { return r.err }

// newProblem converts an error into a problem document. It logs internal errors and hides their details from the
// caller.
func newProblem(ctx context.Context, err error) *Problem {
	e := reeve.AsError(err)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		e = reeve.Errorf(reeve.Canceled, "the request was cancelled")
	}
	var f store.Fault
	if e.Code == reeve.Internal || e.Code == reeve.Corrupt || errors.As(err, &f) && f.Kind == store.FaultUncertain {
		logFailure(ctx, err)
	}
	if e.Code == reeve.Internal {
		e = reeve.Errorf(reeve.Internal, "internal error").Hintf("search the server's log for the request id")
	}
	status := statuses[e.Code]
	p := &Problem{Problem: api.Problem{Type: "about:blank", Title: statusTitle(status), Status: status,
		Detail: e.Message,
		Code:   e.Code,
		Hint:   cmp.Or(e.Hint, hints[e.Code]), Errors: e.Fields, RequestID: requestID(ctx)}}
	var call *refusedCall
	if errors.As(err, &call) {
		p.CallID = call.id
	}
	if e.RetryAfter > 0 {
		p.retryAfter = max(1, int(e.RetryAfter.Seconds()))
	}
	return p
}

func statusTitle(status int) string {
	if status == 499 {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

// errorWriter writes errors as problem documents, and as OpenAI errors under /v1.
type errorWriter struct {
	streams *Streams
}

// write sends an error from outside a huma handler.
func (e errorWriter) write(w http.ResponseWriter, r *http.Request, err error) {
	if isV1(r.URL.Path) {
		e.writeV1(w, r, err)
		return
	}
	newProblem(r.Context(), err).write(w)
}

func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	for k, v := range p.GetHeaders() {
		w.Header()[k] = v
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// installProblems makes huma report its errors as problem documents. Huma has global variables for this, so it runs
// once, before the first API is created.
var installProblems = sync.OnceFunc(func() {
	huma.NewErrorWithContext = func(c huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return problemFromHuma(c.Context(), status, msg, errs, c.Operation().MaxBodyBytes)
	}
	huma.ValidateStrictCasing = true // a key that differs in case is an unknown key
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return problemFromHuma(context.Background(), status, msg, errs, bodyLimit)
	}
})

// problemFromHuma converts an error that huma found while it decoded a request.
func problemFromHuma(ctx context.Context, status int, msg string, errs []error, limit int64) *Problem {
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
			// huma keeps only the text of our own errors
			f := reeve.Field{Path: jsonPointer(d.Location), Message: strings.TrimPrefix(d.Message,
				string(reeve.Validation)+": ")}
			if at, what, ok := strings.Cut(f.Message, " "); ok && f.Path == "" && strings.HasPrefix(at, "/") {
				f.Path, f.Message = at, what // a typeMismatch
			}
			e.Fields = append(e.Fields, f)
		case err != nil && code != reeve.Internal:
			e.Fields = append(e.Fields, reeve.Field{Message: describeDecodeError(err).Error()})
		}
	}
	if len(e.Fields) == 0 && code == reeve.Validation {
		e.Fields = []reeve.Field{{Message: msg}}
	}
	if len(e.Fields) > 0 && e.Message == "validation failed" {
		first := e.Fields[0]
		if e.Message = "invalid request: " +
			strings.TrimSpace(first.Path+" "+first.Message); strings.HasPrefix(first.Message, "not valid JSON") {
			e.Message = "the request body is " + first.Message
		}
	}
	if code == reeve.TooLarge {
		e = newBodyTooLarge(limit)
	}
	return newProblem(ctx, e)
}

// newBodyTooLarge returns the error for a body of more than limit bytes.
func newBodyTooLarge(limit int64) *reeve.Error {
	return reeve.Errorf(reeve.TooLarge, "the request body is too large").Hintf("send at most %d MiB", limit>>20)
}

// typeMismatch is a value that the schema accepts and that Go cannot decode, such as 1e30 for an integer. Its text
// begins with the JSON Pointer of the value, because huma keeps only the text.
type typeMismatch struct{ *json.UnmarshalTypeError }

func (m typeMismatch) Error() string { return m.path() + " " + m.message() }

func (m typeMismatch) Unwrap() error { return m.UnmarshalTypeError }

func (m typeMismatch) path() string { return "/" + strings.ReplaceAll(m.Field, ".", "/") }

func (m typeMismatch) message() string {
	_, literal, _ := strings.Cut(m.Value, " ")
	switch {
	case m.Type == nil || literal == "":
		return "cannot be a " + m.Value
	case m.Type.Kind() >= reflect.Int && m.Type.Kind() <= reflect.Uint64:
		return "cannot be " + literal + "; use an integer without exponent, " + api.IntegerRange
	}
	return "cannot be " + literal
}

// describeDecodeError replaces type errors of encoding/json, which name Go types, by a typeMismatch.
func describeDecodeError(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return typeMismatch{t}
	}
	return err
}

// jsonPointer converts a location of huma such as body.a.b[2] into a JSON Pointer. A location outside the body becomes
// place/name, such as query/limit.
func jsonPointer(l string) string {
	rest, ok := strings.CutPrefix(l, "body")
	if !ok {
		return strings.ReplaceAll(l, ".", "/")
	}
	return strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(rest)
}
