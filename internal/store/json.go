package store

import (
	"bytes"
	"encoding/json"
)

// text is JSON as the store keeps it. What we store marshals; a type that cannot is a bug.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}

// verbatim is text that leaves JSON inside v as it came.
func verbatim(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("store: " + err.Error())
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// fromText reads what text wrote; empty text leaves v as it is.
func fromText(s string, v any) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), v)
}

// flag writes a truth as both engines keep it.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
