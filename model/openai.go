package model

import (
	"encoding/json"
	"net/http"
	"strings"
)

// What the two APIs of OpenAI share.

const openaiURL = "https://api.openai.com/v1"

// genuine says whether a server is OpenAI's own, and not one that speaks like it.
func (s Server) genuine() bool { return strings.HasPrefix(s.URL, openaiURL) }

func openaiHeader(s Server) http.Header {
	h := http.Header{}
	if s.Key != "" {
		h.Set("Authorization", "Bearer "+s.Key)
	}
	return h
}

// parallel says that tools may not be called at once; nil means what the API assumes by itself.
func (r Request) parallel() *bool {
	if !r.OneCall {
		return nil
	}
	no := false
	return &no
}

// openaiKinds are the statuses of error codes and types, which come without one in mid-stream.
var openaiKinds = map[string]int{
	"rate_limit_exceeded": 429, "rate_limit_error": 429, "tokens": 429, "requests": 429, "insufficient_quota": 429,
	"server_error": 500, "internal_error": 500,
	"api_error": 500, "overloaded_error": 503, "service_unavailable": 503, "server_is_overloaded": 503,
	"slow_down": 503, "vector_store_timeout": 504, "timeout": 504,
	"invalid_api_key": 401, "authentication_error": 401, "model_not_found": 404, "bad_gateway": 502,
	"upstream_error": 502,
}

// openaiRefused types an error that came in mid-stream.
func openaiRefused(s Server, kind, message string) error {
	status, ok := openaiKinds[kind]
	if !ok {
		status = http.StatusBadRequest
	}
	return s.refused(status, nil, kind, message)
}

// openaiError reads the forms that errors have among compatible servers: an object, a text, with a code that may be a
// number.
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
