package model

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Code shared by the adapters of OpenAI's two APIs.

const openaiURL = "https://api.openai.com/v1"

// isOpenAI reports whether the server is OpenAI itself and not a compatible server.
func (s Server) isOpenAI() bool { return strings.HasPrefix(s.URL, openaiURL) }

func openaiHeader(s Server) http.Header {
	h := http.Header{}
	if s.Key != "" {
		h.Set("Authorization", "Bearer "+s.Key)
	}
	return h
}

// parallelToolCalls returns false if the request forbids parallel calls, and nil for the API's default.
func (r Request) parallelToolCalls() *bool {
	if !r.OneCall {
		return nil
	}
	no := false
	return &no
}

// openaiStatuses maps error codes and types to HTTP statuses. An error in the middle of a stream has no status.
var openaiStatuses = map[string]int{
	"rate_limit_exceeded": 429, "rate_limit_error": 429, "tokens": 429, "requests": 429, "insufficient_quota": 429,
	"server_error": 500, "internal_error": 500,
	"api_error": 500, "overloaded_error": 503, "service_unavailable": 503, "server_is_overloaded": 503,
	"slow_down": 503, "vector_store_timeout": 504, "timeout": 504,
	"invalid_api_key": 401, "authentication_error": 401, "model_not_found": 404, "bad_gateway": 502,
	"upstream_error": 502,
}

// openaiStreamError returns the error for an error in the middle of a stream.
func openaiStreamError(s Server, kind, message string) error {
	status, ok := openaiStatuses[kind]
	if !ok {
		status = http.StatusBadRequest
	}
	return s.statusError(status, nil, kind, message)
}

// parseOpenAIError parses the body of an error. Compatible servers send an object or a string, and the code may be a
// number.
func parseOpenAIError(data []byte) (kind, message string) {
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
			kind = kindOfStatus(int(c))
		}
		if _, ok := openaiStatuses[kind]; !ok && e.Type != "" {
			if _, ok := openaiStatuses[e.Type]; ok || kind == "" {
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

// kindOfStatus returns the error code for an HTTP status.
func kindOfStatus(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case status >= 500:
		return "server_error"
	default:
		return ""
	}
}
