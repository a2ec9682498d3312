package model

import (
	"encoding/json"
	"strconv"
)

// tokenCount is a number of tokens in a provider's JSON. A value that cannot be a count decodes as -1, so that it does
// not fail the answer.
type tokenCount int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *tokenCount) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(string(raw), 64)
	switch n, bad := strconv.ParseInt(string(raw), 10, 64); {
	case string(raw) == "null":
	case bad == nil:
		*c = tokenCount(n)
	case err == nil && f >= 0 && f <= maxTokenCount && f == float64(int64(f)): // 12.0
		*c = tokenCount(f)
	default:
		*c = -1
	}
	return nil
}

// lenient decodes a JSON value. A value of another shape decodes as the zero value.
type lenient[T any] struct{ value T }

// UnmarshalJSON implements json.Unmarshaler.
func (t *lenient[T]) UnmarshalJSON(raw []byte) error {
	var of T
	if json.Unmarshal(raw, &of) == nil {
		t.value = of
	}
	return nil
}
