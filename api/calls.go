package api

import (
	"encoding/json"
	"unicode/utf8"

	"reeve"
)

// CallRequest requests one call of a tool.
type CallRequest struct {
	Tool        string          `json:"tool" minLength:"1" maxLength:"128"`
	Args        json.RawMessage `json:"args,omitempty" doc:"Arguments: an object, or the text that a model sent"`
	Session     string          `json:"session,omitempty" maxLength:"128" doc:"Default: your default session"`
	Run         string          `json:"run,omitempty" maxLength:"128" doc:"Run that the call belongs to"`
	Tools       []string        `json:"tools,omitempty" maxItems:"200" doc:"Tools available to this call"`
	PreviewOnly bool            `json:"preview_only,omitempty" doc:"Return what would change and change nothing"`
	Base        string          `json:"base,omitempty" maxLength:"512" doc:"Base of a preview; the call fails with STALE if the target has changed since. Send it with the arguments of that preview"`
	Reason      string          `json:"reason,omitempty" maxLength:"2000" doc:"Reason shown to the person who approves"`
	Key         string          `json:"idempotency_key,omitempty" maxLength:"255" doc:"Same as the Idempotency-Key header; unique per agent, user, and session or run"`
}

// BatchRequest requests several calls, like one model response with several tool calls.
type BatchRequest struct {
	Calls []CallRequest `json:"calls" minItems:"1" maxItems:"64"`
}

// BatchResponse has the results of a batch's calls, in order.
type BatchResponse struct {
	Results []reeve.Result `json:"results"`
}

// OutputSlice is a part of a stored output.
type OutputSlice struct {
	Content    string `json:"content" doc:"Text of the slice"`
	Data       []byte `json:"data,omitempty" doc:"Base64, instead of content, if the slice is not UTF-8"`
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset,omitempty" doc:"Offset of the next slice; absent at the end"`
	Size       int    `json:"size" doc:"Size of the whole output in bytes"`
}

// NewOutputSlice returns the slice with bytes b, which starts at offset and is followed by next, of an output of size
// bytes.
func NewOutputSlice(b []byte, offset, next, size int) OutputSlice {
	s := OutputSlice{Offset: offset, Size: size}
	if utf8.Valid(b) {
		s.Content = string(b)
	} else {
		s.Data = b // as a JSON string, invalid bytes would be replaced
	}
	if next < size {
		s.NextOffset = next
	}
	return s
}
