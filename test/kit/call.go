package kit

import (
	"encoding/json"
	"fmt"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// Call is a request for a call; what it lacks is left out.
type Call map[string]any

func (c Call) With(key string, v any) Call {
	out := Call{key: v}
	for k, old := range c {
		if k != key {
			out[k] = old
		}
	}
	return out
}

// TryCall makes a call over REST and gives whatever came back.
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

// MustBeWhole is a result that was not cut.
func MustBeWhole(t testing.TB, res reeve.Result) reeve.Result {
	t.Helper()
	if res.IsError || res.Truncated {
		t.Fatalf("cut at %d bytes, or refused: %.300s", len(res.Content), fmt.Sprint(res))
	}
	return res
}

// OutputCaps are how much callers are shown: the default, and the least.
var OutputCaps = []int{0, 1024}

// DecodeResult reads a result's content.
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
