package httpapi

import (
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
)

// StreamPosition is where a client that follows a conversation goes on. One that does not say begins now, which is -1 here and
// nowhere outside.
type StreamPosition struct {
	After int64 `query:"after" minimum:"0" doc:"The last seq that you have; 0 means from the beginning. Left out: from now on"`
}

// Resolve tells one that was left out from 0, and refuses what only looks like a number.
func (f *StreamPosition) Resolve(c huma.Context) []error {
	u := c.URL()
	if !u.Query().Has("after") {
		f.After = -1
	}
	return checkAfter(u.Query())
}

// ListPosition is where a list of frames goes on.
type ListPosition struct {
	After int64 `query:"after" minimum:"0" doc:"The last seq that you have"`
}

// Resolve refuses what only looks like a number.
func (f *ListPosition) Resolve(c huma.Context) []error {
	u := c.URL()
	return checkAfter(u.Query())
}

// checkAfter refuses what huma takes for a number, or for nothing.
func checkAfter(query url.Values) []error {
	_, err := parseAfter(query)
	if n, bad := strconv.ParseInt(query.Get("after"), 10, 64); err == nil || query.Get("after") != "" &&
		(bad != nil || n < 0) {
		return nil
	}
	return []error{err}
}

// parseAfter is where a client goes on, as it says it in an address; -1 means that it does not. It is written in one
// way, and said once.
func parseAfter(query url.Values) (int64, error) {
	said, ok := query["after"]
	if !ok {
		return -1, nil
	}
	after, ok := parseSequence(said[0])
	if !ok || len(said) > 1 {
		return 0, &reeve.Error{Code: reeve.Validation, Message: "after is not a sequence number",
			Fields: []reeve.Field{{Path: "query/after", Message: "is not a sequence number",
				Expected: "the last seq that you have, or 0"}}}
	}
	return after, nil
}

// parseSequence reads a sequence number, from 0 on.
func parseSequence(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}
