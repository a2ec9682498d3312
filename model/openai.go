package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"reeve"
)

// What the two APIs of OpenAI share.

const openaiURL = "https://api.openai.com/v1"

// openaiOptions configure a service by itself: the SDK's whole client would read the environment.
func openaiOptions(s Server) []option.RequestOption {
	check := func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err != nil {
			return nil, err
		}
		return res, s.check(res, openaiError) // the SDK loses the status of errors that are not in OpenAI's own form
	}
	options := []option.RequestOption{option.WithBaseURL(s.URL + "/"), option.WithHTTPClient(s.client()), option.WithMaxRetries(0), option.WithMiddleware(check)}
	if s.Key != "" {
		options = append(options, option.WithAPIKey(s.Key))
	}
	return options
}

// genuine says whether a server is OpenAI's own, and not one that speaks like it.
func (s Server) genuine() bool { return strings.HasPrefix(s.URL, openaiURL) }

// openaiKinds are the error codes and types that come without a status, in mid-stream.
var openaiKinds = map[string]int{
	"rate_limit_exceeded": 429, "rate_limit_error": 429, "tokens": 429, "requests": 429, "insufficient_quota": 429, "server_error": 500, "internal_error": 500,
	"api_error": 500, "overloaded_error": 503, "service_unavailable": 503, "server_is_overloaded": 503, "slow_down": 503, "vector_store_timeout": 504, "timeout": 504,
	"invalid_api_key": 401, "authentication_error": 401, "model_not_found": 404, "bad_gateway": 502, "upstream_error": 502,
}

// openaiFailed types an error of a stream.
func openaiFailed(ctx context.Context, s Server, err error) error {
	var e *reeve.Error
	var mid *ssestream.StreamError
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &mid):
		return openaiMid(s, mid.Event.Data)
	case errors.As(err, &syntax), errors.As(err, &shape):
		return s.nonsense("%v", err)
	default:
		return s.lost(ctx, err)
	}
}

// openaiMid types an error event.
func openaiMid(s Server, data []byte) error {
	kind, message := openaiError(data)
	return openaiRefused(s, kind, message)
}

func openaiRefused(s Server, kind, message string) error {
	status, ok := openaiKinds[kind]
	if !ok {
		status = http.StatusBadRequest
	}
	return s.refused(status, nil, kind, message)
}

// openaiError reads the forms that errors have among compatible servers: an object, a text, with a code that may be a number.
func openaiError(data []byte) (kind, message string) {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(data, &body) != nil {
		return "", string(data)
	}
	var e struct {
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(body.Error, &e) == nil && e.Message != "":
		switch c := e.Code.(type) {
		case string:
			kind = c
		case float64:
			kind = numberKind(int(c))
		}
		if _, ok := openaiKinds[kind]; !ok && e.Type != "" {
			if _, ok := openaiKinds[e.Type]; ok || kind == "" {
				kind = e.Type
			}
		}
		return kind, e.Message
	case json.Unmarshal(body.Error, &message) == nil && message != "":
		return "", message
	case body.Message != "":
		return "", body.Message
	case len(body.Detail) > 0:
		return "", string(body.Detail)
	default:
		return "", string(data)
	}
}

// numberKind reads codes that are HTTP statuses.
func numberKind(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case status >= 500:
		return "server_error"
	default:
		return ""
	}
}
