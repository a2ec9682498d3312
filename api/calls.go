package api

import (
	"encoding/json"
	"unicode/utf8"

	"reeve"
)

// CallRequest asks for one call.
type CallRequest struct {
	Tool        string          `json:"tool" minLength:"1" maxLength:"128"`
	Args        json.RawMessage `json:"args,omitempty" doc:"The arguments: an object, or the text a model sent"`
	Session     string          `json:"session,omitempty" maxLength:"128" doc:"Names the thread; your own default session if left out"`
	Run         string          `json:"run,omitempty" maxLength:"128" doc:"Names the run the call belongs to"`
	Tools       []string        `json:"tools,omitempty" maxItems:"200" doc:"An explicit list of tools for this call"`
	PreviewOnly bool            `json:"preview_only,omitempty" doc:"Say what would change, change nothing"`
	Base        string          `json:"base,omitempty" maxLength:"512" doc:"The base that a preview gave: the call is STALE if what it is about has changed since. Pass the preview's arguments with it: of a file it binds what the file holds, and not what is to be done with it"`
	Reason      string          `json:"reason,omitempty" maxLength:"2000" doc:"Why, for the person who approves"`
	Key         string          `json:"idempotency_key,omitempty" maxLength:"255" doc:"Same as the Idempotency-Key header: of one agent, person, and session or run"`
}

// BatchRequest asks for several calls, as one model response does.
type BatchRequest struct {
	Calls []CallRequest `json:"calls" minItems:"1" maxItems:"64"`
}

// BatchAnswer is what each call of a batch came to, in order.
type BatchAnswer struct {
	Results []reeve.Result `json:"results"`
}

// OutputSlice is a part of a kept output.
type OutputSlice struct {
	Content    string `json:"content" doc:"Text, of whole characters"`
	Data       []byte `json:"data,omitempty" doc:"Instead of content, the bytes in base64: of what is no text, or when the slice does not begin or end with a whole character"`
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset,omitempty" doc:"Where to go on; absent at the end"`
	Size       int    `json:"size" doc:"Bytes of the whole output"`
}

// NewOutputSlice makes the slice of what is shown of the bytes from offset to next.
func NewOutputSlice(b []byte, offset, next, size int) OutputSlice {
	s := OutputSlice{Offset: offset, Size: size}
	if utf8.Valid(b) {
		s.Content = string(b)
	} else {
		s.Data = b // JSON would put replacement characters in
	}
	if next < size {
		s.NextOffset = next
	}
	return s
}
