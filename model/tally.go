package model

import (
	"encoding/json"
	"strconv"
)

// count is a number of tokens as a provider says it. What is no number that can be one is less than nothing, as other
// counts are that cannot be true: an answer does not fail by it.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(string(raw), 64)
	switch n, bad := strconv.ParseInt(string(raw), 10, 64); {
	case string(raw) == "null":
	case bad == nil:
		*c = count(n)
	case err == nil && f >= 0 && f <= mostTokens && f == float64(int64(f)): // 12.0
		*c = count(f)
	default:
		*c = -1
	}
	return nil
}

// tally is the counts of an answer. Where they have another shape, none were given.
type tally[T any] struct{ of T }

// UnmarshalJSON implements json.Unmarshaler.
func (t *tally[T]) UnmarshalJSON(raw []byte) error {
	var of T
	if json.Unmarshal(raw, &of) == nil {
		t.of = of
	}
	return nil
}
