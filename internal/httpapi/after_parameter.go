package httpapi

import (
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
)

// StreamPosition is where a client resumes a conversation's stream. A missing parameter means from now on, which After
// represents as -1.
type StreamPosition struct {
	After int64 `query:"after" minimum:"0" doc:"Last seq received; 0 for all frames. Default: only new frames"`
}

// Resolve sets After to -1 if the parameter is missing, and checks its syntax.
func (f *StreamPosition) Resolve(c huma.Context) []error {
	u := c.URL()
	if !u.Query().Has("after") {
		f.After = -1
	}
	return checkAfter(u.Query())
}

// ListPosition is where a list of frames starts.
type ListPosition struct {
	After int64 `query:"after" minimum:"0" doc:"Last seq received; the list starts after it. Default: 0"`
}

// Resolve checks the syntax of the parameter.
func (f *ListPosition) Resolve(c huma.Context) []error {
	u := c.URL()
	return checkAfter(u.Query())
}

// checkAfter reports values that huma accepts and parseAfter does not, such as +1, an empty value or two values. Huma
// itself reports the others.
func checkAfter(query url.Values) []error {
	_, err := parseAfter(query)
	if n, bad := strconv.ParseInt(query.Get("after"), 10, 64); err == nil || query.Get("after") != "" &&
		(bad != nil || n < 0) {
		return nil
	}
	return []error{err}
}

// parseAfter returns the value of the query parameter after, or -1 if it is missing. The parameter may occur once, in
// canonical decimal form.
func parseAfter(query url.Values) (int64, error) {
	values, ok := query["after"]
	if !ok {
		return -1, nil
	}
	after, ok := parseSequence(values[0])
	if !ok || len(values) > 1 {
		return 0, &reeve.Error{Code: reeve.Validation, Message: "after is not a sequence number",
			Fields: []reeve.Field{{Path: "query/after", Message: "is not a sequence number",
				Expected: "the last seq received, or 0"}}}
	}
	return after, nil
}

// parseSequence parses a sequence number of 0 or more in canonical decimal form.
func parseSequence(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}
