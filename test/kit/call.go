package kit

import (
	"encoding/json"
	"fmt"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// Call is the body of a request for a call.
type Call map[string]any

// With returns a copy with one field set.
func (c Call) With(key string, v any) Call {
	out := Call{key: v}
	for k, old := range c {
		if k != key {
			out[k] = old
		}
	}
	return out
}

// TryCall makes a call over REST and returns the result, or the problem, with the status.
func TryCall(h *reevetest.Host, agent string, c Call, headers ...string) (reeve.Result, api.Problem, int) {
	h.T.Helper()
	r := h.Do("POST", "/api/agents/"+agent+"/calls", c, headers...)
	var res reeve.Result
	var p api.Problem
	if r.Status < 300 {
		r.Decode(h.T, &res)
	} else {
		r.Decode(h.T, &p)
	}
	return res, p, r.Status
}

// MustBeWhole fails the test if a result is an error or was cut, and returns it.
func MustBeWhole(t testing.TB, res reeve.Result) reeve.Result {
	t.Helper()
	if res.IsError || res.Truncated {
		t.Fatalf("cut at %d bytes, or refused: %.300s", len(res.Content), fmt.Sprint(res))
	}
	return res
}

// OutputCaps are output caps to test with: the default and the smallest.
var OutputCaps = []int{0, 1024}

// DecodeResult decodes the content of a result, which must not be an error.
func DecodeResult[T any](t testing.TB, res reeve.Result) (v T) {
	t.Helper()
	if res.IsError {
		t.Fatalf("%+v", res)
	}
	if err := json.Unmarshal([]byte(res.Content), &v); err != nil {
		t.Fatalf("%s: %v", res.Content, err)
	}
	return v
}
