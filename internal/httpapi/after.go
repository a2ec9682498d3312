package httpapi

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
)

// FromNow is where a client that follows a conversation goes on. One that does not say begins now, which is -1 here and nowhere outside.
type FromNow struct {
	After int64 `query:"after" minimum:"0" doc:"The last seq that you have; 0 means from the beginning. Left out: from now on"`
}

// Resolve tells one that was left out from 0.
func (f *FromNow) Resolve(c huma.Context) []error {
	if c.Query("after") == "" {
		f.After = -1
	}
	return nil
}

// readAfter is the same for a WebSocket.
func readAfter(text string) (int64, error) {
	if text == "" {
		return -1, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, &reeve.Error{Code: reeve.Validation, Message: "after is not a sequence number",
			Fields: []reeve.Field{{Path: "query/after", Message: "is not a sequence number", Expected: "the last seq that you have, or 0"}}}
	}
	return after, nil
}
